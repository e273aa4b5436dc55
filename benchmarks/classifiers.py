"""Five classifiers with parameters of their own, tuned by real cross-validation on scikit-learn's breast cancer data.

    python benchmarks/classifiers.py --seeds 10 --evaluations 200 --out classifiers.json

The error of the best setting found, median over the seeds, after 50, 100 and all evaluations. Racers: mix (`minimize`),
mix-optuna (the sampler, define-by-run), optuna.TPE with its defaults and with ``multivariate=True, group=True``, SMAC,
random search. Nothing of mix was tuned on it. An evaluation that two racers make is computed once.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

os.environ.update(dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"), "1"))

from mixcma import Bool, Categorical, Float, Int, Space, minimize
from mixcma.space import Params

SPACE = Space(
    {
        "classifier": Categorical(["svm", "forest", "neighbours", "logistic", "boosting"]),
        "scaled": Bool(when={"classifier": ["svm", "neighbours", "logistic"]}),
        "kernel": Categorical(["linear", "rbf", "poly"], when={"classifier": "svm"}),
        "C": Float(1e-3, 1e3, log=True, when={"classifier": ["svm", "logistic"]}),
        "gamma": Float(1e-5, 1e1, log=True, when={"kernel": ["rbf", "poly"]}),
        "degree": Int(2, 5, when={"kernel": "poly"}),
        "trees": Int(5, 60, log=True, when={"classifier": "forest"}),
        "features": Float(0.05, 1.0, when={"classifier": "forest"}),
        "leaf": Int(1, 20, log=True, when={"classifier": ["forest", "boosting"]}),
        "k": Int(1, 50, log=True, when={"classifier": "neighbours"}),
        "weights": Categorical(["uniform", "distance"], when={"classifier": "neighbours"}),
        "rate": Float(1e-2, 1.0, log=True, when={"classifier": "boosting"}),
        "rounds": Int(10, 80, log=True, when={"classifier": "boosting"}),
        "depth": Int(1, 6, when={"classifier": "boosting"}),
    }
)


class Tuning:
    """The error of a setting: one minus the accuracy in five folds."""

    def __init__(self) -> None:
        from sklearn.datasets import load_breast_cancer
        from sklearn.model_selection import StratifiedKFold

        self._X, self._y = load_breast_cancer(return_X_y=True)
        self._folds = StratifiedKFold(5, shuffle=True, random_state=1)
        self._known: dict[str, float] = {}

    def __call__(self, p: Params) -> float:
        from sklearn.model_selection import cross_val_score

        key = json.dumps(p, sort_keys=True)
        if key not in self._known:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                accuracy = cross_val_score(_classifier(p), self._X, self._y, cv=self._folds).mean()
            self._known[key] = 1.0 - float(accuracy)
        return self._known[key]


def _classifier(p: Params) -> Any:
    from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC

    if p["classifier"] == "svm":
        gamma, degree = p.get("gamma", "scale"), p.get("degree", 3)
        model = SVC(C=p["C"], kernel=p["kernel"], gamma=gamma, degree=degree, max_iter=20_000)
    elif p["classifier"] == "forest":
        trees, features, leaf = p["trees"], p["features"], p["leaf"]
        return RandomForestClassifier(trees, max_features=features, min_samples_leaf=leaf, random_state=1)
    elif p["classifier"] == "neighbours":
        model = KNeighborsClassifier(p["k"], weights=p["weights"])
    elif p["classifier"] == "logistic":
        model = LogisticRegression(C=p["C"], max_iter=300)
    else:
        rate, rounds, depth = p["rate"], p["rounds"], p["depth"]
        return GradientBoostingClassifier(
            learning_rate=rate, n_estimators=rounds, max_depth=depth, min_samples_leaf=p["leaf"], random_state=1
        )
    return make_pipeline(StandardScaler(), model) if p["scaled"] else model


Objective = Callable[[Params], float]


def by_minimize(objective: Objective, evaluations: int, seed: int) -> None:
    minimize(objective, SPACE, budget=evaluations, seed=seed, cache=False)


def by_optuna(make: Callable[[int], Any]) -> Callable[[Objective, int, int], None]:
    def run(objective: Objective, evaluations: int, seed: int) -> None:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        study = optuna.create_study(sampler=make(seed))
        study.optimize(lambda trial: objective(asked(trial)), n_trials=evaluations)

    return run


def asked(trial: Any) -> Params:
    """A point by define-by-run; parents come first in the space."""
    params: Params = {}
    for name, variable in SPACE.items():
        if name not in SPACE.active({**params, name: None}):
            continue
        if isinstance(variable, Float):
            params[name] = trial.suggest_float(name, variable.low, variable.high, log=variable.log)
        elif isinstance(variable, Int):
            params[name] = trial.suggest_int(name, variable.low, variable.high, log=variable.log)
        else:
            params[name] = trial.suggest_categorical(name, list(getattr(variable, "choices", (False, True))))
    return params


def sampler_of_mix(seed: int) -> Any:
    from mixcma.integrations.optuna import MixCmaSampler

    return MixCmaSampler(seed=seed)


def tpe(**options: bool) -> Callable[[int], Any]:
    def make(seed: int) -> Any:
        import optuna

        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        return optuna.samplers.TPESampler(seed=seed, **options)

    return make


def random_sampler(seed: int) -> Any:
    import optuna

    return optuna.samplers.RandomSampler(seed)


def by_smac(objective: Objective, evaluations: int, seed: int) -> None:
    from smac import HyperparameterOptimizationFacade as Facade
    from smac import Scenario

    from mixcma.integrations.configspace import to_configspace

    with tempfile.TemporaryDirectory() as folder:
        scenario = Scenario(
            to_configspace(SPACE, seed),
            output_directory=Path(folder),
            deterministic=True,
            n_trials=evaluations,
            seed=seed,
        )
        smac = Facade(scenario, lambda config, seed: objective(SPACE.check_params(dict(config))), logging_level=False)
        smac.optimize()


RACERS: dict[str, Callable[[Objective, int, int], None]] = {
    "mix": by_minimize,
    "mix-optuna": by_optuna(sampler_of_mix),
    "optuna.TPE": by_optuna(tpe()),
    "optuna.TPE-group": by_optuna(tpe(multivariate=True, group=True)),
    "smac.HPO": by_smac,
    "random": by_optuna(random_sampler),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--racers", default="mix,mix-optuna,optuna.TPE,optuna.TPE-group,random")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--evaluations", type=int, default=200)
    parser.add_argument("--out", type=Path, default=Path("classifiers.json"))
    arguments = parser.parse_args()
    tuning, courses = Tuning(), dict[str, list[list[float]]]()
    for racer in arguments.racers.split(","):
        begun = time.perf_counter()
        for seed in range(1, arguments.seeds + 1):
            values: list[float] = []
            RACERS[racer](lambda p, values=values: values.append(tuning(p)) or values[-1], arguments.evaluations, seed)
            courses.setdefault(racer, []).append(values[: arguments.evaluations])
        arguments.out.write_text(json.dumps(courses))
        points = [count for count in (50, 100, arguments.evaluations) if count <= arguments.evaluations]
        medians = ", ".join(f"{count}: {median(min(c[:count]) for c in courses[racer]):.5f}" for count in points)
        print(f"{racer}: {medians} ({time.perf_counter() - begun:.0f} s)", flush=True)


if __name__ == "__main__":
    main()
