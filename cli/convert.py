"""`checkmate convert`: any graph that can be read, as checkmate's own JSON."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from ..core.errors import InputError
from .amounts import count
from .command import Command
from .options import GraphRequest, general_options, graph_options
from .outputs import check_destinations
from .pipeline import prepare
from .session import Session


@click.command(
    cls=Command,
    examples=[
        ("checkmate convert model.onnx graph.json", "an ONNX model, priced by the roofline model"),
        ("checkmate convert --costs flops --batch-size 32 model.onnx - | jq .operations", "to stdout"),
    ],
)
@graph_options(reserve=False)
@click.argument("output", type=click.Path(allow_dash=True), metavar="OUT.json")
@general_options
def convert(session: Session, request: GraphRequest, output: str) -> None:
    """Write GRAPH as checkmate JSON, costs included.

    GRAPH is an ONNX model, a checkmate JSON graph or networkx node-link JSON; - is stdin. OUT.json may be - for stdout.
    """
    from ..io.atomic import atomic_write
    from ..io.graph_json import render_graph
    from ..io.json_text import json_text

    if output == "-" and session.json:
        raise InputError("--json and an output of - both want stdout; choose one")
    if output != "-":
        check_destinations([Path(output)], request.source)
    prepared = prepare(request)
    data = json_text(render_graph(prepared.graph, prepared.costs)).encode("utf-8", "backslashreplace")
    if output == "-":
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        return
    atomic_write(Path(output), data)
    graph, costs = prepared.graph, prepared.costs
    if session.json:
        session.emit_json(
            {
                "format": "checkmate-convert",
                "version": 1,
                "status": "ok",
                "operations": len(graph.operations),
                "values": len(graph.values),
                "cost_model": costs.model,
                "outputs": [output],
            }
        )
    elif not session.quiet:
        sizes = f"{count(len(graph.operations), 'operation')}, {count(len(graph.values), 'value')}, costs: {costs.model}"
        click.echo(f"wrote {output} ({sizes})")
