"""Measured costs by operation name, from a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from ...core.errors import InputError
from ...core.model.costs import Costs, measured_costs
from ...core.model.graph import Graph
from .content import Content
from .strict_json import Fields, check_header, quote, suggestion

FORMAT = "checkmate-costs"
VERSION = 1
DEFAULT_UNIT = "s"


@dataclass(frozen=True, slots=True)
class CostsFile:
    """The content of a costs file, not yet checked against a graph."""

    where: str
    unit: str
    costs: Mapping[str, float]
    workspace: Mapping[str, int] = field(default_factory=dict)
    comment: str = ""
    """How the figures were measured."""


def read_costs(path: Path) -> CostsFile:
    """Parse a costs file, or a plain object that maps names to numbers."""
    content = Content.from_path(path)
    return parse_costs(content.document, content.where)


def parse_costs(document: object, where: str) -> CostsFile:
    top = Fields(document, where)
    if not isinstance(top.content.get("format"), str):
        plain = top.amounts()
        if not plain:
            top.fail("", "it contains no costs")
        return CostsFile(where, DEFAULT_UNIT, plain)
    check_header(top, FORMAT, VERSION)
    top.only(("format", "version", "unit", "comment", "costs", "workspace"))
    comment = top.text("comment", "", empty=True)
    workspace = top.child("workspace").sizes() if "workspace" in top else {}
    return CostsFile(where, top.text("unit", DEFAULT_UNIT), top.child("costs").amounts(), workspace, comment)


def render_costs(file: CostsFile) -> dict[str, object]:
    """The document that `parse_costs` reads back."""
    document: dict[str, object] = {"format": FORMAT, "version": VERSION, "unit": file.unit}
    if file.comment:
        document["comment"] = file.comment
    document["costs"] = dict(file.costs)
    if file.workspace:
        document["workspace"] = dict(file.workspace)
    return document


def match_costs(graph: Graph, file: CostsFile) -> tuple[Graph, Costs]:
    """Price a graph with a costs file, and use its workspaces. Names must match in both directions; views need no cost."""
    operations = {operation.name: operation for operation in graph.operations}
    for name in (*file.costs, *file.workspace):
        if name not in operations:
            raise InputError(f"{file.where}: the graph has no operation {quote(name)}{suggestion(name, operations)}")
    for name, size in file.workspace.items():
        if size and operations[name].view:
            raise InputError(f"{file.where}: workspace of {quote(name)}: this operation is a view and needs no memory; remove it")
    costs = measured_costs(graph, file.costs, file.unit)
    if not file.workspace:
        return graph, costs
    measured = tuple(
        replace(operation, workspace=file.workspace.get(operation.name, operation.workspace)) for operation in graph.operations
    )
    return replace(graph, operations=measured), costs
