"""Chart: a plotly figure with its views, and what all figures have in common.

Plotly interprets some HTML in its texts, so names and error messages go through `escaped`.
"""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import plotly.graph_objects as go

from mixcma.report import colours

LONGEST_LABEL = 80
# If the ends of a logarithmic axis differ by more than this factor, only powers of ten get a tick.
LOG_TICKS_FROM = 300.0


@dataclass(frozen=True)
class View:
    """The changes that a view makes to each trace and to the layout of a figure. None removes an entry."""

    data: list[dict[str, Any]]
    layout: dict[str, Any]


@dataclass(frozen=True)
class Chart:
    """A figure and the views that it offers, by name; `first` is the view that it opens with."""

    figure: go.Figure
    views: Mapping[str, View] = field(default_factory=dict)
    first: str | None = None


def escaped(text: str) -> str:
    """Escape a text, so that plotly shows it literally."""
    return html.escape(text, quote=False)


def shortened(text: str, longest: int = LONGEST_LABEL) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"


def template() -> go.layout.Template:
    """The layout that all figures share."""
    axis = {
        "gridcolor": colours.GRID,
        "linecolor": colours.GRID,
        "zeroline": False,
        "ticks": "",
        "exponentformat": "power",
        "title": {"font": {"size": 12, "color": colours.MUTED}, "standoff": 8},
        "tickfont": {"size": 11, "color": colours.MUTED},
    }
    family = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', 'Liberation Sans', Arial, sans-serif"
    return go.layout.Template(
        layout={
            "font": {"family": family, "size": 12, "color": colours.INK},
            "paper_bgcolor": colours.PAPER,
            "plot_bgcolor": colours.PAPER,
            "colorway": [colours.ACCENT],
            "margin": {"l": 8, "r": 16, "t": 12, "b": 8},
            "xaxis": {**axis, "automargin": "bottom"},
            "yaxis": {**axis, "automargin": "left"},
            "hoverlabel": {
                "bgcolor": colours.PAPER,
                "bordercolor": colours.MARK,
                "font": {"family": family, "size": 12, "color": colours.INK},
            },
            "legend": {"font": {"size": 11, "color": colours.MUTED}, "bgcolor": "rgba(0,0,0,0)"},
            "dragmode": "zoom",
            "hovermode": "closest",
        }
    )


def figure(traces: Sequence[go.Scatter], x: str, y: str, **layout: Any) -> go.Figure:
    """A figure of these traces with titled axes; an empty title takes up no space."""
    made = go.Figure(list(traces), layout={"template": "none", "uirevision": "kept", **layout})
    made.update_xaxes(title_text=x or None)
    made.update_yaxes(title_text=y or None)
    return made


def log_ticks(low: float, high: float) -> int | None:
    """The distance between ticks on a logarithmic axis: 1 (a decade) on a long axis; None leaves it to plotly."""
    return 1 if low > 0 and high > LOG_TICKS_FROM * low else None


def restart_lines(places: Sequence[float]) -> list[dict[str, Any]]:
    """Vertical lines where restarts begin."""
    line = {"color": colours.MARK, "width": 1, "dash": "dot"}
    return [
        {"type": "line", "xref": "x", "yref": "paper", "x0": x, "x1": x, "y0": 0, "y1": 1, "line": line} for x in places
    ]
