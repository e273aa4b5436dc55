"""The report page: the numbers, tables and figures of a record in one self-contained HTML file."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from os import PathLike
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from plotly.io.json import to_json_plotly
from plotly.offline import get_plotlyjs

from mixcma.latent.encoding import Encoding
from mixcma.report import colours, figures, recipe, tables, text
from mixcma.report.chart import Chart, template
from mixcma.report.series import (
    SMALL,
    Evaluations,
    Generations,
    encoding_of,
    evaluations_of,
    generations_of,
    improvements_of,
    model_use_of,
    restarts_of,
    shares_of,
    spreads_of,
)
from mixcma.store import Record, read

HERE = Path(__file__).parent
SETTINGS_SHOWN = ("seed", "popsize", "budget", "target", "restarts", "cache", "asynchronous")
# Characters that could end a script element or begin a new one; written as escapes, which JSON reads as the same text.
_IN_SCRIPT = {ord(sign): f"\\u{ord(sign):04x}" for sign in "<>&\u2028\u2029"}

Context = dict[str, Any]


def write_report(run_file: str | PathLike[str], out: str | PathLike[str]) -> Path:
    """Write the report of a run file to the file `out`, and return its path.

    This also works while the run is still going on.
    """
    source, page = Path(run_file), Path(out)
    record = read(source)
    if page.exists() and page.samefile(source):
        raise ValueError(
            f"out: expected a path other than that of the run file, but got {page}; write to {page.stem}.html"
        )
    if not page.parent.is_dir():
        raise ValueError(f"out: expected a folder at {page.parent}, but there is none; create it first")
    page.write_text(build_report(record), encoding="utf-8")
    return page


def build_report(record: Record) -> str:
    """Return the report of a run as one HTML page, with its figures, scripts and styles included."""
    encoding, evaluations = encoding_of(record), evaluations_of(record)
    generations = generations_of(record, encoding)
    context = {
        **_frame(),
        **_heading(record, encoding),
        **_overview(record, evaluations),
        **_variables(record, encoding, evaluations, generations),
        **_search(record, evaluations, generations),
        **_points(record, evaluations),
        **_failures(evaluations),
        **_settings(record),
    }
    page = _environment().get_template("template.html.j2").render(context)
    return page.encode("utf-8", "replace").decode()  # names may contain lone surrogates, which UTF-8 cannot encode


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(HERE), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {"number": text.number, "span": text.span, "moment": text.moment, "count": text.count}
    environment.filters |= {
        "design": tables.design_text,
        "chart": embedded,
        "setting": text.setting,
        "share": text.share,
        "sortable": text.sortable,
    }
    return environment


def embedded(chart: Chart) -> Markup:
    """A chart as JSON that can be put inside a script element."""
    views = {name: vars(view) for name, view in chart.views.items()}
    return _json({**chart.figure.to_dict(), "views": views, "first": chart.first})


def _json(value: object) -> Markup:
    return Markup(to_json_plotly(value, engine="json").translate(_IN_SCRIPT))


@cache
def _frame() -> Context:
    """What all pages share. The security policy allows these two scripts and no others, and no network access."""
    scripts = [get_plotlyjs(), (HERE / "page.js").read_text(encoding="utf-8")]
    allowed = " ".join(f"'sha256-{_digest(script)}'" for script in scripts)
    return {
        "policy": f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data: blob:",
        "style": Markup((HERE / "page.css").read_text(encoding="utf-8")),
        "scripts": [Markup(script) for script in scripts],
        "theme": _json({"template": template().to_plotly_json(), "dark": colours.DARK}),
    }


def _digest(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def _heading(record: Record, encoding: Encoding) -> Context:
    method = record.settings["method"]
    discrete = int(encoding.coordinates.discrete.sum())
    return {
        "title": record.path.name,
        "method": recipe.method_name(method),
        "mutated": method["type"] == "IntegerMutation",
        "dimension": encoding.dimension,
        "discrete": discrete,
        "created": record.settings["created"],
        "seed": record.settings["seed"],
    }


def _overview(record: Record, evaluations: Evaluations) -> Context:
    summary, improvements = tables.summary_of(record, evaluations), improvements_of(evaluations)
    restarts = [run.evaluations_before for run in record.runs[1:]]
    was_infeasible = int((improvements.violation > 0).sum()) > 1
    return {
        "summary": summary,
        "constrained": evaluations.constrained,
        "populations": tables.populations(record),
        "best_design": tables.components(record.space, summary.best.params) if summary.best else [],
        "best_value": figures.best_value(improvements, evaluations, record.settings["target"], restarts),
        "violation": figures.violation(improvements) if was_infeasible else None,
    }


def _variables(record: Record, encoding: Encoding, evaluations: Evaluations, generations: Generations) -> Context:
    restarts, shown = restarts_of(generations), generations.thinned(SMALL)
    best = tables.best_point(evaluations)
    params = best.params if best else {}
    spreads = {
        each.name: (each, figures.spread(each, shown, params.get(each.name), restarts))
        for each in spreads_of(encoding, shown)
    }
    shares = {each.name: (each, figures.shares(each, shown, restarts)) for each in shares_of(record, encoding, shown)}
    return {
        "domains": {name: text.domain(record.space, name) for name in record.space},
        "best_params": params,
        "generations": len(generations),
        # what the search treats as a category has no mean: its probabilities are shown instead
        "looked": [(name, spreads.get(name), shares.get(name)) for name in record.space.free],
        "categories": len(spreads) < len(record.space.free),
        "shares": list(shares.values()),
    }


def _search(record: Record, evaluations: Evaluations, generations: Generations) -> Context:
    restarts = restarts_of(generations)
    before, popsizes = [run.evaluations_before for run in record.runs], [run.popsize for run in record.runs]
    runs, use = tables.runs_of(record, evaluations), model_use_of(record, evaluations)
    return {
        "runs": runs,
        "reasons": tables.reasons_of(runs),
        "step_size": figures.step_size(generations, restarts),
        "axis_ratio": figures.axis_ratio(generations, restarts),
        "model_use": figures.model_use(use) if len(evaluations) and use.proposed[-1] + use.unseen[-1] else None,
        "population": figures.population(before, popsizes, len(evaluations)) if len(popsizes) > 1 else None,
    }


def _points(record: Record, evaluations: Evaluations) -> Context:
    return {"points": tables.best_designs(record.space, evaluations), "variables": record.space.names}


def _failures(evaluations: Evaluations) -> Context:
    found = tables.failures_of(evaluations)
    return {
        "failures": found[: tables.ERRORS_SHOWN],
        "more_failures": len(found) - tables.ERRORS_SHOWN,
        "failed": figures.failed(found, len(evaluations)),
    }


def _settings(record: Record) -> Context:
    settings, notes = record.settings, dict(record.settings.get("notes", {}))
    problem = notes.pop("problem", None)
    shown = {name: settings[name] for name in SETTINGS_SHOWN}
    return {
        "settings": {"method": recipe.method_name(settings["method"]), **shown},
        "stopping": settings["stopping"],
        "versions": settings["versions"],
        "notes": notes,
        "problem": problem,
        "python_call": recipe.python_call(record),
        "python_resume": recipe.python_resume(record),
        "commands": recipe.commands(record),
    }
