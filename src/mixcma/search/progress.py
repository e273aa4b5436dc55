"""Where a search stands, and a live view of it in the terminal."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from mixcma.run.optimizer import Best
from mixcma.space import Value

BARS = "▁▂▃▄▅▆▇█"
SPARKLINE_WIDTH = 40
# The display keeps at most this many values for the sparkline, however many evaluations there are.
MOST_KEPT = 16 * SPARKLINE_WIDTH
# Positive values that differ by more than this factor are drawn on a logarithmic scale.
LOG_FROM = 100.0
# Seconds between two lines, where the output is not a terminal.
LINE_EVERY = 10.0


@dataclass(frozen=True)
class Progress:
    """Where a search stands at the end of a generation; what a callback receives."""

    evaluations: int
    budget: int
    run: int
    generation: int
    popsize: int
    step_size: float
    failures: int
    best: Best | None


@contextmanager
def progress_display(budget: int, console: Console | None = None) -> Iterator[Callable[[Progress], None]]:
    """A function to call with the progress after every evaluation: it feeds a live display in a terminal.

    Where the output is not a terminal, it prints a line now and then.
    """
    console = console or Console()
    view = View(budget)
    if console.is_terminal:
        with Live(view, console=console, refresh_per_second=8):
            yield view.show
    else:
        with _plain_lines(view, console) as show:
            yield show


@contextmanager
def _plain_lines(view: View, console: Console) -> Iterator[Callable[[Progress], None]]:
    printed_at, printed = -math.inf, None

    def line() -> None:
        nonlocal printed_at, printed
        if view.progress is not None and view.progress is not printed:
            printed_at, printed = time.monotonic(), view.progress
            with suppress(OSError):  # nobody reads it, or a disk is full: that is no reason to end a search
                console.print(Text(view.line()), soft_wrap=True)

    def show(progress: Progress) -> None:
        view.show(progress)
        if time.monotonic() - printed_at >= LINE_EVERY:
            line()

    try:
        yield show
    finally:
        line()


class View:
    """What the display shows; rich renders it several times per second."""

    def __init__(self, budget: int) -> None:
        self.progress: Progress | None = None
        self._budget = budget
        self._began = time.monotonic()
        self._first = 0  # evaluations before the display began, where a search is continued
        self._best_values = Thinned(MOST_KEPT)

    def show(self, progress: Progress) -> None:
        if self.progress is None:
            self._first = progress.evaluations - 1
        self.progress = progress
        if progress.best is not None and math.isfinite(progress.best.value):
            self._best_values.add(progress.best.value)

    def line(self) -> str:
        """The same in one line of plain text."""
        progress = self.progress
        assert progress is not None
        parts = [f"{progress.evaluations}/{progress.budget} evaluations", best_text(progress), _where(progress)]
        if progress.failures:
            parts.append(f"{progress.failures} failed")
        return ", ".join(parts)

    def __rich__(self) -> RenderableType:
        progress = self.progress
        if progress is None:
            return Text("the first evaluation is under way")
        head = Table.grid(padding=(0, 2))
        bar = ProgressBar(total=progress.budget, completed=progress.evaluations, width=24)
        head.add_row(bar, f"{progress.evaluations}/{progress.budget}", self._pace(progress), _failures(progress))
        best = Text.assemble((best_text(progress), "bold"), "  ", (sparkline(self._best_values.values), "cyan"))
        lines: list[RenderableType] = [head, best]
        if progress.best is not None:
            lines.append(Text(params_text(progress.best.params), style="dim", overflow="ellipsis", no_wrap=True))
        lines.append(Text(_where(progress), style="dim"))
        return Group(*lines)

    def _pace(self, progress: Progress) -> str:
        """Evaluations per second, and how long the rest of the budget takes at that rate."""
        seconds, done = time.monotonic() - self._began, progress.evaluations - self._first
        if seconds <= 0 or done <= 0:
            return ""
        rate = done / seconds
        shown = f"{rate:.3g}/s" if rate >= 1 else f"{1 / rate:.3g} s each"
        return f"{shown}, at most {duration((progress.budget - progress.evaluations) / rate)} left"


class Thinned:
    """An evenly spaced selection of a growing series: at most `most` values, the first and the newest among them."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._every = 1  # the distance between the selected values
        self._selected: list[float] = []
        self._count, self._newest = 0, math.nan

    @property
    def values(self) -> list[float]:
        newest_is_selected = (self._count - 1) % self._every == 0
        return [*self._selected] if newest_is_selected else [*self._selected, self._newest]

    def add(self, value: float) -> None:
        if self._count % self._every == 0:
            self._selected.append(value)
        self._count, self._newest = self._count + 1, value
        if len(self._selected) == self._most:
            del self._selected[1::2]
            self._every *= 2


def sparkline(values: Sequence[float], width: int = SPARKLINE_WIDTH) -> str:
    """Values over time as a line of bars."""
    finite = [value for value in values if math.isfinite(value)]
    if not finite:
        return ""
    if len(finite) > width:
        finite = [finite[i * (len(finite) - 1) // (width - 1)] for i in range(width)]
    if min(finite) > 0 and max(finite) > LOG_FROM * min(finite):
        finite = [math.log(value) for value in finite]
    low, span = min(finite), max(finite) - min(finite)
    if span == 0:
        return BARS[0] * len(finite)
    return "".join(BARS[min(7, int(8 * (value - low) / span))] for value in finite)


def duration(seconds: float) -> str:
    """Seconds in words: 20 µs, 136 ms, 4.2 s, 42 s, 3 min 20 s, 2 h 5 min, 3 d 4 h."""
    if not math.isfinite(seconds):
        return "forever"
    if seconds < 10:
        unit, scale = ("s", 1.0) if seconds >= 1 else ("ms", 1e3) if seconds >= 1e-3 else ("µs", 1e6)
        return f"{seconds * scale:.3g} {unit}"
    units = (("d", 86400), ("h", 3600), ("min", 60), ("s", 1))
    left, parts = round(seconds), list[str]()
    for name, length in units:
        count, left = divmod(left, length)
        if count or (name == "s" and not parts):
            parts.append(f"{count} {name}")
    return " ".join(parts[:2])


def best_text(progress: Progress) -> str:
    best = progress.best
    if best is None:
        return "no evaluation has succeeded yet"
    if best.feasible:
        return f"best {best.value:.8g}"
    return f"nothing feasible yet, violation {best.violation:.3g}"


def params_text(params: dict[str, Value]) -> str:
    return "  ".join(f"{printable(name)}={value_text(value)}" for name, value in params.items())


def value_text(value: Value) -> str:
    return f"{value:.6g}" if isinstance(value, float) else printable(str(value))


def printable(text: str) -> str:
    """A text that is safe to print: what would act on the terminal is written as an escape sequence like ``\\x1b``."""
    return text if text.isprintable() else "".join(map(_visible, text))


def printable_lines(text: str) -> str:
    """The same for a text of several lines, which stay as they are."""
    return "\n".join(printable(line.replace("\t", "    ")) for line in text.split("\n"))


def _visible(letter: str) -> str:
    return letter if letter.isprintable() else letter.encode("unicode_escape").decode()


def _where(progress: Progress) -> str:
    return f"run {progress.run + 1}, generation {progress.generation}, population {progress.popsize}"


def _failures(progress: Progress) -> Text:
    return Text(f"{progress.failures} failed" if progress.failures else "", style="red")
