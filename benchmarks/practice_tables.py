"""The tables of mixcma.problems.practice: real cross-validations with scikit-learn, at every point of a grid.

    python benchmarks/practice_tables.py [svm] [boosting] [network] [pipeline] [regression]

takes about ten minutes and writes src/mixcma/problems/practice/tables/*.npz. scikit-learn ships the data sets.
"""

from __future__ import annotations

import itertools
import sys
import time
import warnings
from functools import cache

import numpy as np
from sklearn.compose import TransformedTargetRegressor
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.feature_selection import SelectPercentile, f_regression
from sklearn.linear_model import ElasticNet
from sklearn.metrics import log_loss
from sklearn.model_selection import KFold, StratifiedKFold, cross_val_score
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, PolynomialFeatures, QuantileTransformer, StandardScaler
from sklearn.svm import SVC

from mixcma.problems.practice.choices import REGRESSION
from mixcma.problems.practice.tuning import BOOSTING, NETWORK, PIPELINE, SVM

warnings.filterwarnings("ignore")
IMAGES, FOLDS, EPOCHS = 900, 3, 30
WORST = 2.0  # some settings diverge; no loss counts as more than this


@cache
def svm(kernel: str, degree: int, C: float, gamma: float) -> float:
    """The share of the first 900 images of digits that a support vector machine takes for another digit."""
    x, y = load_digits(return_X_y=True)
    learner = SVC(kernel=kernel, degree=degree, C=C, gamma=gamma, coef0=1.0 if kernel == "poly" else 0.0)
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=0)
    return 1.0 - float(np.mean(cross_val_score(learner, x[:IMAGES] / 16.0, y[:IMAGES], cv=folds)))


def svm_at(params: dict) -> float:
    """Kernels that ignore a setting are measured once."""
    used = {"linear": ("C",), "poly": ("C", "gamma", "degree"), "rbf": ("C", "gamma"), "sigmoid": ("C", "gamma")}
    ignored = {"degree": 3, "gamma": 1.0}
    return svm(**{**params, **{n: v for n, v in ignored.items() if n not in used[params["kernel"]]}})


@cache
def boosting(loss: str, learning_rate: float, depth: int, leaf: int, subsample: float) -> dict[int, float]:
    """The error of boosted trees on diabetes, relative to that of the mean, after each number of trees."""
    x, y = load_diabetes(return_X_y=True)
    squares = np.zeros(max(BOOSTING.axes["trees"]))
    for train, test in KFold(FOLDS, shuffle=True, random_state=0).split(x):
        learner = GradientBoostingRegressor(
            loss=loss,
            learning_rate=learning_rate,
            n_estimators=len(squares),
            max_depth=depth,
            min_samples_leaf=leaf,
            subsample=subsample,
            random_state=0,
        ).fit(x[train], y[train])
        squares += [float(np.sum((p - y[test]) ** 2)) for p in learner.staged_predict(x[test])]
    return dict(enumerate(np.sqrt(squares / len(y)) / y.std(), start=1))


def boosting_at(params: dict) -> float:
    others = {name: value for name, value in params.items() if name != "trees"}
    return min(boosting(**others)[params["trees"]], WORST)


def network_at(params: dict) -> float:
    """The logarithmic loss, at most 2, of a network with one hidden layer on breast_cancer, after 30 epochs."""
    x, y = load_breast_cancer(return_X_y=True)
    losses = []
    for train, test in StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(x, y):
        scaler = StandardScaler().fit(x[train])
        learner = MLPClassifier(
            hidden_layer_sizes=(params["units"],),
            activation=params["activation"],
            solver=params["solver"],
            learning_rate_init=params["learning_rate"],
            alpha=params["alpha"],
            max_iter=EPOCHS,
            tol=0.0,
            n_iter_no_change=EPOCHS,
            random_state=0,
        )
        try:
            learner.fit(scaler.transform(x[train]), y[train])
            losses.append(log_loss(y[test], learner.predict_proba(scaler.transform(x[test]))[:, 1]))
        except ValueError:  # the weights are no longer finite
            losses.append(WORST)
    return float(np.mean(np.minimum(losses, WORST)))


