"""The colours of the figures. `DARK` maps each colour of the light theme to the one that the dark theme uses."""

from __future__ import annotations

INK, MUTED, GRID, PAPER = "#1f2328", "#69707a", "#ebebe6", "#ffffff"
ACCENT, ACCENT_BAND, ACCENT_FAINT = "#3457d5", "rgba(52, 87, 213, 0.16)", "rgba(52, 87, 213, 0.38)"
WARNING, WARNING_FAINT = "#c2700a", "rgba(194, 112, 10, 0.45)"
ERROR, GOOD, OTHERS, MARK = "#c43d4b", "#1f7a4d", "#d3d5d9", "#a3a8b0"

DARK = {
    INK: "#e7e9ec",
    MUTED: "#9aa1ab",
    GRID: "#2b2e34",
    PAPER: "#1a1c20",
    ACCENT: "#8fa8ff",
    ACCENT_BAND: "rgba(143, 168, 255, 0.20)",
    ACCENT_FAINT: "rgba(143, 168, 255, 0.42)",
    WARNING: "#f0ad55",
    WARNING_FAINT: "rgba(240, 173, 85, 0.50)",
    ERROR: "#f07f8c",
    GOOD: "#63c997",
    OTHERS: "#41454d",
    MARK: "#686e78",
}

# From small values to large ones; legible on a light and on a dark background.
_ANCHORS = ((48, 52, 129), (46, 103, 175), (38, 152, 178), (68, 190, 154), (158, 216, 120), (243, 225, 120))
OFF, ON = "rgb(150, 160, 178)", "rgb(46, 103, 175)"


def ramp(length: int) -> list[str]:
    """`length` colours, for values in ascending order."""
    return [_between(i * (len(_ANCHORS) - 1) / max(length - 1, 1)) for i in range(length)]


def _between(place: float) -> str:
    index = min(int(place), len(_ANCHORS) - 2)
    part = place - index
    mixed = [round(a + part * (b - a)) for a, b in zip(_ANCHORS[index], _ANCHORS[index + 1])]
    return f"rgb({mixed[0]}, {mixed[1]}, {mixed[2]})"
