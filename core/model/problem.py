"""The rematerialization problem: graph + costs + budget, with views contracted away.

A view shares its input's buffer and costs nothing, so the solvers never see it: a reader of a view reads the buffer directly. Therefore
operations and values of a `Problem` have other numbers than those of its `Graph`; `schedule.expand` adds the views again.
Contracting is exact: a view can be recomputed wherever its buffer is in memory, at no cost and without memory. If a view reads more than
its buffer (a Reshape to a computed shape), its readers are assumed to read that too; a schedule may then need a few bytes less than the
problem says, but never more.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from .costs import Costs
from .graph import LARGEST_BYTES, Graph
from .memory_model import MemoryModel


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """What every strategy solves. Operation i of the problem is operation `graph_operation[i]` of the graph; likewise for values."""

    graph: Graph
    costs: Costs
    base: int
    """Bytes of fixed memory and reserve."""
    budget: int
    """Limit on all bytes together."""
    graph_operation: tuple[int, ...]
    graph_value: tuple[int, ...]
    cost: tuple[float, ...]
    workspace: tuple[int, ...]
    pinned: tuple[bool, ...]
    backward: tuple[bool, ...]
    inputs: tuple[tuple[int, ...], ...]
    """Values each operation reads, ascending."""
    outputs: tuple[tuple[int, ...], ...]
    """Values each operation makes, ascending."""
    size: tuple[int, ...]
    producer: tuple[int, ...]
    consumers: tuple[tuple[int, ...], ...]
    """Operations that read each value, ascending."""
    kept: tuple[bool, ...]
    """Graph outputs: alive at the end."""
    memory_model: MemoryModel = MemoryModel.GENERIC
    """The memory model for schedules. The problem itself ignores computing in place: a schedule that fits it fits with both models."""

    @property
    def count(self) -> int:
        """Operations, views not counted."""
        return len(self.cost)

    @property
    def available(self) -> int:
        """Bytes for computed values and workspace."""
        return self.budget - self.base

    @property
    def ideal_cost(self) -> float:
        """The cost of every operation once; no schedule is cheaper."""
        return sum(self.cost)

    def with_budget(self, budget: int) -> Problem:
        return replace(self, budget=budget)

    def own_bytes(self, operation: int) -> int:
        """The bytes an operation needs while it runs: inputs, outputs and workspace."""
        return sum(self.size[value] for value in {*self.inputs[operation], *self.outputs[operation]}) + self.workspace[operation]

    def operation_name(self, operation: int) -> str:
        return self.graph.operations[self.graph_operation[operation]].name

    def value_name(self, value: int) -> str:
        return self.graph.values[self.graph_value[value]].name


def build_problem(
    graph: Graph, costs: Costs, *, budget: int = LARGEST_BYTES, reserve: int = 0, memory_model: MemoryModel = MemoryModel.GENERIC
) -> Problem:
    """Contract the views and number the remaining operations, in the graph's order."""
    operations = [index for index, operation in enumerate(graph.operations) if not operation.view]
    values = [value for index in operations for value in graph.operations[index].outputs]
    number = {value: position for position, value in enumerate(values)}
    beneath = _buffers_read(graph)
    inputs = [
        tuple(sorted({number[owner] for value in graph.operations[index].inputs for owner in beneath[value]})) for index in operations
    ]
    producer = [0] * len(values)
    consumers: list[list[int]] = [[] for _ in values]
    for position, index in enumerate(operations):
        for value in graph.operations[index].outputs:
            producer[number[value]] = position
        for used in inputs[position]:
            consumers[used].append(position)
    kept = {number[owner] for value in graph.outputs for owner in beneath[value]}
    chosen = [graph.operations[index] for index in operations]
    return Problem(
        graph=graph,
        costs=costs,
        base=graph.fixed_bytes + reserve,
        budget=budget,
        graph_operation=tuple(operations),
        graph_value=tuple(values),
        cost=tuple(costs.amounts[index] for index in operations),
        workspace=tuple(operation.workspace for operation in chosen),
        pinned=tuple(operation.pinned for operation in chosen),
        backward=tuple(operation.backward for operation in chosen),
        inputs=tuple(inputs),
        outputs=tuple(tuple(sorted(number[value] for value in operation.outputs)) for operation in chosen),
        size=tuple(graph.values[value].bytes for value in values),
        producer=tuple(producer),
        consumers=tuple(tuple(users) for users in consumers),
        kept=tuple(value in kept for value in range(len(values))),
        memory_model=memory_model,
    )


def buffers(graph: Graph) -> list[int | None]:
    """For each value, the value that owns its buffer; None for a view of fixed memory."""
    owners: list[int | None] = [None] * len(graph.values)
    for operation in graph.operations:
        for value in operation.outputs:
            base = graph.values[value].alias_of
            owners[value] = (None if operation.view else value) if base is None else owners[base]
    return owners


def _buffers_read(graph: Graph) -> list[frozenset[int]]:
    """For each value, the values with their own buffers that must be in memory so that it can be read; a view may be recomputed."""
    beneath: list[frozenset[int]] = [frozenset()] * len(graph.values)
    for operation in graph.operations:
        read = frozenset(owner for value in operation.inputs for owner in beneath[value]) if operation.view else frozenset()
        for value in operation.outputs:
            beneath[value] = read if operation.view else frozenset((value,))
    return beneath


def horizons(problem: Problem) -> list[int]:
    """For each operation, the last operation whose first computation may need it again.

    After that, there is no reason to compute it or to keep its outputs. Graph outputs may be recomputed after the last operation: this is
    `problem.count`.
    """
    last = list(range(problem.count))
    for operation in reversed(range(problem.count)):
        for value in problem.outputs[operation]:
            if problem.kept[value]:
                last[operation] = problem.count
            for user in problem.consumers[value]:
                last[operation] = max(last[operation], last[user])
    return last


def last_stages_kept(problem: Problem, last: list[int]) -> list[int]:
    """For each value, the last stage that can use it, given the horizons of operations; -1 if none can."""
    return [
        problem.count if problem.kept[value] else max((last[user] for user in users), default=-1)
        for value, users in enumerate(problem.consumers)
    ]
