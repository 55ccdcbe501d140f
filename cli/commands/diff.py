"""`checkmate diff`: the differences between two schedules of one graph."""

from __future__ import annotations

from typing import Any

import click

from ...api.schedule_file import Schedule
from ...core.model.costs import Costs
from ...core.model.graph import Graph
from ...core.model.units import count, exact_bytes, format_bytes
from ...core.studies.difference import Difference, MemoryChange, Repeats, difference
from ..console import Console
from ..exit_codes import ExitCode
from ..options.command import Command, option
from ..options.shared import OUTPUT, ScheduleGraph, general_options, schedule_graph_options
from ..output.amounts import format_change, format_cost, format_share, shown, source_name
from ..output.render import Column, Fact, Row, blank, show_facts, show_table
from ..output.schedule_source import open_pair

SHOWN = 10
"""Rows of a table; `--json` has all of them."""
SHOWN_NAMES = 3


@click.command(
    cls=Command,
    examples=[
        ("checkmate diff a.schedule.json b.schedule.json", "how b differs from a, and what this saves or costs"),
        ("checkmate diff a.schedule.json b.schedule.json --exit-code -q || echo they differ", "for a script"),
    ],
)
@click.argument("first", type=click.Path(allow_dash=True))
@click.argument("second", type=click.Path(allow_dash=True))
@schedule_graph_options
@option("--exit-code", group=OUTPUT, is_flag=True, help="Exit with 7 if the steps of the schedules differ.")
@general_options
def diff(console: Console, first: str, second: str, graph: ScheduleGraph, exit_code: bool) -> ExitCode:
    """Show the differences between two schedules of one graph.

    Shows peak and cost of both, which operations SECOND recomputes more or less often than FIRST, which first computations are in
    another order, and where memory differs most. Both schedules are verified first. Costs are those in FIRST. FIRST or SECOND may be -
    for stdin.
    """
    one, other = open_pair(first, second, graph)
    found = difference(one.examined, other.examined)
    comparison = _Comparison(one, other, found)
    if console.json:
        console.emit_json(comparison.fields())
    elif not console.quiet:
        comparison.show()
    if one.document.amounts != other.document.amounts:
        console.note(f"note: {source_name(second)} has other costs; both schedules are priced with the costs in {source_name(first)}")
    return ExitCode.DIFFERENT if exit_code and not found.same_steps else ExitCode.OK


