"""How much sooner the liveness form is solved to optimality than the paper's, with the same solver, start, gap and machine, in one run.

    python benchmarks/formulations.py --graphs ../shared/graphs --time-limit 600

Both models are built from the same problem and given the same heuristic start. A run that meets the time limit counts with the limit, so
the ratio is then a lower limit and printed with `>=`. Exits 1 if a ratio is below 5.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from checkmate import load
from checkmate.core.baselines.best import best_baseline
from checkmate.core.events import Watch
from checkmate.core.milp import get_formulation
from checkmate.core.model.costs import given_costs
from checkmate.core.model.problem import Problem, build_problem
from checkmate.core.model.units import parse_budget
from checkmate.core.result import Status
from checkmate.core.schedule.sequence import profile
from checkmate.core.settings import FormulationName, Settings
from checkmate.core.solvers import get_solver

CASES = (("vgg16_b256", "1.330e10"), ("unet_b32", "16e9"))
WANTED = 5.0
REPEATS = 3


@dataclass(frozen=True, slots=True)
class Timing:
    """One formulation on one problem: seconds to build the model in Pyomo, and from there to the proof."""

    building: float
    solving: float
    optimal: bool
    cost: float


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graphs", type=Path, required=True, help="folder of the published graphs")
    parser.add_argument("--solver", default="highs")
    parser.add_argument("--time-limit", type=float, default=600.0)
    options = parser.parse_args()
    print(f"{'':26}{'liveness':>16}{'paper':>16}")
    print(f"{'graph':16}{'budget':>10}{'build':>8}{'solve':>8}{'build':>8}{'solve':>8}{'ratio':>9}   paper's form ended with")
    good = True
    for name, budget in CASES:
        graph = load(options.graphs / f"{name}.json").graph
        problem = build_problem(graph, given_costs(graph), budget=parse_budget(budget).resolve(0))
        fast, slow = (measure(problem, form, options.solver, options.time_limit) for form in ("liveness", "paper"))
        ratio = slow.solving / fast.solving
        good &= fast.optimal and ratio >= WANTED
        end = "the optimum" if slow.optimal else f"the time limit, {slow.cost / fast.cost - 1:+.2%} above the optimum"
        times = f"{fast.building:8.2f}{fast.solving:8.2f}{slow.building:8.2f}{slow.solving:8.2f}"
        print(f"{name:16}{budget:>10}{times}{'' if slow.optimal else '>= ':>3}{ratio:6.1f}   {end}", flush=True)
    return 0 if good else 1


def measure(problem: Problem, formulation: str, solver: str, limit: float) -> Timing:
    """Build once, solve from the same heuristic start; the shortest of a few solves, since the machine is noisy."""
    settings = Settings(solver=solver, formulation=FormulationName(formulation))
    start = best_baseline(problem, settings, Watch())
    build = get_formulation(settings.formulation)
    begun = time.monotonic()
    formulated = build(problem)
    building = time.monotonic() - begun
    values = None if start is None else formulated.start(start.sequence)
    solving, best = float("inf"), float("inf")
    for _ in range(REPEATS):
        begun = time.monotonic()
        result = get_solver(solver).solve(formulated.form, settings, Watch(limit), values)
        solving = min(solving, time.monotonic() - begun)
        if result.values is not None:
            best = min(best, profile(problem, formulated.sequence(result.values)).cost)
        if solving > 10:
            break
    return Timing(building, solving, result.status is Status.OPTIMAL, best)


if __name__ == "__main__":
    sys.exit(main())
