"""Programs with tails for the incumbent's order: a bound for that order, never above its optimum."""

from __future__ import annotations

import math

from oracles import unrestricted_optimum
from random_graphs import random_training

from checkmate.core.engine.pool import Pool, Snapshot
from checkmate.core.engine.run import run_strategy
from checkmate.core.engine.workers.incumbent_order import IncumbentOrder
from checkmate.core.events import Watch
from checkmate.core.model.problem import Problem
from checkmate.core.params import PARAMS
from checkmate.core.settings import Order, Settings


def pool_with_incumbent(problem: Problem) -> Pool:
    """With the best schedule in the problem's own order."""
    found = run_strategy(problem, "auto", Settings(order=Order.GIVEN, iterations=4), Watch(20))
    assert found.sequence is not None
    pool = Pool(problem, order_is_free=True)
    pool.offer(found.sequence, "given")
    return pool


def late(pool: Pool) -> Snapshot:
    return pool.snapshot(PARAMS.tails_from_round)


def test_its_bound_is_for_the_order_of_the_incumbent_and_not_above_its_optimum() -> None:
    proven = 0
    for seed in range(2, 60, 8):
        problem = random_training(seed)
        best = unrestricted_optimum(problem)
        if best == math.inf or best <= problem.ideal_cost:
            continue
        pool = pool_with_incumbent(problem)
        is_own = pool.order == tuple(range(problem.count))
        worker = IncumbentOrder(problem, Settings(threads=1))
        while worker.wants(late(pool)):
            report = worker.step(late(pool), Watch(20))
            assert report.order == pool.order
            assert report.bound <= (best if is_own else pool.cost) * (1 + 1e-6), seed
            proven += report.bound > problem.ideal_cost * (1 + 1e-6)
        worker.close()
    assert proven > 4


def test_it_waits_until_there_is_an_incumbent_and_the_gap_is_wide() -> None:
    problem = random_training(2)
    worker = IncumbentOrder(problem, Settings(threads=1))
    assert not worker.wants(late(Pool(problem, order_is_free=True)))
    pool = pool_with_incumbent(problem)
    assert not worker.wants(pool.snapshot(0))
    pool.any_bound = pool.cost
    assert not worker.wants(late(pool))