class _Comparison:
    """Both schedules, priced with the same costs."""

    def __init__(self, one: Schedule, other: Schedule, found: Difference) -> None:
        self.one, self.other, self.found = one, other, found
        costs: Costs = one.examined.problem.costs
        self.costs = [sum(costs.amounts[index] for index in opened.examined.computations) for opened in (one, other)]
        self.more = [entry for entry in found.repeats if entry.after > entry.before]
        self.less = [entry for entry in found.repeats if entry.after < entry.before]

    @property
    def graph(self) -> Graph:
        return self.one.graph

    @property
    def unit(self) -> str:
        return self.one.cost_unit

    def fields(self) -> dict[str, Any]:
        schedules = [
            {
                "source": opened.source,
                "strategy": opened.document.strategy,
                "budget_bytes": opened.document.budget_bytes,
                "peak_bytes": opened.examined.simulation.peak_bytes,
                "cost": cost,
                "recomputed": opened.examined.simulation.recomputed,
            }
            for opened, cost in zip((self.one, self.other), self.costs, strict=True)
        ]
        name = self.graph.operations
        return {
            "format": "checkmate-diff",
            "version": 1,
            "status": "equal" if self.found.same_steps else "different",
            "graph": {"name": self.graph.name},
            "cost_unit": self.unit,
            "schedules": schedules,
            "recomputations": [
                {"operation": name[entry.operation].name, "first": entry.before, "second": entry.after, "cost_change": entry.cost}
                for entry in self.found.repeats
            ],
            "moved": [name[operation].name for operation in self.found.moved],
            "memory": [
                {
                    "operation": name[change.operation].name,
                    "first_bytes": change.before,
                    "second_bytes": change.after,
                    "only_first": [self.graph.values[value].name for value in change.gone],
                    "only_second": [self.graph.values[value].name for value in change.new],
                }
                for change in self.found.memory
            ],
        }

    def show(self) -> None:
        show_facts(shown(self.graph.name), self._facts())
        if self.found.repeats:
            blank()
            columns = [Column("operation"), Column("first", right=True), Column("second", right=True), Column("cost", right=True)]
            hidden = len(self.found.repeats) - SHOWN
            title = "How often operations are recomputed" + (
                f" (the {SHOWN} with the largest effect on cost, of {len(self.found.repeats)})" if hidden > 0 else ""
            )
            show_table(title, columns, [self._repeats_row(entry) for entry in self.found.repeats[:SHOWN]])
        if self.found.memory:
            blank()
            columns = [
                *(
                    Column("at first computation of"),
                    Column("first", right=True),
                    Column("second", right=True),
                    Column("change", right=True),
                ),
                Column("values only in the first (-) and only in the second (+)"),
            ]
            show_table("Where memory differs most", columns, [self._memory_row(change) for change in self.found.memory])

    def _facts(self) -> list[Fact]:
        one, other = self.one.examined.simulation, self.other.examined.simulation
        cost, then = self.costs
        budgets = [opened.document.budget_bytes for opened in (self.one, self.other)]
        facts = [
            Fact("first", source_name(self.one.source), self.one.document.strategy),
            Fact("second", source_name(self.other.source), self.other.document.strategy),
            Fact("summary", self._in_short(), "", "bold"),
            *([Fact("budget", exact_bytes(budgets[1]), f"was {format_bytes(budgets[0])}")] if budgets[0] != budgets[1] else []),
            Fact("peak", exact_bytes(other.peak_bytes), _against(other.peak_bytes, one.peak_bytes, format_bytes(one.peak_bytes))),
            Fact("cost", format_cost(then, self.unit), _against(then, cost, format_cost(cost, self.unit))),
            Fact(
                "recomputed",
                count(other.recomputed, "time"),
                "the same" if one.recomputed == other.recomputed else f"was {count(one.recomputed, 'time')}",
            ),
        ]
        if self.found.moved:
            names = ", ".join(shown(self.graph.operations[index].name) for index in self.found.moved[:SHOWN_NAMES])
            more = ", ..." if len(self.found.moved) > SHOWN_NAMES else ""
            facts.append(Fact("order", f"{count(len(self.found.moved), 'operation')} moved", names + more))
        else:
            facts.append(Fact("order", "the same"))
        return facts

    def _in_short(self) -> str:
        if self.found.same_steps:
            return "the same steps"
        memory = self.other.examined.simulation.peak_bytes - self.one.examined.simulation.peak_bytes
        cost = self.costs[1] - self.costs[0]
        share = f" ({format_share(abs(cost) / self.costs[0])})" if self.costs[0] else ""
        changes = [
            f"{format_bytes(abs(memory))} {'less' if memory < 0 else 'more'} memory" if memory else "",
            f"{format_cost(abs(cost), self.unit)}{share} {'cheaper' if cost < 0 else 'more expensive'}" if cost else "",
            f"{count(len(self.more), 'operation')} recomputed more often" if self.more else "",
            f"{count(len(self.less), 'operation')} recomputed less often" if self.less else "",
        ]
        return ", ".join(change for change in changes if change) or "another order of the same computations"

    def _repeats_row(self, entry: Repeats) -> Row:
        sign = "+" if entry.cost > 0 else "-" if entry.cost < 0 else ""
        cost = f"{sign}{format_cost(abs(entry.cost), self.unit)}"
        return Row((shown(self.graph.operations[entry.operation].name), str(entry.before), str(entry.after), cost))

    def _memory_row(self, change: MemoryChange) -> Row:
        values = self.graph.values
        signs = [(value, "-") for value in change.gone] + [(value, "+") for value in change.new]
        signs.sort(key=lambda entry: -values[entry[0]].bytes)
        names = " ".join(f"{sign}{shown(values[value].name)}" for value, sign in signs[:SHOWN_NAMES])
        sign = "+" if change.change > 0 else "-"
        cells = (format_bytes(change.before), format_bytes(change.after), f"{sign}{format_bytes(abs(change.change))}")
        return Row((shown(self.graph.operations[change.operation].name), *cells, names + (" ..." if len(signs) > SHOWN_NAMES else "")))


def _against(now: float, then: float, text: str) -> str:
    return "the same" if now == then else f"{format_change(now / then - 1)} against {text}" if then else f"was {text}"
