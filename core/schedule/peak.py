"""The keep-all peak, which percentages of a budget refer to."""

from __future__ import annotations

from ..model.memory_model import MemoryModel
from ..model.problem import Problem
from .schedule import expand
from .sequence import Profile, profile
from .simulate import simulate


def keep_all_profile(problem: Problem) -> Profile:
    """The profile of computing every operation once, in the order of the graph, with the memory model of the problem."""
    everything = range(problem.count)
    if problem.memory_model is MemoryModel.GENERIC:
        return profile(problem, everything)
    schedule = expand(problem, everything)
    reserve = problem.base - problem.graph.fixed_bytes
    simulation = simulate(problem.graph, problem.costs, schedule, reserve=reserve, memory_model=problem.memory_model)
    operations = problem.graph.operations
    memory = tuple(taken for index, taken in zip(schedule.computations, simulation.memory, strict=True) if not operations[index].view)
    return Profile(simulation.cost, max(memory, default=problem.base), memory)
