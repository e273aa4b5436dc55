"""The figures of the report page."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from mixcma.report import colours
from mixcma.report.chart import Chart, View, escaped, figure, linear_ticks, log_ticks, restart_lines, shortened
from mixcma.report.series import (
    LARGE,
    Evaluations,
    FloatArray,
    Generations,
    Improvements,
    ModelUse,
    Shares,
    Spread,
    thinned,
)
from mixcma.report.tables import Failure
from mixcma.search.progress import LOG_FROM
from mixcma.space import Bool, Value

LINEAR, LOG, DISTANCE = "linear", "log", "distance"
SPREAD, DEVIATION = "spread", "deviation"
STACKED, LOGARITHMIC = "stacked", "logarithmic"

# On a linear axis the figure opens with this share of the values in sight, so that a few huge values, which are often
# failures in disguise, do not hide all the others.
SHARE_IN_SIGHT = 0.9
ERRORS_DRAWN = 8
# The largest height of a legend that lists the values of a variable, in pixels.
LEGEND_HEIGHT = 280
FEW_GENERATIONS = 8
# The lower end of a logarithmic axis of probabilities.
LEAST_PROBABILITY = 1e-6


# Best value


def best_value(
    improvements: Improvements, evaluations: Evaluations, target: float | None, restarts: Sequence[int]
) -> Chart:
    """Every value and the best so far: on a linear axis, on a logarithmic one, or as the distance from the best."""
    parts = [
        *(_all_values(evaluations, feasible) for feasible in (True, False)),
        *(_best_so_far(improvements, feasible) for feasible in (False, True)),
    ]
    traces = [trace for trace in parts if len(trace.x)]
    if target is not None and len(evaluations):
        traces.append(_target_line(target, len(evaluations)))
    legend = {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"}
    drawn = figure(
        traces,
        "evaluation",
        "value",
        legend=legend,
        shapes=restart_lines(restarts),
        xaxis_range=_full_range(len(evaluations)),
        showlegend=True,
    )
    shown, drawable = _values_for_axis(evaluations), evaluations.value[np.isfinite(evaluations.value)]
    views = {LINEAR: _value_view(traces, shown, drawable, LINEAR)}
    if shown.size and shown.min() > 0:
        views[LOG] = _value_view(traces, shown, drawable, LOG)
    if improvements.at.size and improvements.violation[-1] == 0.0 and math.isfinite(improvements.value[-1]):
        views[DISTANCE] = _distance_view(traces, float(improvements.value[-1]), drawable)
    first = LOG if LOG in views and shown.max() > LOG_FROM * shown.min() else LINEAR
    return Chart(drawn, views, first)


def _full_range(end: int) -> list[float]:
    """A range that is slightly wider than that of all evaluations."""
    return [-0.012 * max(end, 1), 1.02 * max(end, 1)]


def _all_values(evaluations: Evaluations, feasible: bool) -> go.Scatter:
    index = np.flatnonzero(np.isfinite(evaluations.value) & ((evaluations.violation == 0.0) == feasible))
    index = index[thinned(len(index), LARGE)]
    return go.Scatter(
        x=index + 1,
        y=evaluations.value[index],
        customdata=None if feasible else evaluations.violation[index],
        name="evaluations" if feasible else "not feasible",
        mode="markers",
        marker={"size": 3.5, "color": colours.ACCENT_FAINT if feasible else colours.WARNING_FAINT},
        hovertemplate="evaluation %{x}<br>value %{y:.8~g}"
        + ("" if feasible else "<br>violation %{customdata:.3~g}")
        + "<extra></extra>",
    )


def _best_so_far(improvements: Improvements, feasible: bool) -> go.Scatter:
    x, y = improvements.steps(feasible)
    return go.Scatter(
        x=x,
        y=y,
        name="best so far" if feasible else "least violation so far",
        mode="lines",
        line={
            "color": colours.ACCENT if feasible else colours.WARNING,
            "width": 2.25,
            "shape": "hv",
            "dash": "solid" if feasible else "dash",
        },
        hovertemplate="evaluation %{x}<br>best so far %{y:.10~g}<extra></extra>",
    )


def _target_line(target: float, end: int) -> go.Scatter:
    return go.Scatter(
        x=[1, end],
        y=[target, target],
        name="target",
        mode="lines",
        line={"color": colours.GOOD, "width": 1.25, "dash": "dot"},
        hovertemplate="target %{y:.8~g}<extra></extra>",
    )


def _value_view(traces: Sequence[go.Scatter], values: FloatArray, drawable: FloatArray, kind: str) -> View:
    """All values, on an axis of this kind; a linear axis leaves the largest `values` out of sight at first."""
    axis: dict[str, Any] = {"type": kind, "title": {"text": "value"}}
    if not values.size:
        return View([{} for _ in traces], {"yaxis": axis})
    low, high = float(values.min()), float(values.max() if kind == LOG else np.quantile(values, SHARE_IN_SIGHT))
    axis |= {"dtick": log_ticks(low, high)} if kind == LOG else {"dtick": None, **linear_ticks(low, high)}
    scale: Callable[[float], float] = math.log10 if kind == LOG else float
    room = 0.05 * (scale(high) - scale(low)) or 0.5
    bottom, top = scale(low) - room, scale(high) + room
    axis["range"] = [bottom, top]
    on_axis = drawable[drawable > 0] if kind == LOG else drawable
    places = np.log10(on_axis) if kind == LOG else on_axis
    outside = int(((places < bottom) | (places > top)).sum())
    return View([{} for _ in traces], {"yaxis": axis}, _note(outside, len(drawable) - len(on_axis), len(drawable)))


def _distance_view(traces: Sequence[go.Scatter], best: float, drawable: FloatArray) -> View:
    """How far each value is above the best one found, on a logarithmic axis."""
    data = [{"y": _positive(np.asarray(trace.y, dtype=float) - best)} for trace in traces]
    above = drawable[drawable > best] - best
    axis = {
        "type": "log",
        "title": {"text": "value above the best found"},
        "autorange": True,
        "range": None,
        "dtick": log_ticks(float(above.min()), float(above.max())) if above.size else None,
    }
    return View(data, {"yaxis": axis}, _note(0, int((drawable < best).sum()), len(drawable)))


def _note(outside: int, impossible: int, whole: int) -> str:
    """What a figure of all values leaves out."""
    sentences = []
    if whole > LARGE:
        sentences.append("The dots are an even selection of all evaluations.")
    if outside:
        sentences.append(
            f"{outside:,} of {whole:,} values lie outside this range; double-click the figure to see them."
        )
    if impossible:
        sentences.append(f"{impossible:,} of {whole:,} values are too low for this scale.")
    return " ".join(sentences)


def _positive(values: FloatArray) -> list[float | None]:
    return [value if value > 0 else None for value in values.tolist()]


def _values_for_axis(evaluations: Evaluations) -> FloatArray:
    """The values that determine the range of the axis: finite, and only the feasible ones if there are any."""
    finite = np.isfinite(evaluations.value)
    feasible = finite & (evaluations.violation == 0.0)
    return evaluations.value[feasible if feasible.any() else finite]


def violation(improvements: Improvements) -> Chart:
    """The violation of the best point so far, until a feasible one is found."""
    infeasible = improvements.violation > 0
    trace = go.Scatter(
        x=improvements.at[infeasible],
        y=improvements.violation[infeasible],
        mode="lines+markers",
        line={"color": colours.WARNING, "width": 2, "shape": "hv"},
        marker={"size": 4},
        hovertemplate="evaluation %{x}<br>violation %{y:.4~g}<extra></extra>",
    )
    axis = {"type": "log", "dtick": _log_ticks_of(improvements.violation[infeasible])}
    return Chart(figure([trace], "evaluation", "total violation", yaxis=axis, showlegend=False))


# Variables


def spread(series: Spread, generations: Generations, best: Value | None, restarts: Sequence[int]) -> Chart:
    """The mean of one variable with a band of one standard deviation; in the other view only that deviation."""
    x, traces = generations.number, _spread_traces(series, generations.number)
    if best is not None and len(x):
        traces.append(_best_mark(float(best), float(x[-1])))
    shown = [{"visible": trace.name != "standard deviation"} for trace in traces]
    hidden = [{"visible": trace.name == "standard deviation"} for trace in traces]
    drawn = figure(
        traces,
        "",
        "",
        hovermode="x unified",
        showlegend=False,
        shapes=restart_lines(restarts),
        xaxis_dtick=_generation_ticks(x),
    )
    axis: dict[str, Any] = {"type": "linear", **linear_ticks(*_ends(series.low, series.high))}
    if series.log:
        axis = {"type": "log", "dtick": _log_ticks_of(series.low, series.high)}
    if isinstance(series.variable, Bool):
        axis |= {"tickvals": [0, 1], "ticktext": ["False", "True"], "range": [-0.08, 1.08]}
    relative = "of the logarithm" if series.log else None
    log_axis = {
        "type": "log",
        "title": {"text": relative},
        "tickvals": None,
        "range": None,
        "autorange": True,
        "tickformat": None,
        "dtick": _log_ticks_of(series.deviation),
    }
    gaps = (
        "In the gaps it is 0: the search changes this variable only by mutation."
        if (series.deviation == 0).any()
        else ""
    )
    views = {SPREAD: View(shown, {"yaxis": axis}), DEVIATION: View(hidden, {"yaxis": log_axis}, gaps)}
    return Chart(drawn, views, SPREAD)


def _generation_ticks(x: NDArray[np.float32]) -> int | None:
    """The distance between ticks: 1 if there are few generations, so that no tick lies between two of them."""
    return 1 if len(x) <= FEW_GENERATIONS else None


def _ends(*columns: FloatArray) -> tuple[float, float]:
    """The smallest and the largest number; (0, 0) if there is none."""
    numbers = np.concatenate(columns)
    return (float(numbers.min()), float(numbers.max())) if numbers.size else (0.0, 0.0)


def _log_ticks_of(*columns: FloatArray) -> int | str | None:
    """The ticks of a logarithmic axis, on which only positive numbers can be drawn."""
    return log_ticks(*_ends(*(column[column > 0] for column in columns)))


def _spread_traces(series: Spread, x: Any) -> list[go.Scatter]:
    shape = "linear" if series.variable.size is None else "hv"
    edge = {"width": 0, "color": colours.ACCENT, "shape": shape}
    line = {"color": colours.ACCENT, "width": 1.75, "shape": shape}
    digits = "%{y:.5~g}<extra></extra>"
    return [
        go.Scatter(x=x, y=series.low, name="low", mode="lines", line=edge, hovertemplate="− deviation " + digits),
        go.Scatter(
            x=x,
            y=series.high,
            name="high",
            mode="lines",
            line=edge,
            fill="tonexty",
            fillcolor=colours.ACCENT_BAND,
            hovertemplate="+ deviation " + digits,
        ),
        go.Scatter(x=x, y=series.mean, name="mean", mode="lines", line=line, hovertemplate="mean " + digits),
        go.Scatter(
            x=x,
            y=series.deviation,
            name="standard deviation",
            mode="lines",
            line={**line, "shape": "linear"},
            visible=False,
            hovertemplate="standard deviation " + digits,
        ),
    ]


def _best_mark(best: float, end: float) -> go.Scatter:
    return go.Scatter(
        x=[end],
        y=[best],
        name="best",
        mode="markers",
        marker={"symbol": "diamond", "size": 9, "color": colours.GOOD, "line": {"width": 1.5, "color": colours.PAPER}},
        hovertemplate="best design %{y:.6~g}<extra></extra>",
        cliponaxis=False,
    )


# Values


def shares(series: Shares, generations: Generations, restarts: Sequence[int]) -> Chart:
    """The probabilities of a variable's values: stacked, or as separate lines on a logarithmic axis with the margin."""
    x = generations.number
    named = list(zip(series.values, series.probability, _value_colours(series)))
    if series.others is not None:
        named.append(("others", series.others, colours.OTHERS))
    areas = [_area(x, escaped(label), y, colour) for label, y, colour in named]
    margin = [] if series.margin is None else [_margin_line(x, series.margin)]
    drawn = figure(
        [*areas, *margin],
        "",
        "",
        legend={
            "traceorder": "reversed",
            "x": 1.01,
            "y": 1,
            "maxheight": LEGEND_HEIGHT,
            "font": {"size": 10.5},
        },
        shapes=restart_lines(restarts),
        showlegend=True,
        xaxis_dtick=_generation_ticks(x),
    )
    stacked = [{"visible": True} for _ in areas] + [{"visible": False} for _ in margin]
    lines = [{"stackgroup": None, "fill": "none", "line": {"width": 1.75, "color": area.fillcolor}} for area in areas]
    percent = {"tickformat": ".0%", "type": "linear", "range": [0, 1]}
    log = {"type": "log", "tickformat": ".3~p", "range": [math.log10(LEAST_PROBABILITY), 0.05], "dtick": 1}
    views = {
        STACKED: View(stacked, {"yaxis": percent}),
        LOGARITHMIC: View([*lines, *({"visible": True} for _ in margin)], {"yaxis": log}),
    }
    return Chart(drawn, views, STACKED)


