"""Schedule files: load, save, display, verify."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import cached_property
from html import escape
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.errors import InputError, VerificationError
from ..core.model.costs import Costs
from ..core.model.graph import Graph
from ..core.model.units import format_bytes
from ..core.schedule.schedule import Step
from ..core.schedule.verify import Claim, verify
from .graph import LoadedGraph, load

if TYPE_CHECKING:
    from ..core.studies.examine import Examined
    from ..io.formats.content import Content
    from ..io.formats.schedule_json import ScheduleDocument

FRAME_HEIGHT = 640
"""Pixels of a report in a notebook."""


@dataclass(frozen=True, eq=False)
class Schedule:
    """The steps of a schedule (compute an operation, free a value), with its budget, cost and bound, and its graph."""

    document: ScheduleDocument
    """The content of the file."""
    graph: Graph
    source: str = ""
    """The file it was read from."""

    @classmethod
    def load(cls, source: str | PathLike[str], graph: LoadedGraph | Any = None) -> Schedule:
        """Read a schedule file; `graph` is needed only for files that do not contain it. Raises VerificationError if the figures in the
        file do not follow from its steps."""
        content = read_content(source)
        return checked(content, graph_of(content, graph))

    @property
    def steps(self) -> tuple[Step, ...]:
        return self.document.schedule.steps

    @property
    def computations(self) -> tuple[str, ...]:
        """Names of the operations in the order they are computed, recomputations included."""
        return tuple(self.graph.operations[index].name for index in self.document.schedule.computations)

    @property
    def budget_bytes(self) -> int:
        return self.document.budget_bytes

    @property
    def peak_bytes(self) -> int:
        return self.document.peak_bytes

    @property
    def cost(self) -> float:
        return self.document.cost

    @property
    def cost_unit(self) -> str:
        return self.document.cost_unit

    @property
    def costs(self) -> Costs:
        """The cost of each operation, from the file."""
        document = self.document
        return Costs(document.cost_model, document.cost_unit, document.amounts, ("schedule",) * len(document.amounts))

    @cached_property
    def examined(self) -> Examined:
        """This schedule and keep-all, both replayed by the simulator."""
        from ..core.studies.examine import examine

        document = self.document
        return examine(
            self.graph,
            self.costs,
            document.schedule,
            budget=document.budget_bytes,
            reserve=document.reserve_bytes,
            memory_model=document.memory_model,
        )

    def text(self) -> bytes:
        """The file's content."""
        from ..io.formats.json_text import json_text
        from ..io.formats.schedule_json import render_schedule

        return json_text(render_schedule(self.document, self.graph)).encode("utf-8", "backslashreplace")

    def save(self, path: str | PathLike[str]) -> Path:
        """Write the file, completely or not at all."""
        from ..io.formats.atomic import atomic_write

        atomic_write(Path(path), self.text())
        return Path(path)

    def page(self) -> bytes:
        """The HTML page about the schedule, which loads no other file."""
        from ..io.report import render_report

        return render_report(self.document, self.graph)

    def report(self, path: str | PathLike[str]) -> Path:
        """Write the HTML page."""
        from ..io.formats.atomic import atomic_write

        atomic_write(Path(path), self.page())
        return Path(path)

    def __repr__(self) -> str:
        document = self.document
        return (
            f"<Schedule of {self.graph.name!r}: {len(self.steps)} steps, peak {format_bytes(document.peak_bytes)} of "
            f"{format_bytes(document.budget_bytes)}, overhead {document.overhead:.2%}>"
        )

    def _repr_html_(self) -> str:
        """The report, in a frame of its own."""
        page = escape(self.page().decode("utf-8"), quote=True)
        return f'<iframe srcdoc="{page}" style="width:100%;height:{FRAME_HEIGHT}px;border:0" sandbox="allow-scripts"></iframe>'


def read_content(source: str | PathLike[str]) -> Content:
    """A schedule file; `-` is standard input."""
    from ..io.formats.content import Content

    content = Content.from_stream(sys.stdin.buffer) if source == "-" else Content.from_path(Path(source))
    if not content.is_json:
        raise InputError(f"{content.where}: this is not a schedule file; 'checkmate solve' writes one, called model.schedule.json")
    return content


def held_graph(content: Content) -> Graph | None:
    """The graph in a schedule file; None if the file does not contain it."""
    from ..io.formats.schedule_json import parse_definition

    return parse_definition(content.document, content.where)


def graph_of(content: Content, stated: LoadedGraph | Any = None) -> Graph:
    """The graph of a schedule: the one that was passed, or the one in its file."""
    if stated is not None:
        return stated.graph if isinstance(stated, LoadedGraph) else load(stated).graph
    graph = held_graph(content)
    if graph is None:
        raise InputError(f"{content.where}: this file does not contain its graph; name the graph that was solved with --graph")
    return graph


def checked(content: Content, graph: Graph) -> Schedule:
    """The verified schedule. A schedule that fails verification is an error, because its figures cannot be trusted."""
    from ..io.formats.schedule_json import contradictions, parse_schedule

    document = parse_schedule(content.document, graph, content.where)
    claim = Claim(document.budget_bytes, document.peak_bytes, document.cost)
    verdict = verify(graph, document.amounts, document.schedule, claim, reserve=document.reserve_bytes, memory_model=document.memory_model)
    wrong = [*verdict.violations, *contradictions(content.document, document, graph)]
    if wrong:
        raise VerificationError(f"{content.where}: the schedule fails verification: {wrong[0]}; 'checkmate verify' lists all violations")
    return Schedule(document, graph, "-" if content.path is None else str(content.path))
