"""The report page is complete for every kind of run, safe whatever the run contains, and small."""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import dataclass
from html.parser import HTMLParser

import pytest

from mixcma import Cma, minimize
from mixcma.core.methods import METHODS
from mixcma.report import build_report, write_report
from mixcma.report.chart import escaped
from mixcma.store import read
from tests.report.runs import EVIL, EVIL_NAMES, PLANE, RUNS, make, sphere

VOID = {"meta", "link", "br"}
TABS = ["overview", "variables", "values", "search", "points", "failures", "settings"]


class Page(HTMLParser):
    """The elements of a page, its visible text, and the contents of its scripts."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.text, self.data, self.programs, self._open = [], [], [], [], []
        self.feed(text)
        assert self._open == []

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag not in VOID:
            self._open.append(tag)
            if tag == "script":
                (self.data if ("type", "application/json") in attributes else self.programs).append("")

    def handle_startendtag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self._open.pop() == tag

    def handle_data(self, data):
        if self._open and self._open[-1] == "script":
            kind = self.data if self.elements[-1][1].get("type") == "application/json" else self.programs
            kind[-1] += data
        elif not self._open or self._open[-1] != "style":
            self.text.append(data)

    @property
    def words(self):
        return " ".join("".join(self.text).split())

    @property
    def charts(self):
        return [chart for chart in map(json.loads, self.data) if "data" in chart]


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """Name of a run -> its parsed page; each page is made only once."""
    made = {}

    def of(name):
        if name not in made:
            path = tmp_path_factory.mktemp("pages") / "run.db"
            make(name, path)
            made[name] = Page(build_report(read(path)))
        return made[name]

    return of


def strings(value):
    """All strings in a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for entry in value.values() if isinstance(value, dict) else value:
            yield from strings(entry)


@pytest.mark.parametrize("name", RUNS)
def test_every_kind_of_run_has_a_whole_page(page, name):
    found = page(name)
    assert [a["aria-controls"] for tag, a in found.elements if a.get("role") == "tab"] == TABS
    assert [a["id"] for tag, a in found.elements if a.get("role") == "tabpanel"] == TABS
    ids = [a["id"] for _, a in found.elements if "id" in a]
    assert len(ids) == len(set(ids))
    assert len(found.programs) == 2
    figures = [a for tag, a in found.elements if tag == "figure"]
    assert len(figures) == len(found.charts) == len(found.data) - 1
    assert all(a["aria-label"] for a in figures)


@pytest.mark.parametrize("name", RUNS)
def test_nothing_links_to_the_outside(page, name):
    for tag, attributes in page(name).elements:
        assert tag not in ("iframe", "img", "object", "embed", "base", "form")
        assert not any(key.startswith("on") or key == "src" for key in attributes)
        assert attributes.get("href", "data:,") == "data:,"


def test_the_policy_allows_the_two_scripts_and_no_address(page):
    found = page("mixed")
    policy = next(a["content"] for _, a in found.elements if a.get("http-equiv") == "Content-Security-Policy")
    digests = [base64.b64encode(hashlib.sha256(program.encode()).digest()).decode() for program in found.programs]
    allowed = " ".join(f"'sha256-{digest}'" for digest in digests)
    assert policy == f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data: blob:"


def test_markup_in_names_and_errors_is_text(page):
    """The page has the same elements as without the markup, and all of the markup is shown as text."""
    found = page("evil")
    tags = {tag for tag, _ in found.elements}
    assert tags == {tag for tag, _ in page("twenty").elements}
    for name in EVIL_NAMES:
        assert " ".join(name.split()) in found.words
    assert EVIL in found.words


def test_the_data_contain_no_markup_characters(page):
    for data in page("evil").data:
        assert not set("<>&\u2028\u2029") & set(data)


def test_texts_that_plotly_reads_are_escaped(page):
    known = ("<br>", "<extra></extra>")
    for chart in page("evil").charts:
        for text in strings(chart):
            for tag in known:
                text = text.replace(tag, "")
            assert "<" not in text
            assert "hacked" not in text or "&lt;" in text


def test_escaping_keeps_what_is_read():
    assert escaped(f"{EVIL} & more") == "&lt;script&gt;window.hacked = 1; alert(1)&lt;/script&gt; &amp; more"


def test_two_thousand_evaluations_fit_into_six_megabytes(tmp_path):
    make("twenty", tmp_path / "run.db")
    out = write_report(tmp_path / "run.db", tmp_path / "run.html")
    assert out.stat().st_size < 6_000_000