def pipeline_at(params: dict) -> float:
    """The error of a linear model on diabetes, relative to that of the mean; it learns from a third of the patients."""
    x, y = load_diabetes(return_X_y=True)
    terms = {
        "linear": FunctionTransformer(),
        "squares": FunctionTransformer(lambda z: np.hstack([z, z**2])),
        "products": PolynomialFeatures(2, include_bias=False),
    }[params["terms"]]
    scaling = {
        "standard": StandardScaler(),
        "ranks": QuantileTransformer(n_quantiles=100, output_distribution="normal", random_state=0),
    }[params["scaling"]]
    learner = make_pipeline(
        scaling,
        terms,
        StandardScaler(),
        SelectPercentile(f_regression, percentile=100 * params["kept"]),
        ElasticNet(alpha=params["alpha"], l1_ratio=params["mixing"], max_iter=300),
    )
    forth, back = {"plain": (_same, _same), "root": (np.sqrt, np.square), "log": (np.log, np.exp)}[params["target"]]
    low, mean, std, high = forth(y.min()), forth(y).mean(), forth(y).std(), forth(y.max())
    whole = TransformedTargetRegressor(
        learner,
        func=lambda v: (forth(v) - mean) / std,
        inverse_func=lambda v: back(np.clip(mean + std * v, low, high)),
        check_inverse=False,
    )
    squares = 0.0
    for test, train in KFold(FOLDS, shuffle=True, random_state=0).split(x):
        whole.fit(x[train], y[train])
        squares += float(np.sum((whole.predict(x[test]) - y[test]) ** 2))
    return float(np.sqrt(squares / (FOLDS - 1) / len(y)) / y.std())


def _same(values):
    return values


def measure(grid, measured) -> None:
    """Measure everywhere on the grid, and write the table."""
    started, shape = time.perf_counter(), tuple(len(axis) for axis in grid.axes.values())
    points = (dict(zip(grid.axes, point)) for point in itertools.product(*grid.axes.values()))
    values = np.array([measured(point) for point in points], dtype=np.float32).reshape(shape)
    np.savez_compressed(grid.path, values=values)
    params, best = grid.best()
    print(f"{grid.name}: {values.size} points, {time.perf_counter() - started:.0f} s, {grid.path.stat().st_size} bytes")
    print(f"  {values.min():.6g} to {values.max():.6g}; best {best!r} at {params}", flush=True)


def regression() -> None:
    """The sums that linear regression on diabetes needs: 10 variables, their products, and 9 squares."""
    x, y = load_diabetes(return_X_y=True)
    sex = 1  # has two values, so that its square would be the variable itself
    pairs = [(i, j) for i, j in itertools.combinations_with_replacement(range(10), 2) if (i, j) != (sex, sex)]
    terms = np.column_stack([x, *(x[:, i] * x[:, j] for i, j in pairs)])
    terms = (terms - terms.mean(axis=0)) / terms.std(axis=0)
    target = (y - y.mean()) / y.std()
    np.savez_compressed(REGRESSION, products=terms.T @ terms, target=terms.T @ target, count=len(y))
    print(f"regression: {terms.shape[1]} terms, {REGRESSION.stat().st_size} bytes", flush=True)


def main(names: list[str]) -> None:
    tables = {
        "svm": lambda: measure(SVM, svm_at),
        "boosting": lambda: measure(BOOSTING, boosting_at),
        "network": lambda: measure(NETWORK, network_at),
        "pipeline": lambda: measure(PIPELINE, pipeline_at),
        "regression": regression,
    }
    for name in names or tables:
        tables[name]()


if __name__ == "__main__":
    main(sys.argv[1:])
