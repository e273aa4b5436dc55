"""The cheapest pressure vessel: two plate thicknesses in steps of 1/16 inch, two lengths and four constraints.

Run it with ``python examples/pressure_vessel.py --seed 3``.
"""

from __future__ import annotations

import argparse

from rich.console import Console
from rich.table import Table

from mixcma import minimize
from mixcma.problems import DESIGNS

UNITS = {
    "shell": "inch, a multiple of 0.0625",
    "head": "inch, a multiple of 0.0625",
    "radius": "inch",
    "length": "inch",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--budget", type=int, default=50_000)
    arguments = parser.parse_args()
    vessel = DESIGNS["pressure_vessel"]
    console = Console()
    console.print(f"[bold]Pressure vessel[/]: the cheapest feasible design; best known cost {vessel.best_known:.3f}\n")
    result = minimize(vessel, vessel.space, budget=arguments.budget, target=6059.72, seed=arguments.seed, progress=True)
    table = Table("variable", "value", "unit", title=f"\nBest design found: cost {result.value:.4f}")
    for name, value in result.params.items():
        table.add_row(name, f"{value:.6g}", UNITS[name])
    console.print(table)
    console.print(
        f"{'Feasible' if result.feasible else 'NOT feasible'}, after {result.evaluations} evaluations", end=""
    )
    console.print(f" in {len(result.runs)} runs (seed {result.seed}).\n{result.stop}")


if __name__ == "__main__":
    main()
