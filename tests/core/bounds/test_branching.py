"""Zones passed at one level or another, bounded apart: the lower bound holds for all schedules; and searched, each on a real way."""

from __future__ import annotations

import math
import random
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from chains import random_chain, unit_chain
from oracles import unrestricted_optimum
from random_graphs import random_problem

from checkmate.core.bounds.branching import Branching
from checkmate.core.bounds.cutting import Cutting
from checkmate.core.bounds.zoning import Passage, Zoning, real_passage, zonings
from checkmate.core.engine.turns import ZoneTurns
from checkmate.core.events import Event, Watch
from checkmate.core.milp.relaxation import build_relaxation, reduce_problem
from checkmate.core.model.problem import Problem
from checkmate.core.schedule.sequence import profile
from checkmate.core.search.views import ZoneView
from checkmate.core.settings import Settings
from checkmate.core.solvers.linear_program import solve_linear
from checkmate.core.zones.labels import find_zone, real_ways


def some_problems(first: int, count: int) -> list[tuple[int, Problem, float]]:
    """Chains, which have zones of several levels, and now and then a random graph, with what the cheapest schedule costs."""
    drawn = [(seed, random_chain(seed) if seed % 3 else random_problem(seed, most=8)) for seed in range(first, first + count)]
    rated = [(seed, problem, unrestricted_optimum(problem)) for seed, problem in drawn if problem.count > 2]
    return [(seed, problem, optimum) for seed, problem, optimum in rated if optimum < math.inf]


def some_zoning(problem: Problem, seed: int) -> Zoning | None:
    """One or two zones at random."""
    rng = random.Random(seed)
    cuts = sorted(rng.sample(range(problem.count + 1), min(4, problem.count + 1)))
    runs = [range(cuts[0], cuts[1]), *([range(cuts[2], cuts[3])] if len(cuts) == 4 else [])]
    zones = tuple(zone for run in runs if len(run) > 1 and (zone := find_zone(problem, run)) is not None)
    return Zoning(zones, frozenset(rng.sample(range(1, problem.count), 1))) if zones else None


