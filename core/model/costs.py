"""Costs of operations, separate from the graph, because the same graph can be priced in several ways.

A view costs nothing in every cost model, because it makes no data. `sources` says where the cost of each operation comes from.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ..errors import InputError
from .graph import Graph, Operation


@dataclass(frozen=True, slots=True)
class Device:
    """The figures of a machine for the roofline model."""

    name: str
    flops_per_second: float
    bytes_per_second: float
    launch_seconds: float = 0.0
    """The time to start any operation, however small."""


@dataclass(frozen=True, slots=True)
class Costs:
    """One cost per operation, and where it comes from."""

    model: str
    unit: str
    amounts: tuple[float, ...]
    sources: tuple[str, ...]

    @property
    def total(self) -> float:
        """The ideal cost: every operation once."""
        return sum(self.amounts)


Price = Callable[[Operation], tuple[float, str]]


def _priced(model: str, unit: str, graph: Graph, price: Price) -> Costs:
    rows = [(0.0, "view") if operation.view else price(operation) for operation in graph.operations]
    return Costs(model, unit, tuple(amount for amount, _ in rows), tuple(source for _, source in rows))


def has_given_costs(graph: Graph) -> bool:
    """True if the graph file has costs."""
    return any(operation.work.cost is not None for operation in graph.operations)


def given_costs(graph: Graph) -> Costs:
    """The costs in the graph file."""

    def price(operation: Operation) -> tuple[float, str]:
        if operation.work.cost is None:
            raise InputError(f"operation {operation.name!r} has no cost, but others have: add its 'cost', or use --costs unit")
        return operation.work.cost, "given"

    return _priced("given", "given", graph, price)


def unit_costs(graph: Graph) -> Costs:
    """Every operation costs 1."""
    return _priced("unit", "operations", graph, lambda operation: (1.0, "unit"))


def flops_costs(graph: Graph) -> Costs:
    """Floating-point operations where a formula is known, otherwise bytes moved."""

    def price(operation: Operation) -> tuple[float, str]:
        if operation.work.flops is not None:
            return float(operation.work.flops), "flops"
        return float(_moved(graph, operation)), "bytes moved"

    return _priced("flops", "FLOP", graph, price)


def roofline_costs(graph: Graph, device: Device) -> Costs:
    """Seconds on a device: the larger of the time to compute and the time to move data, plus the launch time."""

    def price(operation: Operation) -> tuple[float, str]:
        moving = _moved(graph, operation) / device.bytes_per_second
        computing = (operation.work.flops or 0.0) / device.flops_per_second
        source = "roofline: compute" if computing > moving else "roofline: memory"
        return max(computing, moving) + device.launch_seconds, source

    return _priced(f"roofline ({device.name})", "s", graph, price)


def measured_costs(graph: Graph, table: Mapping[str, float], unit: str = "s") -> Costs:
    """Costs by operation name, from a file."""

    def price(operation: Operation) -> tuple[float, str]:
        if operation.name not in table:
            raise InputError(f"the costs file has no cost for operation {operation.name!r} ({operation.kind}); add it")
        return table[operation.name], "measured"

    return _priced("measured", unit, graph, price)


def _moved(graph: Graph, operation: Operation) -> int:
    """The bytes the loader counted, or else the bytes of the values read and made (a hand-written graph does not list parameters)."""
    if operation.work.moved_bytes is not None:
        return operation.work.moved_bytes
    return sum(graph.values[_owner(graph, value)].bytes for value in (*operation.inputs, *operation.outputs))


def _owner(graph: Graph, value: int) -> int:
    """The value whose buffer a view shares."""
    while (base := graph.values[value].alias_of) is not None:
        value = base
    return value