def test_no_line_has_more_points_than_can_be_seen(page):
    sizes = {"f8": 8, "f4": 4, "i1": 1, "u1": 1, "i2": 2, "u2": 2, "i4": 4, "u4": 4}
    lengths = []
    for trace in (trace for chart in page("twenty").charts for trace in chart["data"]):
        y = trace["y"]
        lengths.append(len(base64.b64decode(y["bdata"])) // sizes[y["dtype"]] if isinstance(y, dict) else len(y))
    assert 100 < max(lengths) <= 1001


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("constrained", "feasible"),
        ("infeasible", "not feasible, violation"),
        ("failing", "every evaluation failed"),
        ("failing", "ZeroDivisionError: division by zero"),
        ("nothing finished", "no evaluation has finished"),
        ("nothing finished", "The run was interrupted."),
        ("target", "The target was reached. Lower the target to go further."),
        ("restarts", "restarts"),
        ("cached", "From memory"),
        ("restarts", "The search has contracted to the precision of floats."),
        ("mixed", "The axis ratio is the length of the cloud divided by its breadth"),
        ("floats", "Every variable of this run is a float"),
        ("mixed", "Nothing failed."),
        ("integer mutation", "before the integer mutation"),
        ("twenty", "RuntimeError: no mesh at x0"),
        ("asynchronous", "it cannot be repeated exactly"),
        ("given points", "x0=[{'x': 1.0, 'n': 2}, {'x': -3.0, 'n': 7}]"),
        ("mixed", "result = mixcma.resume('run.db', objective, budget=800)"),
    ],
)
def test_the_page_says_what_happened(page, name, sentence):
    assert sentence in page(name).words


def test_a_problem_file_is_shown_with_its_commands(tmp_path):
    problem = {"text": 'command = "<run> {x}"', "folder": str(tmp_path), "path": "problem.toml"}
    make("floats", tmp_path / "run.db", notes={"problem": problem, "ticket": "A & B"})
    words = Page(build_report(read(tmp_path / "run.db"))).words
    assert 'command = "<run> {x}"' in words
    assert (
        "mixcma run problem.toml --seed 1 --budget 100 --run-file again.db mixcma resume run.db --budget 200" in words
    )
    assert "A & B" in words


def test_a_report_can_be_made_while_the_run_goes_on(tmp_path):
    pages = []

    def look(progress):
        pages.append(build_report(read(tmp_path / "run.db")))
        return len(pages) == 3

    make("constrained", tmp_path / "run.db", callback=look)
    words = Page(pages[-1]).words
    assert "The run has not ended" in words
    assert "it continues where it stopped" in words


def test_the_run_file_is_never_written_over(tmp_path):
    path = tmp_path / "run.db"
    make("floats", path)
    (tmp_path / "other.db").symlink_to(path)
    before = path.read_bytes()
    for out in (path, tmp_path / "other.db"):
        with pytest.raises(ValueError, match="a path other than that of the run file"):
            write_report(path, out)
    assert path.read_bytes() == before


def test_a_missing_folder_is_refused_with_a_sentence(tmp_path):
    make("floats", tmp_path / "run.db")
    with pytest.raises(ValueError, match=r"expected a folder at .*nowhere, but there is none; create it first"):
        write_report(tmp_path / "run.db", tmp_path / "nowhere" / "run.html")


def test_a_report_is_written_where_it_was_asked_for(tmp_path):
    make("floats", tmp_path / "run.db")
    assert write_report(str(tmp_path / "run.db"), str(tmp_path / "out.html")) == tmp_path / "out.html"
    assert (tmp_path / "out.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


@pytest.mark.parametrize("method", METHODS)
def test_the_method_is_called_by_its_name(tmp_path, method):
    minimize(sphere, PLANE, budget=20, seed=1, method=method, run_file=tmp_path / "run.db")
    assert f"method {method} · 2 variables" in Page(build_report(read(tmp_path / "run.db"))).words


def test_where_a_variable_exists_is_said(page):
    words = page("branches").words
    assert "only where alloy is steel or brass and welded is True" in words
    assert "Bool(when={'alloy': ['steel', 'brass']})" in words
    assert "float, 0 to 2, only where alloy is steel" in words


@pytest.mark.parametrize("name", ["choices", "mixed", "integer mutation", "branches"])
def test_no_variable_is_missing(page, name):
    """Every free variable has a figure of where the search looked; discrete ones have one of their values as well."""
    free = RUNS[name][1].free
    labels = [a["aria-label"] for tag, a in page(name).elements if tag == "figure"]
    looked = [label.split(" of ")[-1] for label in labels if label.startswith(("Mean", "Probability of the choices"))]
    assert looked == list(free)
    values = [label.split(" of ")[-1] for label in labels if label.startswith("Probability of the values")]
    assert values == [variable for variable in free if free[variable].size is not None]


def test_categories_are_shown_by_their_probabilities(page):
    assert "have no mean: their figures show how likely each choice was" in page("choices").words
    assert "have no mean" not in page("integer mutation").words


def test_a_user_defined_method_is_named(tmp_path):
    @dataclass(frozen=True)
    class Mine(Cma):
        pass

    minimize(sphere, PLANE, budget=20, seed=1, method=Mine(), run_file=tmp_path / "run.db")
    words = Page(build_report(read(tmp_path / "run.db"))).words
    assert "method=Mine(...)" in words
