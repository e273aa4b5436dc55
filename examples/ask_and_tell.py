"""Your own loop: ask for candidates, measure them however you like, and tell the results.

python examples/ask_and_tell.py
"""

from __future__ import annotations

from mixcma import Discrete, Float, Int, Optimizer, Outcome, Space

SPACE = Space({"temperature": Float(20, 90), "stirring": Int(0, 10), "catalyst": Discrete([0.1, 0.2, 0.5, 1.0])})


def experiment(params) -> Outcome | None:
    """A stand-in for a measurement in a laboratory: a cost, a limit on the pressure, and sometimes a broken flask."""
    if params["temperature"] > 85 and params["stirring"] == 10:
        return None  # the experiment failed: it is ranked last
    cost = (params["temperature"] - 61.5) ** 2 / 50 + (params["stirring"] - 7) ** 2 + 3 * params["catalyst"]
    pressure = params["temperature"] / 60 + 0.5 - params["catalyst"]
    return Outcome(cost, constraints=[pressure - 1.4])


def main() -> None:
    optimizer = Optimizer(SPACE, seed=2)
    while not optimizer.stop and optimizer.generation < 60:
        candidates = optimizer.ask()
        optimizer.tell(candidates, [experiment(candidate.params) for candidate in candidates])
        if optimizer.generation % 10 == 0 and optimizer.best:
            best = optimizer.best
            state = "feasible" if best.feasible else "not feasible"
            print(f"after {optimizer.evaluations} measurements: cost {best.value:.4f}, {state}, {best.params}")


if __name__ == "__main__":
    main()