def _value_colours(series: Shares) -> list[str]:
    return [colours.OFF, colours.ON] if isinstance(series.variable, Bool) else colours.ramp(len(series.values))


def _area(x: Any, name: str, y: FloatArray, colour: str) -> go.Scatter:
    return go.Scatter(
        x=x,
        y=y.astype(np.float32),
        name=name,
        mode="lines",
        stackgroup="one",
        line={"width": 0.5, "color": colours.PAPER},
        fillcolor=colour,
        hovertemplate="%{y:.3~g} in generation %{x}",
    )


def _margin_line(x: Any, margin: FloatArray) -> go.Scatter:
    return go.Scatter(
        x=x,
        y=margin.astype(np.float32),
        name="margin",
        mode="lines",
        visible=False,
        line={"width": 1.5, "dash": "dot", "color": colours.INK, "shape": "hv"},
        hovertemplate="%{y:.3~g} in generation %{x}",
    )


# Search


def step_size(generations: Generations, restarts: Sequence[int]) -> Chart:
    return _over_generations(generations, "step size", lambda series: series.step_size, restarts, colours.ACCENT)


def axis_ratio(generations: Generations, restarts: Sequence[int]) -> Chart:
    return _over_generations(generations, "axis ratio", lambda series: series.axis_ratio, restarts, colours.GOOD)


