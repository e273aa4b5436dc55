"""The report of a run file as a self-contained HTML page, the plot of a result, and the export to CSV and JSON.

The page needs jinja2 and plotly. They are imported only when the page is asked for, because the export needs neither.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mixcma.report.page import build_report, write_report

__all__ = ["build_report", "write_report"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from mixcma.report import page

    return getattr(page, name)
