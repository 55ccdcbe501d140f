"""How gaps fall with time: `auto` with limits of 5, 10, 20 and 60 s on the same graphs, never worse with a longer limit.

    python benchmarks/anytime.py --graphs DIR [--models squeezenet,resnet50] [--limits 5,10,20,60]

Rows: the onnx wheel's nine light models at 70 and 50 % of their peak, or 1.05 times the smallest budget found, the graphs of the folder,
and the samples. Gaps are for any order. A cost that rises with the limit is marked and makes the exit code 1; so does missing the aims: a
gap of at most 2 % in 10 s and 0.5 % in 60 s on nine of ten rows.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from solver import LIGHT, light_problem

import checkmate
from checkmate.core.engine.run import run_strategy
from checkmate.core.events import Watch, relative_gap
from checkmate.core.model.problem import Problem
from checkmate.core.schedule.peak import keep_all_profile
from checkmate.core.search.warm import warm_up
from checkmate.core.settings import Order, Settings
from checkmate.core.studies.smallest import find_smallest

AIMS = {10.0: 0.02, 60.0: 0.005}
NEAR = 1.05
SAMPLES = Path(__file__).parent.parent / "sample_graphs"


def problems(folder: Path, models: frozenset[str]) -> Iterator[tuple[str, Problem]]:
    for path in sorted(LIGHT.glob("light_*.onnx")):
        name = path.stem.removeprefix("light_")
        if not models or name in models:
            yield name, light_problem(path)
    for path in (*sorted(folder.glob("*.json")), *sorted(SAMPLES.glob("*.json"))):
        if not models or path.stem in models:
            priced = checkmate.load(path).price()
            if priced.problem.count <= 10_000:
                yield path.stem, priced.problem


def budgets(problem: Problem) -> list[int]:
    peak = keep_all_profile(problem).peak
    smallest = find_smallest(problem, Settings(order=Order.SEARCH), Watch(30.0)).budget
    least = int(NEAR * smallest)
    return sorted({max(int(share * peak), least) for share in (0.7, 0.5)} | ({least} if least < peak else set()), reverse=True)


def gap_after(problem: Problem, limit: float) -> tuple[float, float]:
    result = run_strategy(problem, "auto", Settings(order=Order.SEARCH, gap=1e-4), Watch(limit))
    if not result.fits:
        return math.inf, 1.0
    return result.cost / problem.ideal_cost, relative_gap(result.cost, result.any_bound or 0.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--graphs", type=Path, required=True)
    parser.add_argument("--models", default="")
    parser.add_argument("--limits", default="5,10,20,60")
    arguments = parser.parse_args()
    limits = [float(limit) for limit in arguments.limits.split(",")]
    warm_up()
    aims = {limit: aim for limit, aim in AIMS.items() if limit in limits}
    met = dict.fromkeys(aims, 0)
    rows = risen = 0
    print("| graph | operations | budget | " + " | ".join(f"{limit:g} s" for limit in limits) + " |")
    print("|---" * (3 + len(limits)) + "|")
    for name, problem in problems(arguments.graphs, frozenset(filter(None, arguments.models.split(",")))):
        peak = keep_all_profile(problem).peak
        for budget in budgets(problem):
            figures = [gap_after(problem.with_budget(budget), limit) for limit in limits]
            rises = any(later[0] > earlier[0] * (1 + 1e-9) for earlier, later in pairwise(figures))
            risen += rises
            rows += 1
            for limit, aim in aims.items():
                met[limit] += figures[limits.index(limit)][1] <= aim
            shown = " | ".join("none" if math.isinf(cost) else f"{cost - 1:.2%}, gap {gap:.3%}" for cost, gap in figures)
            print(f"| {name} | {problem.count} | {budget / peak:.1%} | {shown} |{' RISES' if rises else ''}", flush=True)
    print(f"\n{rows} rows; cost rises with the limit on {risen}")
    for limit, aim in aims.items():
        print(f"gap of at most {aim:.1%} in {limit:g} s: {met[limit]} of {rows}")
    sys.exit(bool(risen) or any(count < 0.9 * rows for count in met.values()))


if __name__ == "__main__":
    main()
