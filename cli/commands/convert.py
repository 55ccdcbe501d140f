"""`checkmate convert`: write any graph that can be read as checkmate's own JSON."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from ...core.errors import InputError
from ...core.model.units import count
from ..console import Console
from ..options.command import Command
from ..options.destinations import check_destinations
from ..options.shared import GraphRequest, general_options, graph_options


@click.command(
    cls=Command,
    examples=[
        ("checkmate convert model.onnx graph.json", "an ONNX model, with costs by the roofline model"),
        ("checkmate convert --costs flops --batch-size 32 model.onnx - | jq .operations", "to stdout"),
    ],
)
@graph_options(reserve=False)
@click.argument("output", type=click.Path(allow_dash=True), metavar="OUT.json")
@general_options
def convert(console: Console, request: GraphRequest, output: str) -> None:
    """Write GRAPH as checkmate JSON, including costs.

    GRAPH is an ONNX model, a checkmate JSON graph or networkx node-link JSON; - is stdin. OUT.json may be - for stdout.
    """
    from ...io.formats.atomic import atomic_write
    from ...io.formats.graph_json import render_graph
    from ...io.formats.json_text import json_text

    if output == "-" and console.json:
        raise InputError("--json and an output of - both write to stdout; choose one")
    if output != "-":
        check_destinations([Path(output)], request.source)
    priced = request.price(request.load())
    data = json_text(render_graph(priced.graph, priced.costs)).encode("utf-8", "backslashreplace")
    if output == "-":
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        return
    atomic_write(Path(output), data)
    graph, costs = priced.graph, priced.costs
    if console.json:
        console.emit_json(
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
    elif not console.quiet:
        sizes = f"{count(len(graph.operations), 'operation')}, {count(len(graph.values), 'value')}, costs: {costs.model}"
        click.echo(f"wrote {output} ({sizes})")
