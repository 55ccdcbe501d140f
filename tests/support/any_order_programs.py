"""Random problems, breakpoints for them, and what their any-order programs prove."""

from __future__ import annotations

import math
import random

from chains import random_chain
from random_graphs import random_problem, random_training

from checkmate.core.events import Watch
from checkmate.core.labels.label_setting import labels_by
from checkmate.core.labels.tail import Tail
from checkmate.core.milp.any_order import AnyOrderProgram
from checkmate.core.model.precedence import Precedence
from checkmate.core.model.problem import Problem
from checkmate.core.result import Status
from checkmate.core.settings import Settings
from checkmate.core.solvers import get_solver

EXACT = Settings(gap=0.0, threads=1)


def drawn(seed: int) -> Problem:
    """Random graphs, training chains, and training graphs with and without computing in place."""
    match seed % 4:
        case 0:
            return random_problem(seed, most=8)
        case 1:
            return random_chain(seed)
        case _:
            return random_training(seed, in_place=seed % 4 == 3)


def random_breakpoints(problem: Problem, precedence: Precedence, seed: int) -> list[int]:
    rng = random.Random(seed)
    chain: list[int] = []
    wanted = rng.choice((1, 1, 2, 3, 4))
    for operation in rng.sample(range(problem.count), problem.count):
        if len(chain) < wanted and all(precedence.relatives(operation).comparable(other) for other in chain):
            chain.append(operation)
    return precedence.in_order(chain)


def optimum_of(program: AnyOrderProgram) -> float:
    """Infinite if the program has no solution."""
    result = get_solver("highs").solve(program.form, EXACT, Watch(60))
    if result.status is Status.INFEASIBLE:
        return math.inf
    assert result.status is Status.OPTIMAL
    return result.bound * program.unit


def random_tails(problem: Problem, precedence: Precedence, chain: list[int], seed: int) -> list[Tail]:
    """By some values or all, with few labels or many."""
    rng = random.Random(seed)
    tails: list[Tail] = []
    for begin in chain:
        share = rng.choice((0.3, 0.7, 1.0))
        tracked = [value for value in range(len(problem.size)) if rng.random() < share]
        dearest = rng.choice((math.inf, problem.ideal_cost / 4))
        tail = labels_by(problem, precedence, begin, tracked, dearest, rng.choice((3, 30, 100_000)))
        tails += [] if tail is None else [tail]
    return tails
