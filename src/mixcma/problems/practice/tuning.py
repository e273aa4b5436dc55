"""The tuning of learners, from tables of real cross-validations: nothing is trained when they are evaluated.

``benchmarks/practice_tables.py`` has measured them with scikit-learn, on data sets that it ships. What is measured is
deterministic: the folds, and the seeds of the learners, are fixed.
"""

from __future__ import annotations

from mixcma.problems.engineering import Design
from mixcma.problems.practice.grid import Grid
from mixcma.space import Params

SVM = Grid(
    "svm",
    {
        "kernel": ("linear", "poly", "rbf", "sigmoid"),
        "degree": (2, 3, 4),
        "C": tuple(10.0 ** (0.5 * k) for k in range(-5, 7)),
        "gamma": tuple(10.0 ** (0.5 * k) for k in range(-9, 3)),
    },
)
BOOSTING = Grid(
    "boosting",
    {
        "loss": ("squared_error", "absolute_error", "huber"),
        "learning_rate": (0.005, 0.02, 0.08, 0.3, 1.0),
        "trees": (5, 10, 20, 40, 80, 150),
        "depth": (1, 2, 3, 5, 7),
        "leaf": (1, 10, 30),
        "subsample": (0.25, 0.5, 1.0),
    },
)
NETWORK = Grid(
    "network",
    {
        "activation": ("relu", "tanh", "logistic"),
        "solver": ("adam", "sgd"),
        "learning_rate": tuple(10.0 ** (0.75 * k) for k in range(-6, 1)),
        "alpha": (1e-5, 1e-3, 1e-1, 1e0, 1e1),
        "units": (1, 4, 16, 64),
    },
)
PIPELINE = Grid(
    "pipeline",
    {
        "terms": ("linear", "squares", "products"),
        "scaling": ("standard", "ranks"),
        "target": ("plain", "root", "log"),
        "alpha": tuple(10.0 ** (0.5 * k) for k in range(-8, 3)),
        "mixing": (0.0, 0.25, 0.5, 0.75, 1.0),
        "kept": (0.1, 0.3, 0.5, 0.75, 1.0),
    },
)


def _tuning(grid: Grid, best_known: float, best_params: Params, typical: float, source: str) -> Design:
    """The lowest measurement is the optimum, since no value between the points of a grid is below it."""
    return Design(grid.name, grid.space, grid, best_known, best_params, source, typical=typical)


TUNING = (
    _tuning(
        SVM,
        0.011111111380159855,
        {"kernel": "poly", "degree": 3, "C": 0.01, "gamma": 0.31622776601683794},
        0.01398,
        "digits: E. Alpaydin & C. Kaynak (1998), UCI Machine Learning Repository",
    ),
    _tuning(
        NETWORK,
        0.07142303138971329,
        {"activation": "tanh", "solver": "sgd", "learning_rate": 0.1778279410038923, "alpha": 1.0, "units": 16},
        0.078701,
        "breast_cancer: W. H. Wolberg et al. (1995), UCI Machine Learning Repository",
    ),
    _tuning(
        PIPELINE,
        0.7143518328666687,
        {
            "terms": "squares",
            "scaling": "standard",
            "target": "plain",
            "alpha": 0.03162277660168379,
            "mixing": 0.5,
            "kept": 1.0,
        },
        0.72637,
        "diabetes: Efron et al. (2004), Annals of Statistics 32(2): 407-499",
    ),
    _tuning(
        BOOSTING,
        0.7258743047714233,
        {"loss": "squared_error", "learning_rate": 0.02, "trees": 150, "depth": 2, "leaf": 1, "subsample": 0.25},
        0.74875,
        "diabetes: Efron et al. (2004), Annals of Statistics 32(2): 407-499",
    ),
)
