"""The published optima, and two-phase LP rounding against the optimum: the figures that must come out.

    python benchmarks/figures.py --graphs ../shared/graphs

`cost` is over the ideal (every operation once). Exits 1 if a figure is missed. Rounding is divided by the proven bound, which where it is
not the optimum can only make the ratio look worse; `fits` is how many of the budgets it met, as the paper's mean is over those too.
"""

from __future__ import annotations

import argparse
import math
import sys
from pathlib import Path

from checkmate import load
from checkmate.core.engine.run import run_strategy
from checkmate.core.events import Watch
from checkmate.core.model.costs import given_costs
from checkmate.core.model.floors import feasibility_floor
from checkmate.core.model.problem import Problem, build_problem
from checkmate.core.model.units import parse_budget
from checkmate.core.result import Result, Status
from checkmate.core.schedule.sequence import profile
from checkmate.core.settings import Settings

OPTIMA = (
    ("vgg16_b256", "1.330e10", 1.0197),
    ("vgg16_b256", "1.300e10", None),
    ("unet_b32", "16e9", 1.0231),
    ("unet_b32", "12e9", 1.0493),
    ("fcn8_b32", "80%", 1.0014),
)
"""Graph, budget, cost over ideal; None is infeasible."""
SMALLEST = {"vgg16_b256": "13.15 GB"}
TABLE_2 = {"vgg16_b256": 1.01, "unet_b32": 1.03, "resnet50_b256": 1.05}
"""Two-phase LP rounding over the optimum, geometric mean over budgets, as printed in the paper."""
SHARES = (0.05, 0.25, 0.5, 0.75, 0.95)
"""Budgets, as shares of the way from the smallest conceivable one to the keep-everything peak."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graphs", type=Path, required=True, help="folder of the published graphs")
    folder = parser.parse_args().graphs
    missed = optima(folder) + rounding(folder)
    for miss in missed:
        print(f"missed: {miss}", file=sys.stderr)
    return 1 if missed else 0


def read(folder: Path, name: str) -> Problem:
    graph = load(folder / f"{name}.json").graph
    return build_problem(graph, given_costs(graph))


def optima(folder: Path) -> list[str]:
    missed: list[str] = []
    print(f"{'graph':16}{'budget':>10}{'status':>12}{'cost':>9}{'expected':>10}{'seconds':>9}")
    for name, budget, expected in OPTIMA:
        problem = read(folder, name)
        problem = problem.with_budget(parse_budget(budget).resolve(profile(problem, range(problem.count)).peak))
        result = run_strategy(problem, "optimal", Settings(), Watch(300))
        status, cost = result.status, ratio(problem, result)
        print(f"{name:16}{budget:>10}{status.value:>12}{shown(cost):>9}{shown(expected):>10}{result.seconds:9.1f}")
        if expected is None:
            if status is not Status.INFEASIBLE or SMALLEST[name] not in result.reason:
                missed.append(f"{name} at {budget} should be infeasible below {SMALLEST[name]}: {result.reason}")
        elif status is not Status.OPTIMAL or cost is None or round(cost, 4) != expected:
            missed.append(f"{name} at {budget}: {status.value} {shown(cost)}, not optimal {expected}")
    return missed


def rounding(folder: Path) -> list[str]:
    missed: list[str] = []
    print(f"\n{'graph':16}{'fits':>9}{'lp-rounding':>13}{'Table 2':>9}")
    for name, printed in TABLE_2.items():
        problem = read(folder, name)
        floor, peak = feasibility_floor(problem).bytes, profile(problem, range(problem.count)).peak
        ratios: list[float] = []
        for share in SHARES:
            tight = problem.with_budget(int(floor + share * (peak - floor)))
            rounded = run_strategy(tight, "lp-rounding", Settings(), Watch(120))
            reference = run_strategy(tight, "auto", Settings(), Watch(30)).bound
            if not rounded.fits or rounded.simulation is None or reference is None:
                continue
            ratios.append(rounded.simulation.cost / reference)
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        print(f"{name:16}{f'{len(ratios)}/{len(SHARES)}':>9}{mean:13.4f}{printed:9.2f}")
        if mean > printed + 0.005:
            missed.append(f"lp-rounding on {name}: {mean:.4f} of the optimum, the paper has {printed}")
    return missed


def ratio(problem: Problem, result: Result) -> float | None:
    return result.simulation.cost / problem.ideal_cost if result.simulation is not None and result.fits else None


def shown(number: float | None) -> str:
    return "-" if number is None else f"{number:.4f}"


if __name__ == "__main__":
    sys.exit(main())
