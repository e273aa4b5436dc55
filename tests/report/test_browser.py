"""The page in a browser: everything is drawn, nothing is loaded, and no script from the run's data is executed."""

from __future__ import annotations

import shutil

import pytest
from playwright.sync_api import sync_playwright

from mixcma.report import write_report
from tests.report.runs import EVIL, make

pytestmark = pytest.mark.needs("chromium")

ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
DESK, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
TABS = ["overview", "variables", "values", "search", "points", "failures", "settings"]
# The number of figures in each section of the report of the run "twenty".
FIGURES = {"overview": 1, "variables": 20, "values": 12, "search": 2, "points": 0, "failures": 1, "settings": 0}
NOT_DRAWN = """(tab) => [...document.querySelectorAll(`#${tab} figure.chart`)]
    .filter((figure) => !figure.dataset.drawn || !figure.querySelector("svg.main-svg .trace")).length"""
OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


@pytest.fixture(scope="module")
def browser():
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=shutil.which("chromium"), headless=True, args=ARGUMENTS)
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """Name of a run -> the file of its report; each report is made only once."""
    made = {}

    def of(name):
        if name not in made:
            folder = tmp_path_factory.mktemp("report")
            make(name, folder / "run.db")
            made[name] = write_report(folder / "run.db", folder / "run.html")
        return made[name]

    return of


