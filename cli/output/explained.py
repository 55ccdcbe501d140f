"""The output of `checkmate explain`, as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from ...api.explaining import Explanation, LargerBudget
from ...core.events import relative_gap
from ...core.model.graph import Graph
from ...core.model.units import count, exact_bytes, format_bytes
from ...core.result import Scope, Stop
from ...core.studies.explanation import Holding, Purchase, Role
from .amounts import format_change, format_cost, format_seconds, format_share

SHOWN_VALUES = 5


def told(explanation: Explanation) -> Iterator[tuple[str, list[str]]]:
    """Titles, and the paragraphs under them."""
    yield "Why the peak is where it is", list(_about_peak(explanation))
    yield "What is dropped and recomputed", list(_about_dropped(explanation))
    yield "How far from optimal it can be", list(_about_bound(explanation))
    if explanation.larger is not None:
        yield f"What {percent(explanation.larger.share)} more budget would gain", list(_about_larger(explanation, explanation.larger))


def _about_peak(explanation: Explanation) -> Iterator[str]:
    opened, peak = explanation.schedule, explanation.peak
    graph, document = opened.graph, opened.document
    operation = graph.operations[peak.operation]
    where = f"computation {peak.computation + 1} of {len(opened.examined.computations)}"
    again = ", while it is recomputed" if peak.again else ""
    part = " of the backward pass" if operation.backward else ""
    left = document.budget_bytes - peak.bytes
    yield (
        f"The peak of {exact_bytes(peak.bytes)} is at operation {operation.name!r} ({operation.kind}){part}{again}, {where}; "
        f"{format_bytes(left)} of the budget of {format_bytes(document.budget_bytes)} are unused."
    )
    always = [f"{format_bytes(size)} {kind}" for kind, size in (*graph.fixed.items(), ("reserve", peak.reserve)) if size]
    if always:
        yield f"{format_bytes(peak.fixed + peak.reserve)} of the peak are fixed memory, in every schedule: {', '.join(always)}."
    needed = [(peak.held(Role.INPUT), "of inputs"), (peak.held(Role.OUTPUT), "of outputs"), (peak.workspace, "of workspace")]
    own = sum(size for size, _ in needed)
    yield (
        f"The operation itself needs {format_bytes(own)}"
        + (f": {', '.join(f'{format_bytes(size)} {what}' for size, what in needed if size)}." if own else ".")
    )
    waiting = [holding for holding in peak.holdings if holding.role is Role.HELD]
    if waiting:
        yield (
            f"{count(len(waiting), 'other value')}, {format_bytes(peak.held(Role.HELD))} in total, kept for later operations; the largest: "
            + "; ".join(_held(graph, holding) for holding in waiting[:SHOWN_VALUES])
            + "."
        )
    else:
        yield "No other values are in memory."


def _held(graph: Graph, holding: Holding) -> str:
    what_for = "a graph output" if holding.reader is None else f"for {graph.operations[holding.reader].name!r}"
    return f"{graph.values[holding.value].name!r} ({format_bytes(holding.bytes)}, {what_for})"


def _about_dropped(explanation: Explanation) -> Iterator[str]:
    opened, unit = explanation.schedule, explanation.schedule.cost_unit
    simulation = opened.examined.simulation
    if not explanation.repeated:
        yield "Nothing: every operation is computed once, and no other schedule is cheaper."
        return
    yield (
        f"{count(explanation.repeated, 'operation')} recomputed, {count(simulation.recomputed, 'recomputation')} in total; this costs "
        f"{format_cost(explanation.repeats_cost, unit)}, {format_change(opened.document.overhead)} over the ideal cost."
    )
    graph = opened.graph
    for purchase in explanation.purchases:
        entry = purchase.recomputation
        operation = graph.operations[entry.operation]
        saved = simulation.cost - purchase.cost_if_kept
        cost = f"{format_cost(entry.cost, unit)} ({count(entry.repeats, 'time')})"
        if saved > entry.cost * (1 + 1e-9):
            cost += f", {format_cost(saved, unit)} including what is recomputed only for it"
        if purchase.saved_against_budget:
            buys = f"if it were kept, the peak would be {format_bytes(purchase.peak_if_kept)}"
            buys += f", {format_bytes(purchase.saved_against_budget)} over the budget"
        elif purchase.saved_bytes:
            buys = f"if it were kept, the peak would be {format_bytes(purchase.peak_if_kept)}, which fits: recomputing it is not necessary"
        else:
            buys = "if it were kept, the peak would be no higher: recomputing it is not necessary"
        yield f"{operation.name!r} ({operation.kind}, {format_bytes(entry.bytes)}): recomputing it costs {cost}; {buys}."


def _about_bound(explanation: Explanation) -> Iterator[str]:
    document, unit = explanation.schedule.document, explanation.schedule.cost_unit
    if document.bound is None or document.gap is None:
        yield "Nothing is proven."
        return
    model = "" if document.bound_model in (None, document.memory_model) else ", if nothing is computed in place"
    where = "in any order" if document.bound_scope is Scope.ANY else "in the same order"
    least = format_cost(document.bound, unit)
    yield (
        f"No schedule that fits the budget and has its first computations {where} costs less than {least}{model}: "
        f"this one costs at most {format_share(document.gap)} too much."
    )
    if document.bound_scope is Scope.ORDER and document.any_bound is not None:
        gap = relative_gap(document.cost, document.any_bound)
        yield f"In any order none costs less than {format_cost(document.any_bound, unit)}, {format_share(gap)} less than this one."


def _about_larger(explanation: Explanation, larger: LargerBudget) -> Iterator[str]:
    opened, unit = explanation.schedule, explanation.schedule.cost_unit
    ideal, present = opened.examined.problem.ideal_cost, opened.examined.simulation.cost
    if present <= ideal:
        yield "Nothing: every operation is already computed only once."
        return
    over = larger.cost / ideal - 1 if ideal > 0 else 0.0
    searched = f"found in {format_seconds(larger.seconds)}" + (", at the time limit" if larger.stop is Stop.TIME_LIMIT else "")
    scope = "" if larger.bound_scope is Scope.ANY else " in this order"
    if not larger.improved and larger.bound >= present * (1 - 1e-4):
        yield f"Nothing: it is proven that with {exact_bytes(larger.budget)} no schedule{scope} costs less than this one."
        return
    if not larger.improved:
        most = format_cost(present - larger.bound, unit)
        yield f"With {exact_bytes(larger.budget)} no cheaper schedule was {searched}. The gain{scope} is proven to be at most {most}."
        return
    yield (
        f"With {exact_bytes(larger.budget)} a schedule costs {format_cost(larger.cost, unit)}, {format_cost(present - larger.cost, unit)} "
        f"({format_share(1 - larger.cost / present)}) less than this one: {format_change(over)} over the ideal cost instead of "
        f"{format_change(opened.document.overhead)}, with {count(larger.recomputed, 'recomputation')} instead of "
        f"{opened.examined.simulation.recomputed} ({searched})."
    )
    if larger.bound < larger.cost * (1 - 1e-4):
        yield f"The gain{scope} is proven to be at most {format_cost(present - larger.bound, unit)}."


def percent(share: Fraction) -> str:
    """`10 %`."""
    return f"{float(100 * share):g} %"


def fields_of(explanation: Explanation) -> dict[str, Any]:
    """The object of `--json`."""
    opened, peak, larger = explanation.schedule, explanation.peak, explanation.larger
    graph, simulation = opened.graph, opened.examined.simulation
    return {
        "format": "checkmate-explain",
        "version": 1,
        "status": "ok",
        "graph": {"name": graph.name},
        "budget_bytes": opened.document.budget_bytes,
        "cost": simulation.cost,
        "ideal_cost": opened.examined.problem.ideal_cost,
        "cost_unit": opened.cost_unit,
        "recomputed": simulation.recomputed,
        "bound": opened.document.bound,
        "gap": opened.document.gap,
        "bound_scope": opened.document.bound_scope,
        "any_bound": opened.document.any_bound,
        "peak": {
            "bytes": peak.bytes,
            "computation": peak.computation,
            "operation": graph.operations[peak.operation].name,
            "again": peak.again,
            "fixed_bytes": peak.fixed,
            "reserve_bytes": peak.reserve,
            "workspace_bytes": peak.workspace,
            "values": [
                {
                    "name": graph.values[holding.value].name,
                    "bytes": holding.bytes,
                    "role": holding.role.value,
                    "reader": None if holding.reader is None else graph.operations[holding.reader].name,
                }
                for holding in peak.holdings
            ],
        },
        "dropped": [_purchase_fields(graph, purchase) for purchase in explanation.purchases],
        "larger_budget": None
        if larger is None
        else {
            "budget_bytes": larger.budget,
            "cost": larger.cost,
            "gain": simulation.cost - larger.cost,
            "bound": larger.bound,
            "bound_scope": larger.bound_scope,
            "peak_bytes": larger.peak,
            "recomputed": larger.recomputed,
            "stop": larger.stop.value,
            "seconds": round(larger.seconds, 6),
        },
    }


def _purchase_fields(graph: Graph, purchase: Purchase) -> dict[str, Any]:
    entry = purchase.recomputation
    return {
        "operation": graph.operations[entry.operation].name,
        "bytes": entry.bytes,
        "repeats": entry.repeats,
        "cost": entry.cost,
        "absent_computations": entry.absent,
        "peak_if_kept_bytes": purchase.peak_if_kept,
        "over_budget_if_kept_bytes": purchase.saved_against_budget,
        "cost_if_kept": purchase.cost_if_kept,
    }