def _over_generations(
    generations: Generations,
    title: str,
    column: Callable[[Generations], FloatArray],
    restarts: Sequence[int],
    colour: str,
) -> Chart:
    series = generations.thinned(LARGE)
    where = "<br>run %{customdata[0]}, generation %{customdata[1]} of that run<extra></extra>"
    trace = go.Scatter(
        x=series.number,
        y=column(series),
        customdata=np.stack([series.run + 1, series.generation], axis=1),
        mode="lines",
        line={"color": colour, "width": 1.75},
        hovertemplate=title + " %{y:.4~g}" + where,
    )
    axis = {"type": "log", "dtick": _log_ticks_of(column(series))}
    drawn = figure([trace], "generation", title, yaxis=axis, shapes=restart_lines(restarts), showlegend=False)
    drawn.update_xaxes(dtick=_generation_ticks(series.number))
    return Chart(drawn)


def model_use(use: ModelUse) -> Chart:
    """Evaluations of the model's own points, of other candidates, and candidates that were ranked without one."""
    number = 1 + np.arange(len(use.proposed))
    parts = [
        ("the model's own points", use.proposed, colours.ACCENT),
        ("other candidates", use.drawn, colours.WARNING),
        ("ranked unseen", use.unseen, colours.GOOD),
    ]
    kept = thinned(len(number), LARGE)
    traces = [
        go.Scatter(
            x=number[kept],
            y=count[kept],
            name=name,
            mode="lines",
            line={"color": colour, "width": 1.75},
            hovertemplate="after evaluation %{x}<br>%{y} " + name + "<extra></extra>",
        )
        for name, count, colour in parts
    ]
    legend = {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"}
    drawn = figure(traces, "evaluation", "candidates so far", legend=legend, yaxis_rangemode="tozero", showlegend=True)
    return Chart(drawn)


def population(evaluations_before: Sequence[int], popsizes: Sequence[int], end: int) -> Chart:
    """The size of the population over evaluations; each run has its own."""
    trace = go.Scatter(
        x=[*evaluations_before, end],
        y=[*popsizes, popsizes[-1]],
        mode="lines+markers",
        line={"color": colours.WARNING, "width": 2, "shape": "hv"},
        marker={"size": 6},
        hovertemplate="from evaluation %{x}<br>population %{y}<extra></extra>",
    )
    return Chart(figure([trace], "evaluation", "population", yaxis_rangemode="tozero", showlegend=False))


# Failures


def failed(failures: Sequence[Failure], end: int) -> Chart:
    """When evaluations failed: one row per error, for the most frequent errors, numbered from 1."""
    listed = failures[:ERRORS_DRAWN]
    traces = [_failed_row(failure, row) for row, failure in enumerate(listed, start=1)]
    axis = {"dtick": 1, "range": [len(listed) + 0.5, 0.5], "showgrid": False}
    drawn = figure(traces, "evaluation", "error", yaxis=axis, showlegend=False, xaxis_range=_full_range(end))
    return Chart(drawn)


def _failed_row(failure: Failure, row: int) -> go.Scatter:
    at = np.array(failure.numbers)[thinned(failure.count, LARGE)]
    return go.Scatter(
        x=at,
        y=np.full(len(at), row),
        text=[escaped(shortened(failure.title))] * len(at),
        mode="markers",
        marker={"symbol": "line-ns", "size": 12, "line": {"width": 1.25, "color": colours.ERROR}},
        hovertemplate="evaluation %{x}<br>%{text}<extra></extra>",
    )
