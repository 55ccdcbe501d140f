"""Every strategy on thousands of random graphs: schedules certified, optima equal to brute force, bounds never above them.

    python benchmarks/random_graphs.py --count 2000

The tests run a sample of these. Exits 1 at the first graph on which anything is wrong, with its number.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "support"))

from oracles import staged_optimum, unrestricted_optimum
from random_graphs import random_problem

from checkmate.core.baselines import BASELINES
from checkmate.core.engine.run import run_strategy
from checkmate.core.engine.strategies import STRATEGIES
from checkmate.core.events import Watch
from checkmate.core.model.problem import Problem
from checkmate.core.result import Status
from checkmate.core.settings import Settings

FIRST = 50_000
"""Seeds that no test uses."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=2000)
    count = parser.parse_args().count
    print(f"{'strategy':20}{'graphs':>8}{'schedules':>11}{'fit':>7}{'optimal':>9}{'seconds':>9}")
    problems = [(seed, random_problem(seed)) for seed in range(FIRST, FIRST + count)]
    problems = [(seed, problem) for seed, problem in problems if problem.count]
    optima = {seed: staged_optimum(problem) for seed, problem in problems}
    for name in STRATEGIES:
        begun = time.monotonic()
        tally: Counter[str] = Counter()
        for seed, problem in problems:
            wrong = check(name, problem, optima[seed], tally)
            if wrong:
                print(f"graph {seed}, {name}: {wrong}", file=sys.stderr)
                return 1
        figures = "".join(f"{tally[key]:{width}}" for key, width in (("schedule", 11), ("fits", 7), ("optimal", 9)))
        print(f"{name:20}{len(problems):8}{figures}{time.monotonic() - begun:9.1f}", flush=True)
    return 0


def check(name: str, problem: Problem, optimum: float, tally: Counter[str]) -> str:
    """What is wrong with what a strategy made of a graph; nothing, if all is well. `run_strategy` certifies by itself."""
    result = run_strategy(problem, name, Settings(gap=1e-6), Watch(60))
    tally["schedule"] += result.schedule is not None
    tally["fits"] += result.fits
    tally["optimal"] += result.status is Status.OPTIMAL
    if result.bound is not None and result.bound > optimum + 1e-6:
        return f"the bound {result.bound} is above the optimum {optimum}"
    if name in BASELINES or result.simulation is None:
        return "calls infeasible what is not" if result.status is Status.INFEASIBLE and optimum < math.inf else ""
    cost = result.simulation.cost
    if optimum < math.inf and result.status is Status.OPTIMAL and abs(cost - optimum) > 1e-6:
        return f"claims {cost} to be optimal, but {optimum} is"
    if cost < unrestricted_optimum(problem) - 1e-6:
        return f"costs {cost}, less than is possible"
    if name in ("optimal", "auto") and optimum < math.inf and result.status is not Status.OPTIMAL:
        return "did not solve a tiny graph to optimality"
    return ""


if __name__ == "__main__":
    sys.exit(main())
