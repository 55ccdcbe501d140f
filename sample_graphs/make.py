"""Makes the bundled samples, always the same bytes: `python -m checkmate.sample_graphs.make [folder]`.

The networks are small enough to run in onnxruntime in a fraction of a second, and wide enough that activations, not parameters, fill the
memory: that is where rematerialization has something to win.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import onnx

from ..core.model.graph import Graph, OperationSpec, ValueSpec, Work, assemble
from ..io.formats.atomic import atomic_write
from ..io.formats.graph_json import render_graph
from ..io.formats.json_text import json_text
from ..io.onnx.read.reader import read_onnx
from . import networks
from .forward import classifier

CHAIN_LENGTH = 16

MODELS: dict[str, Callable[[], onnx.ModelProto]] = {
    "chain": lambda: networks.chain(rows=512, columns=512, length=CHAIN_LENGTH),
    "vgg": lambda: networks.vgg(batch=16, size=64, widths=[16, 64, 128, 128], hidden=128, classes=10),
    "resnet": lambda: networks.resnet(batch=8, size=64, widths=[16, 32, 64], classes=10),
    "unet": lambda: networks.unet(batch=4, size=96, widths=[16, 32, 64, 64], classes=4),
    "transformer": lambda: networks.transformer(batch=4, length=128, width=256, heads=8, blocks=2, words=512),
}


def sample_files() -> dict[str, bytes]:
    """Every sample by the name of its file."""
    files: dict[str, bytes] = {}
    for name, build in MODELS.items():
        model = build().SerializeToString(deterministic=True)
        graph = unit_chain(CHAIN_LENGTH) if name == "chain" else _as_json(read_onnx(model, name=name, threads=1).graph)
        files[f"{name}.onnx"] = model
        files[f"{name}.json"] = json_text(render_graph(graph)).encode()
    files["forward.onnx"] = classifier(size=64, widths=[8, 16, 32, 32], classes=10).SerializeToString(deterministic=True)
    return files


def _as_json(graph: Graph) -> Graph:
    """A JSON graph is not compiled, so it has no barriers."""
    return replace(graph, fixed={kind: size for kind, size in graph.fixed.items() if kind != "barriers"})


def unit_chain(length: int) -> Graph:
    """The textbook case: every cost and size is 1, and operation i is read by the next and by the one that mirrors it, 2 * length - i."""
    last = 2 * length
    specs = []
    for number in range(last + 1):
        backward = number > length
        read = [*([number - 1] if number else []), *([last - number] if backward else [])]
        made = ValueSpec(f"op{number}", 1)
        specs.append(
            OperationSpec(made.name, "unit", tuple(f"op{other}" for other in read), (made,), work=Work(cost=1.0), backward=backward)
        )
    return assemble("chain", specs, [f"op{last}"], {})


def main(arguments: list[str]) -> None:
    folder = Path(arguments[0]) if arguments else Path(__file__).parent
    for name, data in sample_files().items():
        atomic_write(folder / name, data)


if __name__ == "__main__":
    main(sys.argv[1:])
