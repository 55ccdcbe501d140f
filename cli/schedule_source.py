"""Opening a schedule file to look at it: with its graph, judged by the independent checker, and replayed by the simulator."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..core.costs import Costs
from ..core.errors import InputError, VerificationError
from ..core.examine import Examined, examine
from ..core.graph import Graph
from ..core.verify import Claim, verify
from .options import ScheduleGraph

if TYPE_CHECKING:
    from ..io.content import Content
    from ..io.schedule_json import ScheduleDocument


@dataclass(frozen=True, slots=True)
class OpenSchedule:
    """A schedule that holds what it says, and what it does."""

    source: str
    document: ScheduleDocument
    examined: Examined

    @property
    def graph(self) -> Graph:
        return self.examined.graph

    @property
    def unit(self) -> str:
        return self.document.cost_unit


def open_schedule(source: str, stated: ScheduleGraph) -> OpenSchedule:
    """Read a schedule and its graph. One that fails verification is an error: nothing can be said about it that would hold."""
    from ..io.content import Content

    if source == "-" and stated.source == "-":
        raise InputError("SCHEDULE and --graph cannot both be - (stdin)")
    content = Content.from_stream(sys.stdin.buffer) if source == "-" else Content.from_path(Path(source))
    _require_json(content)
    return _opened(source, content, _graph_of(content, stated))


def open_pair(first: str, second: str, stated: ScheduleGraph) -> tuple[OpenSchedule, OpenSchedule]:
    """Two schedules of one graph; the graph of one will do for both if the other does not hold it."""
    from ..io.content import Content
    from ..io.schedule_json import parse_definition

    if [first, second, stated.source].count("-") > 1:
        raise InputError("only one of the two schedules and --graph can be - (stdin)")
    contents = [Content.from_stream(sys.stdin.buffer) if source == "-" else Content.from_path(Path(source)) for source in (first, second)]
    for content in contents:
        _require_json(content)
    if stated.source is not None:
        graph = _graph_of(contents[0], stated)
    else:
        held = [parse_definition(content.document, content.where) for content in contents]
        graph = next((found for found in held if found is not None), None) or _graph_of(contents[0], stated)
    one, other = (_opened(source, content, graph) for source, content in zip((first, second), contents, strict=True))
    return one, other


def _require_json(content: Content) -> None:
    """A model in place of its schedule is an easy slip."""
    if not content.is_json:
        raise InputError(f"{content.where}: this is no schedule file; 'checkmate solve' makes one of a model, called model.schedule.json")


def _graph_of(content: Content, stated: ScheduleGraph) -> Graph:
    from ..io.load import load
    from ..io.schedule_json import parse_definition

    if stated.source is not None:
        return load(stated.source, dims=stated.dims, batch_size=stated.batch_size).graph
    graph = parse_definition(content.document, content.where)
    if graph is None:
        raise InputError(f"{content.where}: this schedule does not hold its graph; name the graph that was solved with --graph")
    return graph


def _opened(source: str, content: Content, graph: Graph) -> OpenSchedule:
    from ..io.schedule_json import contradictions, parse_schedule

    document = parse_schedule(content.document, graph, content.where)
    claim = Claim(document.budget_bytes, document.peak_bytes, document.cost)
    verdict = verify(graph, document.amounts, document.schedule, claim, reserve=document.reserve_bytes, runtime=document.runtime)
    wrong = [*verdict.violations, *contradictions(content.document, document, graph)]
    if wrong:
        raise VerificationError(f"{content.where}: the schedule fails verification: {wrong[0]}; 'checkmate verify' lists all that is wrong")
    costs = Costs(document.cost_model, document.cost_unit, document.amounts, ("schedule",) * len(document.amounts))
    examined = examine(
        graph, costs, document.schedule, budget=document.budget_bytes, reserve=document.reserve_bytes, runtime=document.runtime
    )
    return OpenSchedule(source, document, examined)