def branching_of(problem: Problem, zoning: Zoning, gap: float = 1e-6) -> Branching:
    cutting = Cutting(problem, max(1, problem.count // 2), 0)
    cutting.go_on(zoning.ends)
    return Branching(problem, reduce_problem(problem), Settings(gap=gap), zoning, cutting)


@pytest.mark.slow
def test_the_bound_of_all_parts_rises_and_never_above_the_optimum() -> None:
    above_ideal = divided = 0
    for seed, problem, optimum in some_problems(310_000, 300):
        zoning = some_zoning(problem, 2 * seed)
        if zoning is None:
            continue
        events: list[Event] = []
        branching = branching_of(problem, zoning)
        before = 0.0
        for _ in range(30):
            if branching.exhausted:
                break
            branching.advance(Watch(60, events.append), None)
            assert before <= branching.bound <= optimum * (1 + 1e-7) + 1e-6, seed
            before = branching.bound
        above_ideal += branching.bound > problem.ideal_cost + 1e-6
        divided += any("parts" in event.message for event in events)
    assert above_ideal > 50
    assert divided > 3


@pytest.mark.parametrize(("seed", "zones"), [(302_084, 0), (301_841, 1), (302_936, 1), (310_927, 0)])
def test_what_presolve_of_highs_gets_wrong_is_left_out_of_it(seed: int, zones: int) -> None:
    """Programs of zones that HiGHS 1.15 calls infeasible or proves an optimum of that is none, with all of its presolve."""
    problem = random_chain(seed)
    optimum = unrestricted_optimum(problem)
    zoning = some_zoning(problem, 2 * seed + zones)
    assert zoning is not None
    branching = branching_of(problem, zoning)
    while not branching.exhausted:
        branching.advance(Watch(60), None)
    assert branching.bound <= optimum * (1 + 1e-7)


def test_work_ends_where_a_part_is_as_dear_as_what_is_known() -> None:
    """Told of an optimal schedule, no bound need be higher; and parts that are dearer are not worked on."""
    problem = unit_chain(8, 4)
    zoning = next(zonings(problem, 100))
    branching = branching_of(problem, zoning, gap=0.01)
    best = cheapest_schedule(problem)
    programs = 0
    while not branching.exhausted and branching.bound < 26 * (1 - 0.01):
        branching.advance(Watch(60), best)
        programs += 1
    assert programs < 30
    assert 26 * (1 - 0.01) <= branching.bound <= 26 * (1 + 1e-7)


def cheapest_schedule(problem: Problem) -> tuple[int, ...]:
    found = ZoneView.of(problem, {}).walk(tuple(range(problem.count)), 1, 20_000, Watch(60), 0)
    assert found is not None
    assert profile(problem, found).cost == 26
    return found


@pytest.mark.slow
def test_a_real_way_fits_with_everything_it_reads_and_leaves_behind() -> None:
    """Replayed from its end, with all values: it fits, makes nothing again that the way it is like does not, and leaves what is read
    later."""
    replayed = recomputing = 0
    for seed, drawn, _ in some_problems(330_000, 200):
        problem = replace(drawn, workspace=(0,) * drawn.count)
        zoning = some_zoning(problem, seed)
        for zone in () if zoning is None else zoning.zones:
            for way in (way for way in zone.ways if way.operations):
                for real in real_ways(problem, zone, way):
                    again = Counter(real.operations) - Counter(zone.run)
                    assert set(again) <= set(Counter(way.operations) - Counter(zone.run)), seed
                    made = [value for operation in zone.run for value in problem.outputs[operation]]
                    awaited = {value for value in made if problem.kept[value] or problem.consumers[value][-1:] >= (zone.run.stop,)}
                    for operation in reversed(real.operations):
                        there = {*problem.inputs[operation], *problem.outputs[operation]}
                        assert sum(problem.size[value] for value in awaited | there) <= problem.available, seed
                        awaited = awaited.difference(problem.outputs[operation]).union(problem.inputs[operation])
                    replayed += 1
                    recomputing += bool(again)
    assert replayed > 100
    assert recomputing > 30


def passages_of(problem: Problem) -> list[Passage]:
    """What linear relaxations say of the zones that are tried first."""
    found = []
    for zoning in zonings(problem, 100):
        relaxation = build_relaxation(reduce_problem(problem), *zoning.runs(problem))
        values = solve_linear(relaxation.form, Watch(60)).values
        assert values is not None
        found.append(real_passage(problem, relaxation, np.asarray(values)))
    return [passage for passage in found if passage is not None]


def test_walks_that_pass_zones_on_given_ways_find_the_optimum() -> None:
    problem = unit_chain(10, 4)
    turns = ZoneTurns(problem)
    assert not turns
    turns.add(passages_of(problem))
    assert turns
    costs = []
    for seed in range(12):
        turn = turns.next()
        found = turn.view.walk(tuple(range(problem.count)), seed, 5000, Watch(60), turn.walks)
        cost = math.inf if found is None else profile(problem, found).cost
        turns.tell(turn, cost)
        costs.append(cost)
    assert turns.begun
    assert min(costs) == 35


def test_a_relaxation_is_believed_every_other_time_and_soon_when_it_has_something_new_to_say() -> None:
    problem = unit_chain(6, 4)
    turns = ZoneTurns(problem)
    ways = [{range(start, 13): (start, 4, *range(start + 1, 13))} for start in (7, 8)]
    turns.add([Passage(ways[0], frozenset({2}))] * 2)
    assert not turns.is_urgent
    assert [turns.next().trusting for _ in range(5)] == [False, True, False, True, False]
    turns.add([Passage(ways[1], frozenset({2}))])
    turns.add([Passage(ways[0], frozenset({3}))])
    assert turns.is_urgent
    believed = turns.next()
    assert believed.trusting
    assert believed.again == {3}
    turns.add([Passage(ways[0], frozenset({4}))])
    assert not turns.is_urgent
    assert not turns.next().trusting
    assert turns.is_urgent
    assert {turns.next().again for _ in range(3)} >= {frozenset({4})}


def test_zones_that_lead_nowhere_are_left_once_all_views_were_tried() -> None:
    problem = unit_chain(6, 4)
    turns = ZoneTurns(problem)
    turns.add(Passage({range(start, 13): tuple(range(start, 13))}, frozenset()) for start in (7, 8))
    walked = []
    for _ in range(16):
        turn = turns.next()
        turns.tell(turn, (30.0, 40.0)[turn.number])
        walked.append(turn.number)
    assert walked.count(1) >= 2
    assert set(walked[-8:]) == {0}


def test_of_dear_operations_outside_zones_only_some_may_be_made_again() -> None:
    chain = unit_chain(6, 5)
    problem = replace(chain, cost=(1.0, 5.0, 5.0, *chain.cost[3:]))
    view = ZoneView.of(problem, {range(7, 13): (7, 4, *range(8, 13))}).recomputing_no_more({2}, 2.0)
    assert [group for group, pinned in enumerate(view.passed.problem.pinned) if pinned] == [1, 7]
    assert view.name == "trusting zone search"
