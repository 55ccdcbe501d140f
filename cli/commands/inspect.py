"""`checkmate inspect`: the operations of a graph, what takes the memory, and the smallest budget that could work."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import click

from ...api.pricing import PricedGraph, what_binds
from ...core.model.problem import Problem
from ...core.model.units import count, exact_bytes, format_bytes
from ..console import Console, speaks_unicode
from ..options.command import Command, option
from ..options.shared import COSTS, GraphRequest, general_options, graph_options
from ..output.amounts import format_cost, format_share, shown, source_name
from ..output.render import Column, Fact, Row, blank, screen_width, show_facts, show_lines, show_table
from ..output.timeline import draw_timeline, legend

LARGEST = 10
WIDEST_TIMELINE, LABELS = 70, 10
"""Characters of the memory chart, and of its labels."""
"""How many of the largest values are listed."""


@dataclass(frozen=True, slots=True)
class Lifetime:
    """A value, and the positions of the first and the last operation between which it is in memory without recomputation."""

    value: int
    first: int
    last: int


@click.command(
    cls=Command,
    examples=[
        ("checkmate inspect model.onnx --batch-size 32", "what takes the memory"),
        ("checkmate inspect model.onnx --costs flops --costs-table", "what each operation costs, and the source of each cost"),
        ("checkmate inspect graph.json --json | jq .smallest_budget_bytes", "the smallest budget that could work"),
    ],
)
@graph_options()
@option("--costs-table", group=COSTS, is_flag=True, help="List the cost of each operation and where it comes from.")
@general_options
def inspect(console: Console, request: GraphRequest, costs_table: bool) -> None:
    """Show the operations of GRAPH and what takes the memory.

    GRAPH is an ONNX model, a checkmate JSON graph or networkx node-link JSON; - is stdin.
    """
    priced = request.price(request.load())
    with_costs = costs_table or console.verbose
    if console.json:
        console.emit_json(_fields(priced, request, with_costs))
    elif not console.quiet:
        _show(priced, request, with_costs)


def lifetimes(problem: Problem) -> list[Lifetime]:
    """From the operation that makes a value to the last one that reads it; graph outputs stay to the end."""
    return [
        Lifetime(value, producer, problem.count - 1 if problem.kept[value] else max(problem.consumers[value], default=producer))
        for value, producer in enumerate(problem.producer)
    ]


def largest_values(problem: Problem, amount: int) -> list[Lifetime]:
    return sorted(lifetimes(problem), key=lambda life: (-problem.size[life.value], life.value))[:amount]


def _show(priced: PricedGraph, request: GraphRequest, with_costs: bool) -> None:
    show_facts(shown(priced.graph.name), _facts(priced))
    blank()
    _show_bytes(priced, request.reserve or 0)
    blank()
    _show_largest(priced)
    blank()
    _show_timeline(priced)
    if with_costs:
        blank()
        _show_costs(priced)


def _facts(priced: PricedGraph) -> list[Fact]:
    graph, costs, floor = priced.graph, priced.costs, priced.floor
    peak = priced.keep_all.peak
    peak_operation = peak_operation_of(priced)
    flags = [f"{amount} {what}" for what, amount in _flagged(priced).items()]
    facts = [
        Fact("graph", source_name(priced.loaded.source), priced.loaded.format),
        Fact("operations", str(len(graph.operations)), ", ".join(flags)),
        *([Fact("", "", _common_kinds(priced))] if _common_kinds(priced) else []),
        Fact("values", str(len(graph.values)), count(len(graph.outputs), "graph output")),
        Fact("cost", format_cost(costs.total, costs.unit), _cost_remark(priced)),
        Fact("keep-all peak", exact_bytes(peak), f"at operation {shown(peak_operation)!r}" if peak_operation else "", "bold"),
    ]
    share = f"{format_share(floor.bytes / peak)} of the keep-all peak, " if peak else ""
    return [*facts, Fact("smallest budget", exact_bytes(floor.bytes), f"{share}{shown(what_binds(floor))}", "bold")]


def peak_operation_of(priced: PricedGraph) -> str | None:
    """The operation at the keep-all peak; None if the graph has only views."""
    memory = priced.keep_all.memory
    return priced.problem.operation_name(memory.index(priced.keep_all.peak)) if memory else None


def _common_kinds(priced: PricedGraph) -> str:
    """`Conv 53, Relu 49, ...`; empty if all operations are of one kind."""
    kinds = Counter(operation.kind for operation in priced.graph.operations)
    if len(kinds) == 1:
        return ""
    listed = [f"{shown(kind)} {amount}" for kind, amount in kinds.most_common(6)]
    return ", ".join(listed) + (f" and {count(len(kinds) - 6, 'more kind')}" if len(kinds) > 6 else "")


def _flagged(priced: PricedGraph) -> dict[str, int]:
    operations = priced.graph.operations
    amounts = {
        "backward": sum(operation.backward for operation in operations),
        "views": sum(operation.view for operation in operations),
        "pinned": sum(operation.pinned for operation in operations),
    }
    return {what: amount for what, amount in amounts.items() if amount}


def _cost_remark(priced: PricedGraph) -> str:
    """The cost model and, if costs have several sources, how many operations have their cost from each."""
    costs = priced.costs
    sources = Counter(source for source in costs.sources if source != "view")
    ways = ", ".join(f"{amount} {source.removeprefix('roofline: ')}" for source, amount in sources.most_common())
    return costs.model if len(sources) <= 1 else f"{costs.model}: {ways}"


def _show_bytes(priced: PricedGraph, reserve: int) -> None:
    graph, problem = priced.graph, priced.problem
    rows = [Row((kind, format_bytes(size), "fixed")) for kind, size in graph.fixed.items() if size]
    if reserve:
        rows.append(Row(("reserve", format_bytes(reserve), "fixed")))
    rows.append(Row(("computed values", format_bytes(sum(problem.size)), "in total, if none were freed")))
    if any(problem.workspace):
        largest = max(range(problem.count), key=lambda operation: problem.workspace[operation])
        rows.append(
            Row(
                ("workspace", format_bytes(problem.workspace[largest]), f"largest, of operation {shown(problem.operation_name(largest))!r}")
            )
        )
    show_table("Bytes by kind", [Column("kind"), Column("bytes", right=True), Column("")], rows)


def _show_largest(priced: PricedGraph) -> None:
    """Columns without information (operations named like their values, only one kind) are left out."""
    problem = priced.problem
    lives = largest_values(problem, LARGEST)
    named_alike = all(problem.value_name(life.value) == problem.operation_name(life.first) for life in lives)
    one_kind = len({operation.kind for operation in priced.graph.operations}) == 1
    table: dict[Column, list[str]] = {Column("value"): [problem.value_name(life.value) for life in lives]}
    if not named_alike:
        table[Column("made by")] = [problem.operation_name(life.first) for life in lives]
    if not one_kind:
        table[Column("kind")] = [_kind(problem, life.first) for life in lives]
    table[Column("bytes", right=True)] = [format_bytes(problem.size[life.value]) for life in lives]
    table[Column("in memory", right=True)] = [f"{life.first + 1}-{life.last + 1}" for life in lives]
    table[Column("operations", right=True)] = [str(life.last - life.first + 1) for life in lives]
    rows = [Row(tuple(shown(cell) for cell in cells)) for cells in zip(*table.values(), strict=True)]
    without_views = ", views not counted" if problem.count < len(priced.graph.operations) else ""
    show_table(f"Largest values (in memory: from operation to operation, of {problem.count}{without_views})", list(table), rows)


def _show_timeline(priced: PricedGraph) -> None:
    if not priced.keep_all.memory:
        return
    unicode = speaks_unicode(sys.stdout)
    base = priced.problem.base
    key = legend(base, unicode=unicode)
    show_lines(
        "Memory without recomputation" + (f"   {key}" if key else ""),
        draw_timeline(priced.keep_all.memory, base, width=min(screen_width(sys.stdout) - LABELS, WIDEST_TIMELINE), unicode=unicode),
    )


def _show_costs(priced: PricedGraph) -> None:
    graph, costs = priced.graph, priced.costs
    columns = [Column("operation"), Column("kind"), Column("cost", right=True), Column("share", right=True), Column("source")]
    rows = [
        Row(
            (
                shown(operation.name),
                shown(operation.kind),
                format_cost(amount, costs.unit),
                format_share(amount / costs.total if costs.total else 0.0),
                source,
            )
        )
        for operation, amount, source in zip(graph.operations, costs.amounts, costs.sources, strict=True)
    ]
    show_table(f"Costs: {costs.model}", columns, rows)


def _kind(problem: Problem, operation: int) -> str:
    return problem.graph.operations[problem.graph_operation[operation]].kind


def _fields(priced: PricedGraph, request: GraphRequest, with_costs: bool) -> dict[str, Any]:
    graph, problem, costs, floor = priced.graph, priced.problem, priced.costs, priced.floor
    peak = priced.keep_all.peak
    fields: dict[str, Any] = {
        "format": "checkmate-inspect",
        "version": 1,
        "status": "ok",
        "graph": {"name": graph.name, "source": priced.loaded.source, "format": priced.loaded.format},
        "operations": len(graph.operations),
        "values": len(graph.values),
        "views": sum(operation.view for operation in graph.operations),
        "backward": sum(operation.backward for operation in graph.operations),
        "pinned": sum(operation.pinned for operation in graph.operations),
        "kinds": dict(Counter(operation.kind for operation in graph.operations).most_common()),
        "bytes": {
            "fixed": dict(graph.fixed),
            "reserve": request.reserve or 0,
            "computed": sum(problem.size),
            "largest_workspace": max(problem.workspace, default=0),
        },
        "costs": {"model": costs.model, "unit": costs.unit, "total": costs.total, "sources": _by_source(costs.sources, costs.amounts)},
        "keep_all_peak_bytes": peak,
        "keep_all_peak_operation": peak_operation_of(priced),
        "smallest_budget_bytes": floor.bytes,
        "binding_operation": floor.operation or None,
        "binding_reason": floor.reason,
        "largest_values": [
            {
                "name": problem.value_name(life.value),
                "bytes": problem.size[life.value],
                "operation": problem.operation_name(life.first),
                "kind": _kind(problem, life.first),
                "first": life.first,
                "last": life.last,
            }
            for life in largest_values(problem, LARGEST)
        ],
        "timeline": list(priced.keep_all.memory),
    }
    if with_costs:
        fields["operation_costs"] = [
            {"name": operation.name, "kind": operation.kind, "cost": amount, "source": source}
            for operation, amount, source in zip(graph.operations, costs.amounts, costs.sources, strict=True)
        ]
    return fields


def _by_source(sources: Sequence[str], amounts: Sequence[float]) -> dict[str, dict[str, float]]:
    table: dict[str, dict[str, float]] = {}
    for source, amount in zip(sources, amounts, strict=True):
        entry = table.setdefault(source, {"operations": 0, "cost": 0.0})
        entry["operations"] += 1
        entry["cost"] += amount
    return table
