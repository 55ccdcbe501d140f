"""The checkmate graph format, simple enough to write by hand; docs/formats.md describes it, io/schemas/graph.schema.json defines it."""

from __future__ import annotations

from pathlib import Path

from ...core.errors import InputError
from ...core.model.costs import Costs
from ...core.model.graph import Graph, Operation, OperationSpec, ValueSpec, Work, assemble
from .strict_json import Fields, check_header, describe, shorten

FORMAT = "checkmate-graph"
VERSION = 1
DEFAULT_KIND = "operation"
"""The default kind of an operation."""

_GRAPH_KEYS = ("format", "version", "name", "comment", "fixed", "outputs", "operations")
_OPERATION_KEYS = (
    *("name", "kind", "inputs", "outputs", "bytes", "alias_of", "cost", "workspace", "flops", "moved_bytes"),
    *("view", "backward", "pinned", "in_place", "comment"),
)
_VALUE_KEYS = ("name", "bytes", "alias_of")


def parse_graph(document: object, where: str) -> Graph:
    """The graph in a parsed document; `where` names the file in messages, and the graph if it has no name."""
    top = Fields(document, where)
    check_header(top, FORMAT, VERSION)
    top.only(_GRAPH_KEYS)
    top.text("comment", "", empty=True)
    name = top.text("name", Path(where).stem, empty=True)
    fixed = top.child("fixed").sizes() if "fixed" in top else {}
    specs = [_operation(fields) for fields in top.objects("operations")]
    if not specs:
        top.fail("operations", "the graph has no operations")
    return assemble_at(where, name, specs, top.texts("outputs"), fixed)


def assemble_at(where: str, name: str, specs: list[OperationSpec], outputs: tuple[str, ...], fixed: dict[str, int]) -> Graph:
    """`assemble`, with the file's name in its error messages."""
    try:
        return assemble(name, specs, outputs, fixed)
    except InputError as error:
        raise InputError(f"{where}: {shorten(str(error))}") from None


def _operation(fields: Fields) -> OperationSpec:
    fields.only(_OPERATION_KEYS)
    fields.text("comment", "", empty=True)
    name = fields.text("name")
    outputs = _outputs(fields, name)
    aliases_only = bool(outputs) and all(made.alias_of is not None for made in outputs)
    return OperationSpec(
        name=name,
        kind=fields.text("kind", DEFAULT_KIND, empty=True),
        inputs=fields.texts("inputs"),
        outputs=outputs,
        workspace=fields.size("workspace", 0),
        work=Work(
            cost=fields.number("cost") if "cost" in fields else None,
            flops=fields.number("flops") if "flops" in fields else None,
            moved_bytes=fields.size("moved_bytes") if "moved_bytes" in fields else None,
        ),
        view=fields.flag("view", aliases_only),
        backward=fields.flag("backward"),
        pinned=fields.flag("pinned"),
        in_place=_in_place(fields),
    )


def _in_place(fields: Fields) -> tuple[tuple[str, str], ...]:
    """Pairs of input and output."""
    pairs: list[tuple[str, str]] = []
    for index, pair in enumerate(fields.items("in_place") if "in_place" in fields else ()):
        if not isinstance(pair, list) or len(pair) != 2 or not all(isinstance(name, str) for name in pair):
            fields.fail(f"in_place[{index}]", f"expected [input, output], found {describe(pair)}")
        pairs.append((pair[0], pair[1]))
    return tuple(pairs)


def _outputs(fields: Fields, name: str) -> tuple[ValueSpec, ...]:
    """The list of outputs, or the single output of the short form."""
    if "outputs" in fields:
        for key in ("bytes", "alias_of"):
            if key in fields:
                fields.fail(
                    "", f"has both 'outputs' and {key!r}; use only one: {key!r} is short for a single output with the name of the operation"
                )
        view = fields.flag("view")
        return tuple(_value(made, view) for made in fields.objects("outputs"))
    if "bytes" not in fields and "alias_of" not in fields and not fields.flag("view"):
        fields.fail("", "needs 'bytes' (one output with the name of the operation) or a list of 'outputs'")
    return (ValueSpec(name, fields.size("bytes", 0), _alias(fields)),)


def _value(fields: Fields, view: bool) -> ValueSpec:
    fields.only(_VALUE_KEYS)
    if "bytes" not in fields and "alias_of" not in fields and not view:
        fields.fail("", "needs 'bytes' or 'alias_of'")
    return ValueSpec(fields.text("name"), fields.size("bytes", 0), _alias(fields))


def _alias(fields: Fields) -> str | None:
    return fields.text("alias_of") if "alias_of" in fields else None


def render_graph(graph: Graph, costs: Costs | None = None) -> dict[str, object]:
    """The document that `parse_graph` parses to an equal graph; `costs`, if given, replace the graph's own."""
    document: dict[str, object] = {"format": FORMAT, "version": VERSION, "name": graph.name}
    if costs is not None:
        document["comment"] = f"costs: {costs.model}, in {costs.unit}"
    document["fixed"] = dict(graph.fixed)
    document["outputs"] = [graph.values[value].name for value in graph.outputs]
    document["operations"] = [
        _rendered_operation(graph, operation, operation.work.cost if costs is None or operation.view else costs.amounts[index])
        for index, operation in enumerate(graph.operations)
    ]
    return document


def _rendered_operation(graph: Graph, operation: Operation, cost: float | None) -> dict[str, object]:
    made = [graph.values[value] for value in operation.outputs]
    content: dict[str, object] = {"name": operation.name}
    if operation.kind != DEFAULT_KIND:
        content["kind"] = operation.kind
    if operation.inputs:
        content["inputs"] = [graph.values[value].name for value in operation.inputs]
    rendered = [_rendered_value(graph, value) for value in operation.outputs]
    plainly_view = bool(made) and all(value.alias_of is not None for value in made)
    if len(made) == 1 and made[0].name == operation.name:
        content |= {key: stated for key, stated in rendered[0].items() if key != "name"}
    else:
        content["outputs"] = rendered
    optional = {
        "cost": cost,
        "workspace": operation.workspace or None,
        "flops": operation.work.flops,
        "moved_bytes": operation.work.moved_bytes,
        "view": True if operation.view and not plainly_view else None,
        "backward": operation.backward or None,
        "pinned": operation.pinned or None,
        "in_place": [[graph.values[source].name, graph.values[target].name] for source, target in operation.in_place] or None,
    }
    return content | {key: stated for key, stated in optional.items() if stated is not None}


def _rendered_value(graph: Graph, number: int) -> dict[str, object]:
    value = graph.values[number]
    if value.alias_of is None:
        return {"name": value.name, "bytes": value.bytes}
    content: dict[str, object] = {"name": value.name, "alias_of": graph.values[value.alias_of].name}
    if value.bytes:
        content["bytes"] = value.bytes
    return content
