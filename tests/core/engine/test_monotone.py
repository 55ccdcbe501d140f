"""More time is never worse: what is done does not depend on the limit, which only ends the rounds. Rounds are the clock here."""

from __future__ import annotations

from itertools import pairwise

import pytest
from chains import unit_chain
from random_graphs import random_training

from checkmate.core.engine.auto import workers
from checkmate.core.engine.pool import Entry, Pool
from checkmate.core.engine.scheduler import Scheduler
from checkmate.core.events import Watch
from checkmate.core.model.floors import least_memory
from checkmate.core.model.problem import Problem
from checkmate.core.schedule.peak import keep_all_profile
from checkmate.core.settings import Order, Settings

ROUNDS = (1, 3, 6, 9)
"""Tails begin in the seventh."""


def after(problem: Problem, rounds: int, order: Order, limit: float, threads: int) -> Pool:
    settings = Settings(gap=0.0, order=order, iterations=rounds, threads=threads)
    pool = Pool(problem, order is Order.SEARCH)
    Scheduler(pool, workers(problem, settings), settings, Watch(limit)).run()
    return pool


def problems() -> list[Problem]:
    training = random_training(7)
    least = least_memory(training).bytes
    return [unit_chain(60, 9), training.with_budget(least + (keep_all_profile(training).peak - least) // 3)]


@pytest.mark.slow
@pytest.mark.parametrize("order", Order)
@pytest.mark.parametrize("number", range(2))
def test_a_longer_run_begins_with_the_shorter_one(order: Order, number: int) -> None:
    """Whatever the limit and the number of cores: the log of a run is the beginning of the log of every longer one."""
    problem = problems()[number]
    logs: list[list[Entry]] = []
    figures: list[tuple[float, float]] = []
    for number_of_run, rounds in enumerate(ROUNDS):
        pool = after(problem, rounds, order, limit=100.0 * rounds, threads=1 + number_of_run % 2)
        logs.append(pool.log)
        figures.append((pool.cost, pool.any_bound))
    for shorter, longer in pairwise(logs):
        assert longer[: len(shorter)] == shorter
    for (cost, bound), (later_cost, later_bound) in pairwise(figures):
        assert later_cost <= cost
        assert later_bound >= bound
    assert logs[-1]
