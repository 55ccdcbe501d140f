"""Optima by exhaustive search, written without any of the code under test but the problem's own tables."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterator

from random_graphs import random_problem

from checkmate.core.model.memory_model import MemoryModel
from checkmate.core.model.problem import Problem

State = tuple[int, int, frozenset[int]]


def staged_optimum(problem: Problem) -> float:
    """The cheapest schedule of the paper's search space; infinite if none fits.

    Stage t ends with the first computation of t; within a stage each operation runs at most once, in topological order; any value may be
    dropped at any moment; after the last stage there is one more pass in which graph outputs can be recomputed. A state is (stage, next
    operation to consider, live values).
    """

    def moves(state: State) -> Iterator[tuple[float, State]]:
        stage, position, live = state
        for value in live:
            yield 0.0, (stage, position, live - {value})
        if position == problem.count:
            return
        if position < stage:
            yield 0.0, (stage, position + 1, live)
        allowed = position == stage or not problem.pinned[position]
        if allowed and _fits(problem, position, live):
            after = live | set(problem.outputs[position])
            done = position == stage
            yield problem.cost[position], (stage + 1, 0, after) if done else (stage, position + 1, after)

    return _cheapest(problem, (0, 0, frozenset()), moves)


def unrestricted_optimum(problem: Problem) -> float:
    """The cheapest schedule with first computations in order and any recomputation at any time."""

    def moves(state: State) -> Iterator[tuple[float, State]]:
        stage, _, live = state
        for value in live:
            yield 0.0, (stage, 0, live - {value})
        for operation in range(min(stage + 1, problem.count)):
            if (operation == stage or not problem.pinned[operation]) and _fits(problem, operation, live):
                yield problem.cost[operation], (max(stage, operation + 1), 0, live | set(problem.outputs[operation]))

    return _cheapest(problem, (0, 0, frozenset()), moves)


def any_order_optimum(problem: Problem) -> float:
    """The cheapest schedule of all: any order of first computations, any recomputation at any time, and computing in place where the memory
    model has it. A state is (operations computed so far as bits, live values)."""
    overwrites = _overwrites(problem)

    def moves(state: State) -> Iterator[tuple[float, State]]:
        done, _, live = state
        for value in live:
            yield 0.0, (done, 0, live - {value})
        for operation in range(problem.count):
            again = done >> operation & 1
            if (again and problem.pinned[operation]) or not live.issuperset(problem.inputs[operation]):
                continue
            for source, target in ((None, None), *overwrites[operation]):
                together = (live | set(problem.outputs[operation])) - {target}
                if sum(problem.size[value] for value in together) + problem.workspace[operation] <= problem.available:
                    after = (live | set(problem.outputs[operation])) - {source}
                    yield problem.cost[operation], (done | 1 << operation, 0, after)

    return _cheapest(problem, (0, 0, frozenset()), moves, (1 << problem.count) - 1)


def _overwrites(problem: Problem) -> list[list[tuple[int, int]]]:
    """Values that each operation may write over: an input of the same size, if neither is a graph output."""
    number = {value: position for position, value in enumerate(problem.graph_value)}
    values, found = problem.graph.values, []
    for index in problem.graph_operation:
        pairs: list[tuple[int, int]] = []
        for source, target in problem.graph.operations[index].in_place if problem.memory_model is not MemoryModel.GENERIC else ():
            while values[source].alias_of is not None:
                source = values[source].alias_of
            if source in number and values[source].bytes == values[target].bytes and target not in problem.graph.outputs:
                pairs.append((number[source], number[target]))
        found.append(pairs)
    return found


def small_problems(first: int, count: int) -> list[tuple[int, Problem, float]]:
    """Random problems that have a schedule, with their seeds and what the cheapest costs."""
    drawn = [(seed, random_problem(seed, most=8)) for seed in range(first, first + count)]
    rated = [(seed, problem, unrestricted_optimum(problem)) for seed, problem in drawn if problem.count > 2]
    return [(seed, problem, optimum) for seed, problem, optimum in rated if optimum < math.inf]


def _fits(problem: Problem, operation: int, live: frozenset[int]) -> bool:
    if not live.issuperset(problem.inputs[operation]):
        return False
    together = live | set(problem.outputs[operation])
    return sum(problem.size[value] for value in together) + problem.workspace[operation] <= problem.available


def _cheapest(problem: Problem, start: State, moves: Callable[[State], Iterator[tuple[float, State]]], last: int | None = None) -> float:
    wanted = {value for value, kept in enumerate(problem.kept) if kept}
    best: dict[State, float] = {start: 0.0}
    queue: list[tuple[float, int, State]] = [(0.0, 0, start)]
    pushed = 0
    while queue:
        cost, _, state = heapq.heappop(queue)
        if cost > best[state]:
            continue
        if state[0] == (problem.count if last is None else last) and state[2] >= wanted:
            return cost
        for extra, following in moves(state):
            if cost + extra < best.get(following, math.inf) - 1e-12:
                best[following] = cost + extra
                pushed += 1
                heapq.heappush(queue, (cost + extra, pushed, following))
    return math.inf
