"""How near the optimum, how soon: certified gaps on published graphs, on real training graphs, and how the time grows.

    python benchmarks/solver.py --graphs DIR                       all tables (more than an hour)
    python benchmarks/solver.py --graphs DIR --tables papers,layered
    python benchmarks/solver.py --tables light --models resnet50,densenet121

Tables: `papers` (the Checkmate paper's graphs, given order), `layered` (MOCCASIN's random layered graphs, beside MOCCASIN and FastSA),
`light` (the onnx wheel's nine models, differentiated; instead of budgets too small for any schedule, 1.02 times the smallest one found),
`growth` (time to a schedule within 5 % of the bound), `large` (time to within 1 %, 10,000 to 100,000 operations), `formulation` (against
the paper's MILP in the same solver). Defaults of the tool, 60 s, two cores, HiGHS, unless a table says otherwise. Cost is over the ideal.
Exits with 1 if a figure is missed, and says which.
"""

from __future__ import annotations

import argparse
import math
import resource
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import onnx
import training_graphs

import checkmate
from checkmate.core.engine.exact import solve_exactly
from checkmate.core.engine.run import run_strategy
from checkmate.core.events import Event, Watch, relative_gap
from checkmate.core.model.floors import feasibility_floor
from checkmate.core.model.problem import Problem
from checkmate.core.result import Status
from checkmate.core.schedule.peak import keep_all_profile
from checkmate.core.schedule.sequence import profile
from checkmate.core.search.warm import warm_up
from checkmate.core.settings import FormulationName, Order, Settings
from checkmate.core.studies.smallest import find_smallest

LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
LIGHT_BATCH = 32
LARGE = {10_000: 30.0, 20_000: 60.0, 50_000: 150.0, 100_000: 300.0}
"""Operations, and the seconds that they may take."""
PEERS = {
    ("random_layered_100", 0.9): ("0.8 %", "0.0 %", 0.8, 0.0),
    ("random_layered_100", 0.8): ("2.3 %", "0.3 %", 2.3, 0.3),
    ("random_layered_500", 0.9): ("0.7 %", "0.03 %", 0.7, 0.03),
    ("random_layered_500", 0.8): ("3.4 %", "2.3 %", 3.4, 2.3),
}
"""Cost increase published by MOCCASIN (given order) and FastSA (order searched)."""


@dataclass(frozen=True, slots=True)
class Run:
    """One certified run; cost and bound over the ideal, nothing found is infinitely dear."""

    cost: float
    bound: float
    gap: float
    seconds: float
    proven_infeasible: bool = False

    @property
    def row(self) -> str:
        found = "infeasible" if self.proven_infeasible else "none" if math.isinf(self.cost) else f"{self.cost:.5f}"
        return f"{found} | {self.bound:.5f} | {'-' if math.isinf(self.cost) else f'{self.gap:.3%}'} | {self.seconds:.1f} s"


def run(problem: Problem, limit: float, *, order: Order, gap: float = 5e-3) -> Run:
    certified = run_strategy(problem, "auto", Settings(order=order, gap=gap), Watch(limit))
    bound = (certified.bound or 0.0) / problem.ideal_cost
    if certified.simulation is None or not certified.fits:
        return Run(math.inf, bound, math.inf, certified.seconds, certified.status is Status.INFEASIBLE)
    cost = certified.simulation.cost
    return Run(cost / problem.ideal_cost, bound, relative_gap(cost, certified.bound or 0.0), certified.seconds)


def published(folder: Path, name: str) -> tuple[Problem, int]:
    priced = checkmate.load(folder / f"{name}.json").price()
    return priced.problem, priced.keep_all.peak


