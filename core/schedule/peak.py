"""Peaks as the memory model counts them. The keep-all peak is what percentages of a budget refer to.

The profile of a sequence (`sequence.py`) is quick, and may say a little too much: it knows no computing in place, and takes readers of a
view to read all that the view was made from.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..model.bounding import bounding_problem, in_place_credits
from ..model.problem import Problem
from .schedule import Schedule, expand
from .sequence import Profile, profile
from .simulate import Simulation, simulate


def keep_all_profile(problem: Problem) -> Profile:
    """The profile of computing every operation once, in the order of the graph, with the memory model of the problem."""
    everything = range(problem.count)
    if not problem.memory_model.overwrites:
        return profile(problem, everything)
    schedule, simulation = _simulated(problem, everything)
    operations = problem.graph.operations
    memory = tuple(taken for index, taken in zip(schedule.computations, simulation.memory, strict=True) if not operations[index].view)
    return Profile(simulation.cost, max(memory, default=problem.base), memory)


def simulated_peak(problem: Problem, sequence: Sequence[int]) -> int:
    """The peak of a sequence, base included."""
    return _simulated(problem, sequence)[1].peak_bytes


def most_overestimated(problem: Problem) -> int:
    """By so many bytes, at most, the profile of a sequence is above its peak."""
    relaxed = bounding_problem(problem)
    if relaxed is problem:
        return 0
    extra = {value for read, really in zip(problem.inputs, relaxed.inputs, strict=True) for value in read if value not in really}
    extra |= {value for value, kept in enumerate(problem.kept) if kept and not relaxed.kept[value]}
    return max(in_place_credits(problem), default=0) + sum(problem.size[value] for value in extra)


def _simulated(problem: Problem, sequence: Sequence[int]) -> tuple[Schedule, Simulation]:
    schedule = expand(problem, sequence)
    reserve = problem.base - problem.graph.fixed_bytes
    return schedule, simulate(problem.graph, problem.costs, schedule, reserve=reserve, memory_model=problem.memory_model)
