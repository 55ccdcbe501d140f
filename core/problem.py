"""The rematerialization problem: graph + costs + budget, with views contracted away.

A view shares its input's buffer and costs nothing, so the solvers never see it: whoever reads a view reads the buffer beneath. Operations
and values of a `Problem` are therefore numbered apart from those of its `Graph`; `expand` in `core/schedule.py` puts the views back.
Contracting is exact: a view can be made again wherever its buffer is alive, at no cost and in no memory. Where a view reads more than its
buffer (a Reshape to a computed shape), whoever reads the view is taken to read that too; a schedule may then need a few bytes less than
the problem says, never more.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from .costs import Costs
from .graph import LARGEST_BYTES, Graph
from .runtime import Runtime


@dataclass(frozen=True, slots=True)
class Floor:
    """A budget below which no schedule can exist, and the operation that proves it."""

    bytes: int
    operation: str
    reason: str


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """What every strategy solves. Operation i of the problem is operation `graph_operation[i]` of the graph; likewise for values."""

    graph: Graph
    costs: Costs
    base: int
    """Bytes that are always there: parameters, inputs, reserve."""
    budget: int
    """Bytes for everything together."""
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
    runtime: Runtime = Runtime.GENERIC
    """By whose memory model schedules are judged. The problem itself knows no computing in place: what fits it fits any runtime."""

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
        """Every operation once: no schedule is cheaper."""
        return sum(self.cost)

    def with_budget(self, budget: int) -> Problem:
        return replace(self, budget=budget)

    def own_bytes(self, operation: int) -> int:
        """What an operation takes for itself while it runs: what it reads and makes, and its workspace."""
        return sum(self.size[value] for value in {*self.inputs[operation], *self.outputs[operation]}) + self.workspace[operation]

    def operation_name(self, operation: int) -> str:
        return self.graph.operations[self.graph_operation[operation]].name

    def value_name(self, value: int) -> str:
        return self.graph.values[self.graph_value[value]].name


def build_problem(
    graph: Graph, costs: Costs, *, budget: int = LARGEST_BYTES, reserve: int = 0, runtime: Runtime = Runtime.GENERIC
) -> Problem:
    """Contract the views and number what remains, in the graph's order."""
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
        runtime=runtime,
    )


def buffers(graph: Graph) -> list[int | None]:
    """The value that owns the buffer of each value; None for a view of fixed memory."""
    owners: list[int | None] = [None] * len(graph.values)
    for operation in graph.operations:
        for value in operation.outputs:
            base = graph.values[value].alias_of
            owners[value] = (None if operation.view else value) if base is None else owners[base]
    return owners


def _buffers_read(graph: Graph) -> list[frozenset[int]]:
    """The values with buffers of their own that must be alive for each value to be read, made again if it is a view."""
    beneath: list[frozenset[int]] = [frozenset()] * len(graph.values)
    for operation in graph.operations:
        read = frozenset(owner for value in operation.inputs for owner in beneath[value]) if operation.view else frozenset()
        for value in operation.outputs:
            beneath[value] = read if operation.view else frozenset((value,))
    return beneath


def horizons(problem: Problem) -> list[int]:
    """The last operation whose first computation may need each operation again.

    Past it, neither computing nor keeping can help. Graph outputs may be made again after the last operation: that is `problem.count`.
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
    """The last stage that can find a use for each value, given the horizons of operations; -1 if none ever does."""
    return [
        problem.count if problem.kept[value] else max((last[user] for user in users), default=-1)
        for value, users in enumerate(problem.consumers)
    ]


def feasibility_floor(problem: Problem) -> Floor:
    """The smallest budget that could work, by the largest set of bytes that must be in memory at one moment.

    While an operation first runs: its inputs, outputs and workspace, and every value of a pinned operation that was made before and is
    used later (it cannot be made again). At the end: every graph output.
    """
    needed_later = _pinned_spans(problem)
    best = Floor(problem.base, "", "parameters, inputs and reserve alone")
    for operation in range(problem.count):
        together = set(problem.inputs[operation]) | set(problem.outputs[operation])
        size = problem.own_bytes(operation)
        held = needed_later[operation] - sum(problem.size[value] for value in together if _spans(problem, value, operation))
        if problem.base + size + held > best.bytes:
            reason = "its inputs, outputs and workspace" + (f", and {held} bytes that cannot be made again" if held else "")
            best = Floor(problem.base + size + held, problem.operation_name(operation), reason)
    outputs = problem.base + sum(size for size, kept in zip(problem.size, problem.kept, strict=True) if kept)
    if outputs > best.bytes:
        best = Floor(outputs, problem.operation_name(problem.count - 1), "all graph outputs at the end")
    return best


def _spans(problem: Problem, value: int, operation: int) -> bool:
    """Must this value be in memory at the first run of the operation, being made only once?"""
    producer = problem.producer[value]
    if not problem.pinned[producer] or operation < producer:
        return False
    return operation <= _last_first_read(problem, value)


def _last_first_read(problem: Problem, value: int) -> int:
    """The last operation whose first run finds the value awaited."""
    return problem.count - 1 if problem.kept[value] else max(problem.consumers[value], default=problem.producer[value])


def _pinned_spans(problem: Problem) -> list[int]:
    """Bytes of values made once that span the first run of each operation."""
    change = [0] * (problem.count + 1)
    for value, producer in enumerate(problem.producer):
        if problem.pinned[producer]:
            change[producer] += problem.size[value]
            change[_last_first_read(problem, value) + 1] -= problem.size[value]
    spans: list[int] = []
    total = 0
    for step in change[:-1]:
        total += step
        spans.append(total)
    return spans
