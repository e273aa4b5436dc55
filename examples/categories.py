"""A category compared with an integer: the same list of alloys, searched without and with the order of the list.

    python examples/categories.py

The task is to find the cheapest bracket: it has four parts, each made of one of nine alloys and with some reserve of
strength. The alloys are listed by name, so neighbours in the list have nothing in common, and the order that `Int`
searches along has no meaning.
"""

from __future__ import annotations

import statistics

from mixcma import Categorical, Float, Int, Space, minimize

# price per kilogram, density, strength in MPa
ALLOYS = {
    "AlMg3": (3.1, 2.66, 80),
    "AlZn5": (6.4, 2.78, 320),
    "CuSn8": (12.9, 8.80, 300),
    "CuZn37": (9.1, 8.44, 180),
    "MgAl6": (7.5, 1.80, 150),
    "S235": (0.9, 7.85, 235),
    "S690": (1.9, 7.85, 690),
    "Ti6Al4V": (28.0, 4.43, 830),
    "X5CrNi": (4.2, 7.90, 210),
}
NAMES = list(ALLOYS)
LOADS = (900.0, 1700.0, 2600.0, 6100.0)
SEEDS, BUDGET = 25, 5000


def cost(alloys: list[str], reserves: list[float]) -> float:
    """The price and the weight of the material, and the risk that a part with little reserve breaks."""
    price = weight = risk = 0.0
    for alloy, reserve, load in zip(alloys, reserves, LOADS):
        per_kilogram, density, strength = ALLOYS[alloy]
        kilograms = density * reserve * (load / strength) ** (2 / 3)
        price, weight, risk = price + per_kilogram * kilograms, weight + kilograms, risk + 400 * 10 ** (-2 * reserve)
    return price + 0.05 * weight**1.5 + risk


def evaluations(kind: str, seed: int, target: float) -> float:
    """The number of evaluations until the cost reaches the target."""
    part = Categorical(NAMES) if kind == "Categorical" else Int(0, len(NAMES) - 1)
    parts = range(len(LOADS))
    space = Space({f"alloy{i}": part for i in parts} | {f"reserve{i}": Float(1.0, 3.0) for i in parts})

    def objective(p: dict[str, object]) -> float:
        chosen = [p[f"alloy{i}"] for i in parts]
        named = chosen if kind == "Categorical" else [NAMES[place] for place in chosen]
        return cost(named, [p[f"reserve{i}"] for i in parts])

    result = minimize(objective, space, budget=BUDGET, seed=seed, target=target, progress=False)
    return result.evaluations if result.stop.name == "target" else float("inf")


def best() -> float:
    """The lowest cost: all parts are made of S690, the best alloy for every load; a search finds their reserves."""
    space = Space({f"reserve{i}": Float(1.0, 3.0) for i in range(len(LOADS))})

    def objective(p: dict[str, float]) -> float:
        return cost(["S690"] * len(LOADS), list(p.values()))

    return float(minimize(objective, space, budget=3000, seed=1, progress=False).value)


def main() -> None:
    target = 1.001 * best()
    for kind in ("Categorical", "Int"):
        needed = [evaluations(kind, seed, target) for seed in range(SEEDS)]
        found = sum(count < BUDGET for count in needed)
        print(f"{kind:12} {found} of {SEEDS} seeds find it, a median of {statistics.median(needed):.0f} evaluations")


if __name__ == "__main__":
    main()
