"""What keeping everything takes: the figure that percentages of a budget refer to."""

from __future__ import annotations

from .problem import Problem
from .runtime import Runtime
from .schedule import expand
from .sequence import Profile, profile
from .simulate import simulate


def keep_all_profile(problem: Problem) -> Profile:
    """Of computing every operation once, in the order of the graph, as the problem's runtime takes memory."""
    everything = range(problem.count)
    if problem.runtime is Runtime.GENERIC:
        return profile(problem, everything)
    schedule = expand(problem, everything)
    reserve = problem.base - problem.graph.fixed_bytes
    simulation = simulate(problem.graph, problem.costs, schedule, reserve=reserve, runtime=problem.runtime)
    operations = problem.graph.operations
    memory = tuple(taken for index, taken in zip(schedule.computations, simulation.memory, strict=True) if not operations[index].view)
    return Profile(simulation.cost, max(memory, default=problem.base), memory)
