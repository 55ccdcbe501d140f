"""What each worker and each rule of `auto` is worth: every one switched off in turn, on the same rows, with the same rounds.

    python benchmarks/ablation.py --graphs DIR [--rows light:inception_v1:0.5,...] [--time-limit 20]

For each row and each part: how much more the schedule costs and how much lower the bound for any order is without the part, in percent of
the ideal cost, and how much longer it took. A part that is worth nothing on any row should be deleted.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from solver import LIGHT, light_problem, published

from checkmate.core import params as table
from checkmate.core.engine import auto as engine
from checkmate.core.engine.run import run_strategy
from checkmate.core.engine.worker import Worker
from checkmate.core.events import Watch
from checkmate.core.model.problem import Problem
from checkmate.core.schedule.peak import keep_all_profile
from checkmate.core.search.warm import warm_up
from checkmate.core.settings import Order, Settings

ROWS = (
    "light:shufflenet:0.5",
    "light:inception_v1:0.5",
    "light:resnet50:0.35",
    "light:squeezenet:0.6",
    "light:vgg19:0.52",
    "graph:gpt6_joint:70MB",
    "graph:resnet50_b256:0.3",
    "graph:random_layered_500:0.8",
)
WORKERS = (
    *("baselines", "programs 0", "programs 1", "programs 2", "incumbent's order"),
    *("margin", "repair", "annealing", "restart", "descent"),
)
RULES: dict[str, dict[str, Any]] = {
    "compare breakpoints by linear programs": {"breakpoints_operations": 0},
    "orders of lower peak": {"order_moves": 0},
    "longer annealing after failures": {"doublings": 0},
    "groups": {"group_longest": 1},
}
"""Rules that a parameter switches off."""


@dataclass(frozen=True, slots=True)
class Figures:
    cost: float
    bound: float
    seconds: float


def measured(problem: Problem, limit: float) -> Figures:
    result = run_strategy(problem, "auto", Settings(order=Order.SEARCH, gap=1e-4), Watch(limit))
    cost = result.cost / problem.ideal_cost if result.fits else float("inf")
    return Figures(cost, (result.any_bound or 0.0) / problem.ideal_cost, result.seconds)


@contextmanager
def without_worker(name: str) -> Iterator[None]:
    everyone = engine.workers

    def others(*arguments: Any) -> list[Worker]:
        return [worker for worker in everyone(*arguments) if not worker.name.startswith(name)]

    engine.workers = others
    try:
        yield
    finally:
        engine.workers = everyone


@contextmanager
def with_params(changes: dict[str, Any]) -> Iterator[None]:
    """Modules have the table under its own name: it is changed in place."""
    before = table.PARAMS
    try:
        for name, value in changes.items():
            object.__setattr__(table.PARAMS, name, value)
        yield
    finally:
        for name in changes:
            object.__setattr__(table.PARAMS, name, getattr(table.Params(), name))
        assert replace(before) == table.Params()


def problem_of(row: str, folder: Path) -> Problem:
    kind, name, budget = row.split(":")
    problem = light_problem(LIGHT / f"light_{name}.onnx") if kind == "light" else published(folder, name)[0]
    if budget.endswith("MB"):
        return problem.with_budget(int(float(budget[:-2]) * 1e6))
    return problem.with_budget(int(float(budget) * keep_all_profile(problem).peak))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--graphs", type=Path, required=True)
    parser.add_argument("--rows", default=",".join(ROWS))
    parser.add_argument("--time-limit", type=float, default=20.0)
    arguments = parser.parse_args()
    warm_up()
    parts: dict[str, Callable[[], Any]] = {name: (lambda name=name: without_worker(name)) for name in WORKERS}
    parts |= {name: (lambda changes=changes: with_params(dict(changes))) for name, changes in RULES.items()}
    print("| row | without | cost | bound | cost more | bound lower | time |\n|---|---|---|---|---|---|---|")
    for row in arguments.rows.split(","):
        problem = problem_of(row, arguments.graphs)
        whole = measured(problem, arguments.time_limit)
        print(f"| {row} | - | {whole.cost:.5f} | {whole.bound:.5f} | | | {whole.seconds:.1f} s |", flush=True)
        for name, switched in parts.items():
            with switched():
                made = measured(problem, arguments.time_limit)
            more, lower = made.cost - whole.cost, whole.bound - made.bound
            print(
                f"| {row} | {name} | {made.cost:.5f} | {made.bound:.5f} | {more:+.3%} | {lower:+.3%} | {made.seconds:.1f} s |", flush=True
            )


if __name__ == "__main__":
    main()
