"""Tunes a random forest of scikit-learn: floats on a logarithmic scale, integers, and a boolean.

    python examples/scikit_learn/tune.py --budget 100 --workers 2

This needs scikit-learn. The data are generated, so nothing is downloaded.
"""

from __future__ import annotations

import argparse

from mixcma import Bool, Float, Int, Space, minimize

SPACE = Space(
    {
        "n_estimators": Int(3, 60, log=True),
        "max_depth": Int(2, 20),
        "min_samples_leaf": Int(1, 20),
        "max_features": Float(0.05, 1.0),
        "ccp_alpha": Float(1e-6, 1e-1, log=True),
        "bootstrap": Bool(),
    }
)
# the point of this space that is closest to the defaults of scikit-learn; the search starts from here
USUAL = {
    "n_estimators": 60,
    "max_depth": 20,
    "min_samples_leaf": 1,
    "max_features": 0.3,
    "ccp_alpha": 1e-6,
    "bootstrap": True,
}


def error(params):
    """The fraction of samples that a forest with these parameters classifies wrongly, over three folds."""
    from sklearn.datasets import make_classification
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.model_selection import cross_val_score

    samples, labels = make_classification(400, 12, n_informative=6, class_sep=0.8, random_state=1)
    forest = RandomForestClassifier(**params, random_state=1)
    return 1.0 - cross_val_score(forest, samples, labels, cv=3).mean()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--budget", type=int, default=100)
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args()
    result = minimize(error, SPACE, budget=arguments.budget, seed=1, workers=arguments.workers, x0=USUAL, progress=True)
    print(f"error {result.improvements[0].value:.4f} with the usual parameters, {result.value:.4f} with")
    for name, value in result.params.items():
        print(f"  {name} = {value}")


if __name__ == "__main__":
    main()
