"""A schedule beside keeping everything, both replayed by the simulator: what reports, explanations and differences are made of."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from .costs import Costs
from .graph import Graph
from .problem import Problem, build_problem
from .runtime import Runtime
from .schedule import Schedule, expand
from .simulate import Simulation, simulate


@dataclass(frozen=True)
class Examined:
    """What a schedule does, and what would happen without it."""

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
        """The schedule in operations of the problem: without views."""
        return sequence_of(self.problem, self.schedule)


def examine(
    graph: Graph, costs: Costs, schedule: Schedule, *, budget: int, reserve: int = 0, runtime: Runtime = Runtime.GENERIC
) -> Examined:
    """Replay a schedule and keeping everything, by the same memory model."""
    problem = build_problem(graph, costs, budget=budget, reserve=reserve, runtime=runtime)
    everything = expand(problem, range(problem.count))
    simulation, keep_all = (simulate(graph, costs, steps, reserve=reserve, runtime=runtime) for steps in (schedule, everything))
    return Examined(problem, schedule, simulation, everything, keep_all)


def sequence_of(problem: Problem, schedule: Schedule) -> tuple[int, ...]:
    """What `expand` made the schedule of."""
    number = {operation: position for position, operation in enumerate(problem.graph_operation)}
    return tuple(number[operation] for operation in schedule.computations if operation in number)
