"""Chart: a plotly figure with its views, and what all figures have in common.

Plotly interprets some HTML in its texts, so names and error messages go through `escaped`.
"""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import plotly.graph_objects as go

from mixcma.report import colours

LONGEST_LABEL = 80
# If the ends of a logarithmic axis differ by more than the second factor, only powers of ten get a tick, and at most
# so many of them; between the two factors 1, 2 and 5 times a power of ten get one.
DIGITS_FROM, DECADES_FROM, MOST_DECADES = 4.0, 300.0, 8
# Numbers of this size are written in full beside a linear axis; larger and smaller ones with an exponent.
WRITTEN_IN_FULL = (1e-3, 1e7)


@dataclass(frozen=True)
class View:
    """The changes that a view makes to each trace and to the layout of a figure. None removes an entry.

    `note` is the text below the figure: what the view does not show.
    """

    data: list[dict[str, Any]]
    layout: dict[str, Any]
    note: str = ""


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
            "xaxis": {**axis, "automargin": "bottom", "exponentformat": "none", "separatethousands": True},
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


def log_ticks(low: float, high: float) -> int | str | None:
    """The distance between ticks on a logarithmic axis: decades, "D2" for 1, 2 and 5; None leaves it to plotly."""
    if not 0 < DIGITS_FROM * low < high < math.inf:
        return None
    if high < DECADES_FROM * low:
        return "D2"
    return math.ceil((math.log10(high) - math.log10(low)) / MOST_DECADES)


def linear_ticks(low: float, high: float) -> dict[str, Any]:
    """How the numbers beside a linear axis are written. Plotly's own powers of ten would read 0.2 x 10^4."""
    largest = max(abs(low), abs(high))
    if largest == 0 or WRITTEN_IN_FULL[0] <= largest < WRITTEN_IN_FULL[1]:
        return {"exponentformat": "none", "separatethousands": True}
    return {"tickformat": "~g"}


def restart_lines(places: Sequence[float]) -> list[dict[str, Any]]:
    """Vertical lines where restarts begin."""
    line = {"color": colours.MARK, "width": 1, "dash": "dot"}
    return [
        {"type": "line", "xref": "x", "yref": "paper", "x0": x, "x1": x, "y0": 0, "y1": 1, "line": line} for x in places
    ]
