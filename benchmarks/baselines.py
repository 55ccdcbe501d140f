"""The baselines on published graphs, beside the figures of the paper and of its artifact.

    python benchmarks/baselines.py --graphs ../shared/graphs

`cost` is over the ideal (every operation once) without a budget; `artifact` is what the paper's own code gave on the same files: it must
come out. `over budgets` is the geometric mean of cost over ideal at sixteen budgets from the smallest conceivable to the keep-everything
peak, where the strategy fits at all; Table 2 of the paper divides by the optimum, at budgets and with a sweep of its own: to compare.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from checkmate import load
from checkmate.core.baselines import BASELINES
from checkmate.core.engine.run import run_strategy
from checkmate.core.events import Watch
from checkmate.core.model.costs import given_costs
from checkmate.core.model.floors import feasibility_floor
from checkmate.core.model.problem import Problem, build_problem
from checkmate.core.model.units import format_bytes
from checkmate.core.result import Result
from checkmate.core.schedule.sequence import profile
from checkmate.core.settings import Settings

ARTIFACT = {
    ("vgg16_b256", "ap-sqrt"): 1.282,
    ("unet_b32", "ap-sqrt"): 1.268,
    ("resnet50_b256", "ap-sqrt"): 1.196,
    ("unet_b32", "linearized-sqrt"): 1.413,
}
TABLE_2 = {
    ("vgg16_b256", "ap-sqrt"): 1.28,
    ("vgg16_b256", "ap-greedy"): 1.06,
    ("vgg16_b256", "griewank"): 1.44,
    ("unet_b32", "ap-sqrt"): 1.27,
    ("unet_b32", "ap-greedy"): 1.23,
    ("resnet50_b256", "ap-sqrt"): 1.20,
    ("resnet50_b256", "ap-greedy"): 1.25,
}
BUDGETS = 16


@dataclass(frozen=True, slots=True)
class Row:
    """One strategy on one graph."""

    cost: float
    peak: int
    seconds: float
    over_budgets: float | None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graphs", type=Path, required=True, help="folder of graphs in any format checkmate reads")
    paths = sorted(parser.parse_args().graphs.glob("*.json"))
    print(f"{'graph':20}{'strategy':19}{'cost':>8}{'artifact':>10}{'peak':>10}{'seconds':>9}{'over budgets':>14}{'Table 2':>9}")
    missed = [miss for path in paths for miss in compare(path)]
    for miss in missed:
        print(f"missed: {miss}", file=sys.stderr)
    return 1 if missed else 0


def compare(path: Path) -> list[str]:
    """Print the rows of one graph; give back the figures that did not come out."""
    graph = load(path).graph
    problem = build_problem(graph, given_costs(graph))
    missed: list[str] = []
    for strategy in BASELINES:
        row = measure(problem, strategy)
        if row is None:
            print(f"{path.stem:20}{strategy:19}{'-':>8}")
            continue
        expected, printed = ARTIFACT.get((path.stem, strategy)), TABLE_2.get((path.stem, strategy))
        if expected is not None and round(row.cost, 3) != expected:
            missed.append(f"{strategy} on {path.stem} costs {row.cost:.4f}, not {expected}")
        print(
            f"{path.stem:20}{strategy:19}{row.cost:8.3f}{_figure(expected, 3):>10}{format_bytes(row.peak):>10}{row.seconds:9.3f}"
            f"{_figure(row.over_budgets, 2):>14}{_figure(printed, 2):>9}"
        )
    return missed


def measure(problem: Problem, strategy: str) -> Row | None:
    """None if the strategy has no schedule for this graph at any budget."""
    begun = time.monotonic()
    free = run(problem, strategy)
    seconds = time.monotonic() - begun
    if free.simulation is None:
        return None
    lowest, highest = feasibility_floor(problem).bytes, profile(problem, range(problem.count)).peak
    fitting: list[float] = []
    for step in range(BUDGETS):
        outcome = run(problem.with_budget(lowest + (highest - lowest) * step // (BUDGETS - 1)), strategy)
        if outcome.fits and outcome.simulation is not None:
            fitting.append(outcome.simulation.cost / problem.ideal_cost)
    mean = math.exp(sum(map(math.log, fitting)) / len(fitting)) if fitting else None
    return Row(free.simulation.cost / problem.ideal_cost, free.simulation.peak_bytes, seconds, mean)


def run(problem: Problem, strategy: str) -> Result:
    return run_strategy(problem, strategy, Settings(), Watch())


def _figure(number: float | None, digits: int) -> str:
    return "" if number is None else f"{number:.{digits}f}"


if __name__ == "__main__":
    sys.exit(main())
