"""`checkmate inspect`: what a graph is made of, what takes the memory, and how little it could do with."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import click

from ..core.problem import Problem
from ..core.units import format_bytes
from .amounts import count, exact_bytes, format_cost, format_share, shown, source_name
from .command import Command, option
from .options import COSTS, GraphRequest, general_options, graph_options
from .pipeline import Prepared, prepare, what_binds
from .render import Column, Fact, Row, blank, screen_width, show_facts, show_lines, show_table
from .session import Session, speaks_unicode
from .timeline import draw_timeline, legend

LARGEST = 10
WIDEST_TIMELINE, LABELS = 70, 10
"""Characters of the picture of memory, and of the labels beside it."""
"""How many of the largest values are listed."""


@dataclass(frozen=True, slots=True)
class Lifetime:
    """A value and the operations, by position, between which it is alive if everything is kept."""

    value: int
    first: int
    last: int


@click.command(
    cls=Command,
    examples=[
        ("checkmate inspect model.onnx --batch-size 32", "what takes the memory of a model"),
        ("checkmate inspect model.onnx --costs flops --costs-table", "what each operation costs, and why"),
        ("checkmate inspect graph.json --json | jq .smallest_budget_bytes", "the smallest budget that could work"),
    ],
)
@graph_options()
@option("--costs-table", group=COSTS, is_flag=True, help="List what each operation costs and where the figure comes from.")
@general_options
def inspect(session: Session, request: GraphRequest, costs_table: bool) -> None:
    """Show what GRAPH is made of and what takes the memory.

    GRAPH is an ONNX model, a checkmate JSON graph or networkx node-link JSON; - is stdin.
    """
    prepared = prepare(request)
    with_costs = costs_table or session.verbose
    if session.json:
        session.emit_json(_fields(prepared, request, with_costs))
    elif not session.quiet:
        _show(prepared, request, with_costs)


def lifetimes(problem: Problem) -> list[Lifetime]:
    """From the operation that makes a value to the last that reads it; graph outputs live to the end."""
    return [
        Lifetime(value, producer, problem.count - 1 if problem.kept[value] else max(problem.consumers[value], default=producer))
        for value, producer in enumerate(problem.producer)
    ]


def largest_values(problem: Problem, amount: int) -> list[Lifetime]:
    return sorted(lifetimes(problem), key=lambda life: (-problem.size[life.value], life.value))[:amount]


def _show(prepared: Prepared, request: GraphRequest, with_costs: bool) -> None:
    show_facts(shown(prepared.graph.name), _facts(prepared))
    blank()
    _show_bytes(prepared, request.reserve or 0)
    blank()
    _show_largest(prepared)
    blank()
    _show_timeline(prepared)
    if with_costs:
        blank()
        _show_costs(prepared)


def _facts(prepared: Prepared) -> list[Fact]:
    graph, costs, floor = prepared.graph, prepared.costs, prepared.floor
    peak = prepared.keep_all.peak
    peak_operation = peak_operation_of(prepared)
    flags = [f"{amount} {what}" for what, amount in _flagged(prepared).items()]
    facts = [
        Fact("graph", source_name(prepared.loaded.source), prepared.loaded.format),
        Fact("operations", str(len(graph.operations)), ", ".join(flags)),
        *([Fact("", "", _common_kinds(prepared))] if _common_kinds(prepared) else []),
        Fact("values", str(len(graph.values)), count(len(graph.outputs), "graph output")),
        Fact("cost", format_cost(costs.total, costs.unit), _cost_remark(prepared)),
        Fact("keep-all peak", exact_bytes(peak), f"at operation {shown(peak_operation)!r}" if peak_operation else "", "bold"),
    ]
    share = f"{format_share(floor.bytes / peak)} of that, " if peak else ""
    return [*facts, Fact("smallest budget", exact_bytes(floor.bytes), f"{share}{shown(what_binds(floor))}", "bold")]


def peak_operation_of(prepared: Prepared) -> str | None:
    """The operation that takes the peak if everything is kept; None if the graph has only views."""
    memory = prepared.keep_all.memory
    return prepared.problem.operation_name(memory.index(prepared.keep_all.peak)) if memory else None


def _common_kinds(prepared: Prepared) -> str:
    """`Conv 53, Relu 49, ...`; nothing if the file knows only one kind."""
    kinds = Counter(operation.kind for operation in prepared.graph.operations)
    if len(kinds) == 1:
        return ""
    listed = [f"{shown(kind)} {amount}" for kind, amount in kinds.most_common(6)]
    return ", ".join(listed) + (f" and {count(len(kinds) - 6, 'more kind')}" if len(kinds) > 6 else "")


def _flagged(prepared: Prepared) -> dict[str, int]:
    operations = prepared.graph.operations
    amounts = {
        "backward": sum(operation.backward for operation in operations),
        "views": sum(operation.view for operation in operations),
        "run once": sum(operation.pinned for operation in operations),
    }
    return {what: amount for what, amount in amounts.items() if amount}


def _cost_remark(prepared: Prepared) -> str:
    """The model, and how many operations got their cost in which way if there is more than one."""
    costs = prepared.costs
    sources = Counter(source for source in costs.sources if source != "view")
    ways = ", ".join(f"{amount} {source.removeprefix('roofline: ')}" for source, amount in sources.most_common())
    return costs.model if len(sources) <= 1 else f"{costs.model}: {ways}"


def _show_bytes(prepared: Prepared, reserve: int) -> None:
    graph, problem = prepared.graph, prepared.problem
    rows = [Row((kind, format_bytes(size), "always there")) for kind, size in graph.fixed.items() if size]
    if reserve:
        rows.append(Row(("reserve", format_bytes(reserve), "always there")))
    rows.append(Row(("computed values", format_bytes(sum(problem.size)), "in all, if none were ever freed")))
    if any(problem.workspace):
        largest = max(range(problem.count), key=lambda operation: problem.workspace[operation])
        rows.append(
            Row(("workspace", format_bytes(problem.workspace[largest]), f"at most, while {shown(problem.operation_name(largest))!r} runs"))
        )
    show_table("Bytes by kind", [Column("kind"), Column("bytes", right=True), Column("")], rows)


def _show_largest(prepared: Prepared) -> None:
    """Columns that would say nothing (operations named like their values, one kind for all) are left out."""
    problem = prepared.problem
    lives = largest_values(problem, LARGEST)
    named_alike = all(problem.value_name(life.value) == problem.operation_name(life.first) for life in lives)
    one_kind = len({operation.kind for operation in prepared.graph.operations}) == 1
    table: dict[Column, list[str]] = {Column("value"): [problem.value_name(life.value) for life in lives]}
    if not named_alike:
        table[Column("made by")] = [problem.operation_name(life.first) for life in lives]
    if not one_kind:
        table[Column("kind")] = [_kind(problem, life.first) for life in lives]
    table[Column("bytes", right=True)] = [format_bytes(problem.size[life.value]) for life in lives]
    table[Column("alive", right=True)] = [f"{life.first + 1}-{life.last + 1}" for life in lives]
    table[Column("operations", right=True)] = [str(life.last - life.first + 1) for life in lives]
    rows = [Row(tuple(shown(cell) for cell in cells)) for cells in zip(*table.values(), strict=True)]
    without_views = ", views not counted" if problem.count < len(prepared.graph.operations) else ""
    show_table(f"Largest values (alive: from operation to operation, of {problem.count}{without_views})", list(table), rows)


def _show_timeline(prepared: Prepared) -> None:
    if not prepared.keep_all.memory:
        return
    unicode = speaks_unicode(sys.stdout)
    base = prepared.problem.base
    key = legend(base, unicode=unicode)
    show_lines(
        "Memory if everything is kept" + (f"   {key}" if key else ""),
        draw_timeline(prepared.keep_all.memory, base, width=min(screen_width(sys.stdout) - LABELS, WIDEST_TIMELINE), unicode=unicode),
    )


def _show_costs(prepared: Prepared) -> None:
    graph, costs = prepared.graph, prepared.costs
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


def _fields(prepared: Prepared, request: GraphRequest, with_costs: bool) -> dict[str, Any]:
    graph, problem, costs, floor = prepared.graph, prepared.problem, prepared.costs, prepared.floor
    peak = prepared.keep_all.peak
    fields: dict[str, Any] = {
        "format": "checkmate-inspect",
        "version": 1,
        "status": "ok",
        "graph": {"name": graph.name, "source": prepared.loaded.source, "format": prepared.loaded.format},
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
        "keep_all_peak_operation": peak_operation_of(prepared),
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
        "timeline": list(prepared.keep_all.memory),
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
