"""The racers by name. Each is a function of a Task and a Scoreboard only."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from mixcma.core.methods import METHODS
from mixcma.experiments.race.racers.cyberagent import CatCMAwM, CatCMAwMCategories, CMAwM
from mixcma.experiments.race.racers.dxnesici import DxNesIci
from mixcma.experiments.race.racers.nevergrad import run_ngopt
from mixcma.experiments.race.racers.others import (
    run_differential_evolution,
    run_gp,
    run_random_search,
    run_sampler_of_mix,
    run_tpe,
    run_tpe_in_groups,
)
from mixcma.experiments.race.racers.ours import run_mixcma
from mixcma.experiments.race.racers.pycma import Pycma, PycmaSurrogate
from mixcma.experiments.race.racers.restarts import Begin, run_by_generations
from mixcma.experiments.race.racers.smac import run_smac
from mixcma.experiments.race.task import Scoreboard, Task

__all__ = ["RACERS", "Racer"]


@dataclass(frozen=True)
class Racer:
    """An optimiser: how it is run, and the package that it comes from."""

    run: Callable[[Task, Scoreboard], None]
    package: str
    needs_binaries: bool = False  # without binary variables it is the same as another racer
    settings: str = ""  # what else its results depend on
    needs: str | None = None  # what its package does not install, but cannot do without here

    @property
    def version(self) -> str | None:
        """The version of its package; None if the package is not installed."""
        return _version(self.package)

    @property
    def missing(self) -> str | None:
        """The package without which it cannot run, and which is not installed; None if there is none."""
        packages = (self.package,) if self.needs is None else (self.package, self.needs)
        return next((package for package in packages if _version(package) is None), None)


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _generational(begin: Begin, package: str, needs_binaries: bool = False) -> Racer:
    return Racer(partial(run_by_generations, begin), package, needs_binaries)


RACERS: dict[str, Racer] = {
    **{name: Racer(partial(run_mixcma, method), "mixcma", settings=repr(method)) for name, method in METHODS.items()},
    "cmaes.CMAwM": _generational(CMAwM, "cmaes"),
    "cmaes.CatCMAwM": _generational(CatCMAwM, "cmaes"),
    "cmaes.CatCMAwM-categories": _generational(CatCMAwMCategories, "cmaes", needs_binaries=True),
    "pycma": _generational(Pycma, "cma"),
    "pycma-lq": _generational(PycmaSurrogate, "cma"),
    "DX-NES-ICI": _generational(DxNesIci, "dxnesici"),
    "optuna.TPE": Racer(run_tpe, "optuna"),
    "mix-optuna": Racer(run_sampler_of_mix, "optuna"),
    "optuna.TPE-group": Racer(run_tpe_in_groups, "optuna"),
    "optuna.GP": Racer(run_gp, "optuna", needs="torch"),
    "smac.HPO": Racer(run_smac, "smac"),
    "nevergrad.NGOpt": Racer(run_ngopt, "nevergrad"),
    "scipy.DE": Racer(run_differential_evolution, "scipy"),
    "random": Racer(run_random_search, "numpy"),
}