def papers(arguments: argparse.Namespace) -> Iterator[str]:
    print("\n| graph | budget | cost | bound | gap | time |\n|---|---|---|---|---|---|")
    for name, shares, asked in (
        ("vgg16_b256", (0.9, 0.8, 0.7, 0.6, 0.0), 1e-4),
        ("unet_b32", (0.9, 0.8, 0.7, 0.6, 0.0), 1e-4),
        ("fcn8_b32", (0.9, 0.8, 0.7, 0.6, 0.0), 1e-4),
        ("resnet50_b256", (0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3), 5e-3),
    ):
        problem, peak = published(arguments.graphs, name)
        floor = feasibility_floor(problem).bytes
        for share in shares:
            budget = int(share * peak) if share else int(1.02 * floor)
            if budget < floor:
                continue
            made = run(problem.with_budget(budget), arguments.time_limit, order=Order.GIVEN, gap=asked)
            what = f"{share:.0%}" if share else "1.02 x floor"
            print(f"| {name} | {what} | {made.row} |", flush=True)
            if not made.proven_infeasible and made.gap > asked * 1.0001:
                yield f"{name} at {what}: gap {made.gap:.3%}, asked for {asked:.2%}"


def layered(arguments: argparse.Namespace) -> Iterator[str]:
    print("\n| graph | budget | order | cost | bound | gap | time | published |\n|---|---|---|---|---|---|---|---|")
    for (name, share), (moccasin, fastsa, *most) in PEERS.items():
        problem, peak = published(arguments.graphs, name)
        for order, peer, limit in ((Order.GIVEN, f"MOCCASIN {moccasin}", most[0]), (Order.SEARCH, f"FastSA {fastsa}", most[1])):
            made = run(problem.with_budget(int(share * peak)), arguments.time_limit, order=order)
            print(f"| {name} | {share:.0%} | {order} | {made.row} | {peer} |", flush=True)
            if round(100 * (made.cost - 1), 2) > limit + 0.05:
                yield f"{name} at {share:.0%}, order {order}: {made.cost - 1:.2%} more, {peer}"


def light_problem(path: Path) -> Problem:
    return checkmate.differentiate(path, loss="cross-entropy", batch_size=LIGHT_BATCH).price().problem


def light(arguments: argparse.Namespace) -> Iterator[str]:
    print("\n| model | operations | budget | cost | bound | gap | time |\n|---|---|---|---|---|---|---|")
    for path in sorted(LIGHT.glob("light_*.onnx")):
        name = path.stem.removeprefix("light_")
        if arguments.models and name not in arguments.models.split(","):
            continue
        problem = light_problem(path)
        peak, floor = keep_all_profile(problem).peak, feasibility_floor(problem).bytes
        limit, most = (300.0, 0.02) if problem.count > 5000 else (arguments.time_limit, 0.01)
        shares = (0.7, 0.5, 0.35)
        if min(shares) * peak < 1.02 * floor:
            # No schedule is proven to need less than `floor`, but perhaps all need more: the least that one was found for is what is asked.
            floor = max(floor, find_smallest(problem, Settings(order=arguments.order), Watch(limit)).budget)
        for budget in {max(int(share * peak), int(1.02 * floor)): None for share in shares}:
            made = run(problem.with_budget(budget), limit, order=arguments.order)
            print(f"| {name} | {problem.count} | {budget / peak:.1%} | {made.row} |", flush=True)
            if made.gap > most:
                yield f"{name} at {budget / peak:.1%} (floor {floor / peak:.1%}): gap {made.gap:.2%}, asked for {most:.0%}"


def growth(arguments: argparse.Namespace) -> Iterator[str]:
    print("\n| graph | operations | time to within 5 % of the bound |\n|---|---|---|")
    for name, build in training_graphs.BUILDERS.items():
        times: list[tuple[int, float]] = []
        for size in (500, 1000, 2000, 5000, 10_000):
            problem = build(size)
            half = problem.with_budget(int(0.5 * profile(problem, range(problem.count)).peak))
            seconds = _until_within(half, 0.05, 10 * arguments.time_limit, Order.GIVEN)
            times.append((problem.count, seconds))
            print(f"| {name} | {problem.count} | {seconds:.1f} s |", flush=True)
        (small, first), (large, last) = times[0], times[-1]
        exponent = math.log(last / first) / math.log(large / small)
        print(f"| {name} | exponent | {exponent:.2f} |", flush=True)
        if not exponent < 1.5:
            yield f"growth on {name}: exponent {exponent:.2f}"


