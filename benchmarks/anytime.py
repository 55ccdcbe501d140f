"""How gaps fall with time: one run of `auto` a row, and what it had after 5, 10, 20 and 60 s.

    python benchmarks/anytime.py --graphs DIR [--models squeezenet,resnet50] [--limits 5,10,20,60] [--again]

What is done in the first T seconds does not depend on the limit (tests/core/engine/test_monotone.py), so one run says what each limit
gives; --again runs each limit by itself instead, and says so if a cost rises.

Rows: the onnx wheel's nine light models, the graphs of the folder and the samples, at 70 and 50 % of their peak and at 1.2 and 1.05 times
the smallest budget found. Each figure: cost above the ideal, the gap to the bound that holds for the schedule, and the gap to the bound for
any order. Exits 1 if an aim is missed: a gap of at most 2 % in 10 s and 0.5 % in 60 s on nine of ten rows; for any order, at 1.2 times the
smallest budget and above, 0.1 % in 10 s (up to 1,000 operations) or 60 s on nine of ten; nearer to it 0.5 % in 60 s on eight of ten.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from solver import LIGHT, light_problem

import checkmate
from checkmate.core.engine import auto as engine
from checkmate.core.engine.pool import Pool
from checkmate.core.engine.run import run_strategy
from checkmate.core.events import Event, Watch, relative_gap
from checkmate.core.model.problem import Problem
from checkmate.core.schedule.peak import keep_all_profile
from checkmate.core.search.warm import warm_up
from checkmate.core.settings import Order, Settings
from checkmate.core.studies.smallest import find_smallest

GAPS = {10.0: 0.02, 60.0: 0.005}
ANY_GAP, NEAR_ANY_GAP = 0.001, 0.005
SMALL = 1000
"""Operations up to which the gap for any order is to be met in 10 s."""
AMPLE, NEAR = 1.2, 1.05
SAMPLES = Path(__file__).parent.parent / "sample_graphs"


@dataclass(frozen=True, slots=True)
class Figures:
    """What a run had after a time; infinite cost if nothing."""

    cost: float = math.inf
    gap: float = 1.0
    any_gap: float = 1.0

    def __str__(self) -> str:
        return "none" if math.isinf(self.cost) else f"{self.cost - 1:.2%}, {self.gap:.3%}, {self.any_gap:.3%}"


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


def budgets(problem: Problem, smallest: int) -> list[int]:
    peak = keep_all_profile(problem).peak
    wanted = {int(0.7 * peak), int(0.5 * peak), int(AMPLE * smallest), int(NEAR * smallest)}
    return sorted((budget for budget in wanted if int(NEAR * smallest) <= budget < peak), reverse=True)


def course(problem: Problem, limits: Sequence[float]) -> list[Figures]:
    """What one run has after each of the limits."""
    seen: list[tuple[float, Figures]] = []
    pools: list[Pool] = []

    class Seen(Pool):
        def __post_init__(self) -> None:
            super().__post_init__()
            pools.append(self)

    def listen(event: Event) -> None:
        if pools and pools[0].incumbent is not None:
            pool = pools[0]
            seen.append((time.monotonic() - begun, Figures(pool.cost / problem.ideal_cost, pool.gap, pool.any_gap)))

    pool_class, engine.Pool = engine.Pool, Seen  # type: ignore[misc]
    begun = time.monotonic()
    try:
        last = alone(problem, limits[-1], Watch(limits[-1], on_event=listen))
    finally:
        engine.Pool = pool_class  # type: ignore[misc]
    seen.append((time.monotonic() - begun, last))
    return [*(next((each for when, each in reversed(seen) if when <= limit), Figures()) for limit in limits[:-1]), last]


def alone(problem: Problem, limit: float, watch: Watch | None = None) -> Figures:
    result = run_strategy(problem, "auto", Settings(order=Order.SEARCH, gap=1e-4), watch or Watch(limit))
    if not result.fits:
        return Figures()
    return Figures(
        result.cost / problem.ideal_cost, relative_gap(result.cost, result.bound or 0.0), relative_gap(result.cost, result.any_bound or 0.0)
    )


class Aims:
    """How many rows meet each aim."""

    def __init__(self) -> None:
        self.counts: dict[str, list[int]] = {}
        self.needed: dict[str, float] = {}

    def count(self, aim: str, met: bool, needed: float) -> None:
        counts = self.counts.setdefault(aim, [0, 0])
        counts[0] += met
        counts[1] += 1
        self.needed[aim] = needed

    def row(self, problem: Problem, budget: int, smallest: int, figures: dict[float, Figures]) -> None:
        for limit, gap in GAPS.items():
            if limit in figures:
                self.count(f"gap at most {gap:.1%} in {limit:g} s", figures[limit].gap <= gap, 0.9)
        if budget < int(AMPLE * smallest) and 60.0 in figures:
            self.count(
                f"any order, near the smallest budget: at most {NEAR_ANY_GAP:.1%} in 60 s", figures[60.0].any_gap <= NEAR_ANY_GAP, 0.8
            )
        limit = 10.0 if problem.count <= SMALL else 60.0
        if budget >= int(AMPLE * smallest) and limit in figures:
            what = f"up to {SMALL:,} operations" if problem.count <= SMALL else "larger"
            self.count(f"any order, {what}: at most {ANY_GAP:.1%} in {limit:g} s", figures[limit].any_gap <= ANY_GAP, 0.9)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--graphs", type=Path, required=True)
    parser.add_argument("--models", default="")
    parser.add_argument("--limits", default="5,10,20,60")
    parser.add_argument("--again", action="store_true", help="run each limit by itself")
    arguments = parser.parse_args()
    limits = sorted(float(limit) for limit in arguments.limits.split(","))
    warm_up()
    aims, risen = Aims(), 0
    print("| graph | operations | budget | of the smallest | " + " | ".join(f"{limit:g} s" for limit in limits) + " |")
    print("|---" * (4 + len(limits)) + "|")
    for name, problem in problems(arguments.graphs, frozenset(filter(None, arguments.models.split(",")))):
        peak = keep_all_profile(problem).peak
        smallest = find_smallest(problem, Settings(order=Order.SEARCH), Watch(30.0)).budget
        for budget in budgets(problem, smallest):
            smaller = problem.with_budget(budget)
            row = [alone(smaller, limit) for limit in limits] if arguments.again else course(smaller, limits)
            rises = any(later.cost > earlier.cost * (1 + 1e-9) for earlier, later in pairwise(row))
            risen += rises
            aims.row(problem, budget, smallest, dict(zip(limits, row, strict=True)))
            shown = " | ".join(map(str, row))
            print(
                f"| {name} | {problem.count} | {budget / peak:.1%} | {budget / smallest:.2f} | {shown} |{' RISES' if rises else ''}",
                flush=True,
            )
    print(f"\ncost rises with the limit on {risen} rows")
    for aim, (met, rows) in aims.counts.items():
        print(f"{aim}: {met} of {rows}")
    sys.exit(bool(risen) or any(met < aims.needed[aim] * rows for aim, (met, rows) in aims.counts.items()))


if __name__ == "__main__":
    main()
