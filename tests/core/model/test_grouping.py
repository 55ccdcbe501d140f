"""Grouping: what is smaller must still be the same problem, less some of its schedules."""

from __future__ import annotations

import random

from random_graphs import random_problem

from checkmate.core.model.problem import Problem
from checkmate.core.model.transforms.group import group_operations, small_below
from checkmate.core.model.transforms.unroll import unrolled
from checkmate.core.schedule.sequence import first_computations, profile, prune


def some_schedule(problem: Problem, seed: int) -> tuple[int, ...]:
    """Any schedule: recomputations with all they need, at random."""
    rng = random.Random(seed)
    sequence: list[int] = []
    for operation in range(problem.count):
        sequence += [earlier for earlier in range(operation) if not problem.pinned[earlier] and rng.random() < 0.2]
        sequence.append(operation)
    return prune(problem, sequence)


def test_a_schedule_of_the_groups_is_one_of_the_problem() -> None:
    """It costs the same and takes no more; and there is something to group."""
    grouped_away = 0
    for seed in range(400):
        problem = random_problem(seed, most=16)
        if not problem.count:
            continue
        grouped = group_operations(problem, small=3.0)
        smaller = grouped.problem
        grouped_away += problem.count - smaller.count
        chosen = some_schedule(smaller, seed)
        before, after = profile(smaller, chosen), profile(problem, grouped.expand(chosen))
        assert abs(before.cost - after.cost) < 1e-9, seed
        assert after.peak <= before.peak, seed
        assert [operation for run in grouped.members for operation in run] == list(range(problem.count))
        assert grouped.contract(grouped.expand(chosen)) == chosen
    assert grouped_away > 200


def test_groups_are_about_as_easy_to_fit_as_their_members() -> None:
    for seed in range(200):
        problem = random_problem(seed, most=16)
        if problem.count:
            smaller = group_operations(problem, small=3.0).problem
            everything, grouped = profile(problem, range(problem.count)), profile(smaller, range(smaller.count))
            assert grouped.cost == everything.cost
            assert grouped.peak >= everything.peak


def test_small_values_together_leave_room() -> None:
    """However small each is, together they must not take what the budget leaves."""
    for seed in range(100):
        problem = random_problem(seed, most=16)
        if problem.count:
            small = small_below(problem)
            assert sum(size for size in problem.size if size < small) <= max(0, problem.budget)


def test_a_schedule_unrolled_takes_what_it_took_in_any_order_it_allows() -> None:
    for seed in range(200):
        problem = random_problem(seed, most=12)
        if not problem.count:
            continue
        schedule = some_schedule(problem, seed)
        spelt = unrolled(problem, schedule)
        everything = profile(spelt, range(spelt.count))
        assert everything == profile(problem, schedule)
        rng = random.Random(seed)
        waiting = [{spelt.producer[value] for value in spelt.inputs[place]} for place in range(spelt.count)]
        order: list[int] = []
        while len(order) < spelt.count:
            done = set(order)
            order.append(rng.choice([place for place in range(spelt.count) if place not in done and waiting[place] <= done]))
        moved = [schedule[place] for place in order]
        assert profile(problem, moved).peak <= profile(spelt, order).peak, seed
        assert all(position >= 0 for position in first_computations(problem.count, moved))
