"""Settings: what defines a search apart from its objective; in the run file as JSON, compared when it continues."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np

from mixcma.core.methods import METHODS, CatMargin, Cma, IntegerMutation, Margin, Method, Mix
from mixcma.core.stopping import Stopping
from mixcma.latent.encoding import Encoding
from mixcma.run.optimizer import Optimizer
from mixcma.run.restarts import restart_popsize, start_mean
from mixcma.run.warm_start import History
from mixcma.space import Space
from mixcma.version import __version__

KINDS: dict[str, type[Method]] = {kind.__name__: kind for kind in (Cma, Margin, IntegerMutation, CatMargin, Mix)}


@dataclass(frozen=True)
class Settings:
    space: Space
    method: Method
    seed: int
    popsize: int  # of the first run
    budget: int
    target: float | None
    restarts: bool | int
    cache: bool
    asynchronous: bool
    stopping: Stopping

    def optimizer(self, run: int, history: History = ()) -> Optimizer:
        """The optimizer of a run: where it starts, and how large its population is."""
        return Optimizer(
            self.space,
            method=self.method,
            seed=self.seed,
            popsize=restart_popsize(self.popsize, run),
            mean=None if run == 0 else start_mean(Encoding(self.space, self.method.takes_categories), self.seed, run),
            history=history,
            stopping=self.stopping,
            target=self.target,
            run=run,
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            **{field.name: getattr(self, field.name) for field in fields(self)},
            "space": self.space.to_dict(),
            "method": describe_method(self.method),
            "stopping": asdict(self.stopping),
        }

    @classmethod
    def from_dict(cls, kept: Mapping[str, Any]) -> Settings:
        """The settings that `to_dict` described; other entries are ignored."""
        return cls(
            **{
                **{field.name: kept[field.name] for field in fields(cls)},
                "space": Space.from_dict(kept["space"]),
                "method": method_from(kept["method"]),
                "stopping": Stopping(**kept["stopping"]),
            }
        )


def describe_method(method: Method) -> dict[str, Any]:
    return {"type": type(method).__name__, **asdict(method)}


def method_from(description: Mapping[str, Any]) -> Method:
    """The method that `describe_method` described."""
    options = _with_model(description)
    kind = KINDS.get(options.pop("type"))
    if kind is None:
        raise ValueError(
            f"method: expected one of mixcma's own, but the run was made with {description['type']}; continue it with "
            "minimize(..., method=..., run_file=...)"
        )
    return kind(**options)


def _with_model(description: Mapping[str, Any]) -> dict[str, Any]:
    """The description of a method; in a file that is older than the model of mix, it says nothing of it."""
    return {"model": False, **description} if description["type"] == Mix.__name__ else dict(description)


def versions() -> dict[str, str]:
    return {"mixcma": __version__, "numpy": np.__version__, "python": platform.python_version()}


def refuse_differences(path: object, kept: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    """Refuse settings that would make it another run. None in `given` means that the setting stays as it was."""
    found = []
    for name, value in given.items():
        if name == "space":
            found += _space_differences(kept[name], value)
        elif value is not None and value != (_with_model(kept[name]) if name == "method" else kept[name]):
            found.append(f"{name} was {_shown(kept[name])} and is now {_shown(value)}")
    if found:
        raise ValueError(
            f"run_file: {path} holds another run: {'; '.join(found)}; repeat the original call, or use another run file"
        )


def _space_differences(kept: Mapping[str, Any], given: Mapping[str, Any]) -> list[str]:
    found = [f"{name} was in the space and is not now" for name in kept if name not in given]
    found += [f"{name} was not in the space and is now" for name in given if name not in kept]
    for name in kept:
        if name in given and kept[name] != given[name]:
            was, now = (Space.from_dict({name: side[name]})[name] for side in (kept, given))
            found.append(f"{name} was {was} and is now {now}")
    if not found and list(kept) != list(given):
        found.append(f"the variables were in the order {', '.join(kept)} and are now in another")
    return found


def _shown(value: object) -> str:
    """A setting as text; a method by its name, if it has one."""
    for name, method in METHODS.items():
        if value == describe_method(method):
            return repr(name)
    return repr(value)
