"""The report of a run file: one HTML page that needs nothing else; and the plot of a result."""

from mixcma.report.page import build_report, write_report

__all__ = ["build_report", "write_report"]
