"""The report of a run file as a self-contained HTML page, the plot of a result, and the export to CSV and JSON."""

from mixcma.report.page import build_report, write_report

__all__ = ["build_report", "write_report"]
