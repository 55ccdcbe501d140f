"""A schedule and keep-all, both replayed by the simulator, for reports and explanations."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from ..model.costs import Costs
from ..model.graph import Graph
from ..model.memory_model import MemoryModel
from ..model.problem import Problem, build_problem
from ..schedule.schedule import Schedule, expand
from ..schedule.simulate import Simulation, simulate


@dataclass(frozen=True)
class Examined:
    """A schedule, and keep-all for comparison."""

    problem: Problem
    schedule: Schedule
    simulation: Simulation
    everything: Schedule
    """Every operation once, in the graph's order."""
    keep_all: Simulation

    @property
    def graph(self) -> Graph:
        return self.problem.graph

    @property
    def reserve(self) -> int:
        return self.problem.base - self.problem.graph.fixed_bytes

    @cached_property
    def computations(self) -> tuple[int, ...]:
        return self.schedule.computations

    @cached_property
    def sequence(self) -> tuple[int, ...]:
        """The schedule as operations of the problem, without views."""
        return sequence_of(self.problem, self.schedule)


def examine(
    graph: Graph, costs: Costs, schedule: Schedule, *, budget: int, reserve: int = 0, memory_model: MemoryModel = MemoryModel.GENERIC
) -> Examined:
    """Replay a schedule and keep-all, with the same memory model."""
    problem = build_problem(graph, costs, budget=budget, reserve=reserve, memory_model=memory_model)
    everything = expand(problem, range(problem.count))
    simulation, keep_all = (simulate(graph, costs, steps, reserve=reserve, memory_model=memory_model) for steps in (schedule, everything))
    return Examined(problem, schedule, simulation, everything, keep_all)


def sequence_of(problem: Problem, schedule: Schedule) -> tuple[int, ...]:
    """The sequence from which `expand` makes this schedule."""
    number = {operation: position for position, operation in enumerate(problem.graph_operation)}
    return tuple(number[operation] for operation in schedule.computations if operation in number)