@pytest.fixture
def visit(browser):
    """Open a file; whatever went wrong on the page is reported when the test ends."""
    contexts, wrong = [], []

    def opened(file, viewport=DESK, **options):
        context = browser.new_context(viewport=viewport, **options)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: wrong.append(f"console: {message.type} {message.text}"))
        page.on("pageerror", lambda error: wrong.append(f"error: {error}"))
        page.on("dialog", lambda dialog: (wrong.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        page.on("request", lambda request: wrong.append(request.url) if request.url != file.as_uri() else None)
        page.goto(file.as_uri())
        return page

    yield opened
    for context in contexts:
        context.close()
    assert wrong == []


def open_tab(page, tab):
    page.click(f"#tab-{tab}")
    page.wait_for_function(f"(tab) => ({NOT_DRAWN})(tab) === 0", arg=tab)


def test_every_section_draws_its_figures_when_it_is_opened(visit, report, tmp_path):
    page = visit(report("twenty"))
    assert page.locator("section:visible").count() == 1
    for tab in TABS:
        drawn_before = page.locator(f"#{tab} figure[data-drawn]").count()
        assert drawn_before == 0 or tab == "overview"
        open_tab(page, tab)
        assert page.locator(f"#{tab}").is_visible()
        assert page.locator("section:visible").count() == 1
        assert page.locator(f"#{tab} figure[data-drawn] svg.main-svg .trace").count() >= FIGURES[tab]
        assert page.locator(f"#{tab} figure").count() == FIGURES[tab]
    hide_with_legend(page)
    open_tab(page, "overview")
    page.screenshot(path=tmp_path / "overview.png", full_page=True)
    assert (tmp_path / "overview.png").stat().st_size > 20_000


def hide_with_legend(page):
    """A click on an entry of a legend hides its line."""
    open_tab(page, "values")
    figure = page.locator("#values figure").first
    shown = figure.locator(".scatterlayer .trace").count()
    figure.locator(".legendtoggle").first.click()
    traces = "document.querySelector('#values figure').querySelectorAll('.scatterlayer .trace').length"
    page.wait_for_function(f"() => {traces} === {shown - 1}")


def test_a_view_changes_all_figures_of_its_section(visit, report):
    page = visit(report("mixed"))
    canvases = "[...document.querySelectorAll(`#${tab} figure[data-group] .canvas`)]"
    axis_types = f"(tab) => {canvases}.map((c) => c._fullLayout.yaxis.type)"
    for tab, view in (("variables", "deviation"), ("values", "logarithmic"), ("overview", "distance")):
        open_tab(page, tab)
        page.click(f"#{tab} [data-view={view}]")
        page.wait_for_function(f"(tab) => ({axis_types})(tab).every((type) => type === 'log')", arg=tab)
        assert page.get_attribute(f"#{tab} [data-view={view}]", "aria-pressed") == "true"


def test_arrow_keys_move_between_sections(visit, report):
    page = visit(report("constrained"))
    page.focus("#tab-overview")
    page.keyboard.press("ArrowRight")
    assert page.locator("#variables").is_visible()
    page.keyboard.press("End")
    assert page.locator("#settings").is_visible()
    page.keyboard.press("ArrowRight")
    assert page.locator("#overview").is_visible()
    assert page.evaluate("document.activeElement.id") == "tab-overview"


def test_a_heading_sorts_the_points(visit, report):
    page = visit(report("constrained"))
    open_tab(page, "points")
    ranks = "[...document.querySelectorAll('#points tbody tr')].map((row) => Number(row.children[0].textContent))"
    assert page.evaluate(ranks)[:3] == [1, 2, 3]
    page.click("#points th:first-child button")
    assert page.evaluate(ranks)[-3:] == [3, 2, 1]
    page.click("#points th:nth-child(4) button")
    numbers = page.evaluate(
        "[...document.querySelectorAll('#points tbody tr')].map((r) => +r.children[3].dataset.sort)"
    )
    assert numbers == sorted(numbers)


def test_choices_are_sorted_as_words(visit, report):
    page = visit(report("choices"))
    open_tab(page, "points")
    page.click("#points th:has-text('alloy') button")
    cells = "[...document.querySelectorAll('#points tbody tr')].map((row) => row.children[5].textContent)"
    shown = page.evaluate(cells)
    assert len(set(shown)) == 4
    assert shown == sorted(shown, key=lambda cell: (not cell.isdigit(), cell.lower()))


IN_VIEW = """[...document.querySelectorAll(`#${tab} figure[data-group] .canvas`)]
    .every((canvas) => canvas._fullLayout.yaxis.uirevision === view)"""
LABELS = """(tab) => [...document.querySelectorAll(`#${tab} .canvas`)].flatMap((canvas) =>
    [...canvas.querySelectorAll(".ytick text, .xtick text")].map((label) => {
        const { top, bottom, left, right } = label.getBoundingClientRect();
        return { text: label.textContent, top, bottom, left, right, of: canvas.closest("figure").ariaLabel };
    }))"""


def overlapping(labels):
    """The pairs of labels of one figure of which one covers more than a third of the other's height."""
    for i, a in enumerate(labels):
        for b in labels[:i]:
            height = min(a["bottom"], b["bottom"]) - max(a["top"], b["top"])
            width = min(a["right"], b["right"]) - max(a["left"], b["left"])
            if a["of"] == b["of"] and width > 0 and height > (a["bottom"] - a["top"]) / 3:
                yield a["of"], a["text"], b["text"]


@pytest.mark.parametrize("name", ["decades", "mixed"])
def test_the_numbers_beside_the_axes_can_be_read(visit, report, name):
    page = visit(report(name))
    views = [("overview", "linear"), ("overview", "log"), ("overview", "distance"), ("search", "")]
    for tab, view in [*views, ("variables", "spread"), ("variables", "deviation")]:
        open_tab(page, tab)
        if view:
            page.click(f"#{tab} [data-view={view}]")
            page.wait_for_function(f"([tab, view]) => {IN_VIEW}", arg=[tab, view])
        labels = page.evaluate(LABELS, tab)
        assert len(labels) > 4
        assert list(overlapping(labels)) == []
        assert not [label["text"] for label in labels if label["text"].startswith("0.") and "×" in label["text"]]


def test_a_view_says_what_it_leaves_out(visit, report):
    page = visit(report("decades"))
    open_tab(page, "overview")
    page.click("[data-view=linear]")
    page.wait_for_function("() => document.querySelector('#overview .note').textContent.includes('outside this range')")
    page.click("[data-view=log]")
    page.wait_for_function("() => document.querySelector('#overview .note').textContent === ''")


def test_markup_in_a_run_does_nothing(visit, report):
    page = visit(report("evil"), PHONE)
    for tab in TABS:
        open_tab(page, tab)
        assert page.evaluate(OVERFLOW) == 0
    for view in ("deviation", "logarithmic"):
        page.evaluate("(view) => document.querySelector(`[data-view=${view}]`).click()", view)
    open_tab(page, "failures")
    assert EVIL in page.locator("#failures summary").first.inner_text()
    page.locator("#failures .canvas").hover()
    open_tab(page, "variables")
    assert page.locator("#variables h3").first.inner_text() == EVIL
    page.locator("#variables .canvas").first.hover()
    assert page.evaluate("window.hacked") is None
    assert page.locator("svg a").count() == 0


def test_a_phone_needs_no_sideways_scrolling(visit, report, tmp_path):
    page = visit(report("twenty"), PHONE, has_touch=True, is_mobile=True)
    for tab in TABS:
        open_tab(page, tab)
        assert page.evaluate(OVERFLOW) == 0
        assert page.evaluate("window.visualViewport.width") == pytest.approx(PHONE["width"], abs=1)
    page.screenshot(path=tmp_path / "phone.png")


def test_dark_follows_the_system_and_the_toggle(visit, report, tmp_path):
    page = visit(report("constrained"), color_scheme="dark")
    open_tab(page, "overview")
    background = "getComputedStyle(document.body).backgroundColor"
    paper = "document.querySelector('#overview .canvas')._fullLayout.paper_bgcolor"
    assert page.evaluate(background) == "rgb(18, 19, 22)"
    assert page.evaluate(paper) == "#1a1c20"
    page.screenshot(path=tmp_path / "dark.png")
    page.click("#theme-toggle")
    page.wait_for_function(f"() => {paper} === '#ffffff'")
    assert page.evaluate(background) == "rgb(246, 246, 243)"
    page.click("#theme-toggle")
    page.emulate_media(color_scheme="light")
    page.wait_for_function(f"() => {paper} === '#1a1c20'")


@pytest.mark.parametrize("name", ["failing", "infeasible", "one evaluation", "nothing finished"])
def test_unusual_runs_are_drawn_too(visit, report, name):
    page = visit(report(name))
    for tab in TABS:
        open_tab(page, tab)


def test_sixty_variables_are_drawn_only_when_they_are_looked_at(visit, report):
    page = visit(report("sixty"))
    open_tab(page, "overview")
    assert page.locator("#variables figure").count() == 60
    assert page.locator("#variables figure[data-drawn]").count() == 0
    open_tab(page, "variables")
    assert page.locator("#values figure[data-drawn]").count() == 0


def test_the_design_can_be_copied(visit, report):
    page = visit(report("constrained"), permissions=["clipboard-read", "clipboard-write"])
    page.click("#overview .copy")
    page.wait_for_function("() => document.querySelector('#overview .copy').textContent === 'Copied'")
    assert page.evaluate("navigator.clipboard.readText()").startswith("{'x': ")