def large(arguments: argparse.Namespace) -> Iterator[str]:
    print("\n| graph | operations | budget | time to within 1 % of the bound | memory so far |\n|---|---|---|---|---|")
    for name in ("chain", "transformer"):
        for size, limit in LARGE.items():
            problem = training_graphs.BUILDERS[name](size)
            for share in (0.5, 0.3):
                budget = int(share * profile(problem, range(problem.count)).peak)
                seconds = _until_within(problem.with_budget(budget), 0.01, limit, Order.SEARCH)
                gigabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9
                print(f"| {name} | {problem.count} | {share:.0%} | {seconds:.1f} s | {gigabytes:.1f} GB |", flush=True)
                if seconds > limit or gigabytes > 4.0:
                    yield f"{name} of {problem.count} at {share:.0%}: {seconds:.0f} s of {limit:.0f}, {gigabytes:.1f} GB of 4"


def _until_within(problem: Problem, share: float, limit: float, order: Order) -> float:
    """Seconds until a schedule is within this share of the bound, as the progress tells it; until the end if never."""
    best, bound, when = math.inf, 0.0, math.inf
    begun = time.monotonic()

    def listen(event: Event) -> None:
        nonlocal best, bound, when
        best = min(best, event.incumbent or math.inf)
        bound = max(bound, event.bound or 0.0)
        if relative_gap(best, bound) <= share and math.isinf(when):
            when = time.monotonic() - begun

    watch = Watch(limit, on_event=listen, interrupted=lambda: not math.isinf(when))
    run_strategy(problem, "auto", Settings(order=order, gap=share), watch)
    return when if not math.isinf(when) else time.monotonic() - begun


def formulation(arguments: argparse.Namespace) -> Iterator[str]:
    print("\n| graph | budget | auto: cost | time | paper's MILP: cost | time | sooner |\n|---|---|---|---|---|---|---|")
    for name, share in (("resnet50_b256", 0.7), ("resnet50_b256", 0.5), ("random_layered_500", 0.9)):
        problem, peak = published(arguments.graphs, name)
        problem = problem.with_budget(int(share * peak))
        made = run(problem, arguments.time_limit, order=Order.GIVEN)
        cost, seconds = _reached_by_the_paper(problem, made.cost * problem.ideal_cost, arguments.time_limit)
        times = "never" if math.isinf(seconds) else f"{seconds / made.seconds:.0f} x"
        reached = "none" if math.isinf(cost) else f"{cost / problem.ideal_cost:.5f}"
        print(f"| {name} | {share:.0%} | {made.cost:.5f} | {made.seconds:.1f} s | {reached} | {seconds:.0f} s | {times} |", flush=True)
        if seconds < 50 * made.seconds:
            yield f"{name} at {share:.0%}: the paper's formulation reaches the same cost in {seconds / made.seconds:.1f} times the time"


def _reached_by_the_paper(problem: Problem, goal: float, limit: float) -> tuple[float, float]:
    """The best cost the paper's formulation finds from nothing in the limit, and when it is as good as the goal; infinite if never."""
    begun, best, when = time.monotonic(), math.inf, math.inf

    def listen(event: Event) -> None:
        nonlocal best, when
        best = min(best, event.incumbent or math.inf)
        if best <= goal * (1 + 1e-9) and math.isinf(when):
            when = time.monotonic() - begun

    solve_exactly(problem, Settings(formulation=FormulationName.PAPER), Watch(limit, on_event=listen))
    return best, when


TABLES: dict[str, Callable[[argparse.Namespace], Iterator[str]]] = {
    "papers": papers,
    "layered": layered,
    "light": light,
    "growth": growth,
    "large": large,
    "formulation": formulation,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graphs", type=Path, help="the folder of the published graphs")
    parser.add_argument("--tables", default=",".join(TABLES), help="which, separated by commas")
    parser.add_argument("--models", help="only these light models")
    parser.add_argument("--order", default="search", choices=("search", "given"), help="of the light models")
    parser.add_argument("--time-limit", type=float, default=60.0)
    arguments = parser.parse_args()
    warm_up()
    missed: list[str] = []
    for name in arguments.tables.split(","):
        if name in ("papers", "layered", "formulation") and arguments.graphs is None:
            parser.error(f"the table {name} needs --graphs")
        missed.extend(TABLES[name](arguments))
    for miss in missed:
        print(f"missed: {miss}", file=sys.stderr)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
