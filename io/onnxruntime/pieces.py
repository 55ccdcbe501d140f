"""Split a model that is too large for the available memory into pieces: consecutive nodes in the order of the file.

Values from earlier pieces become inputs, and weights are left out: both are generated where the piece runs. Times and workspaces do not
depend on the values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import onnx
from onnx import ModelProto, NodeProto, TensorProto

from ..onnx.proto.captures import reads
from ..onnx.proto.model_file import plain_domain
from ..onnx.proto.naming import operation_names
from ..onnx.proto.tensor_types import type_bytes
from ..onnx.read.reader import OnnxModel
from .inputs import Feeds, generate

_LARGEST_KEPT = 4096
"""Stored tensors up to this size in bytes are kept in the piece: shapes, axes, scales."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A separate model, with the node names of the whole model."""

    model: ModelProto
    inputs: Feeds
    weights: Feeds


def cut(model: OnnxModel, limit: int) -> list[list[NodeProto]]:
    """Consecutive nodes whose tensors need at most `limit` bytes together; a single node may need more."""
    sizes = {name: type_bytes(type_) or 0 for name, type_ in model.types.items()}
    runs: list[list[NodeProto]] = []
    touched: set[str] = set()
    taken = 0
    for node in _named_nodes(model):
        if _is_constant(node):
            continue
        names = {name for name in (*reads(node), *node.output) if name}
        size = sum(sizes.get(name, 0) for name in names - touched)
        if not runs or taken + size > limit:
            runs.append([])
            touched, taken = set(), 0
            size = sum(sizes.get(name, 0) for name in names)
        runs[-1].append(node)
        touched |= names
        taken += size
    return runs


def _named_nodes(model: OnnxModel) -> list[NodeProto]:
    named = []
    for node, name in zip(model.proto.graph.node, operation_names(model.proto.graph.node), strict=True):
        copy = NodeProto()
        copy.CopyFrom(node)
        copy.name = name
        named.append(copy)
    return named


def _is_constant(node: NodeProto) -> bool:
    return node.op_type == "Constant" and not plain_domain(node.domain)


def piece_of(model: OnnxModel, run: Sequence[NodeProto], *, seed: int = 0) -> Piece:
    """A model of these nodes only."""
    constants = {node.output[0]: node for node in model.proto.graph.node if _is_constant(node)}
    made = {name for node in run for name in node.output if name}
    read = list(dict.fromkeys(name for node in run for name in reads(node) if name and name not in made))
    stored = {tensor.name: tensor for tensor in model.proto.graph.initializer}
    graph = onnx.GraphProto(name="piece")
    weights: list[str] = []
    inputs: list[str] = []
    for name in read:
        if name in constants:
            graph.node.append(constants[name])
        elif name in stored and _comes_along(stored[name]):
            graph.initializer.append(stored[name])
        elif name in model.numbers:
            graph.initializer.append(onnx.numpy_helper.from_array(model.numbers[name], name))
        elif name in stored:
            graph.initializer.append(_empty(stored[name]))
            weights.append(name)
        else:
            graph.input.append(onnx.ValueInfoProto(name=name, type=model.types[name]))
            inputs.append(name)
    graph.node.extend(run)
    inside = {name for node in run for name in reads(node)}
    outputs = [name for name in made if name not in inside] or sorted(made)
    graph.output.extend(onnx.ValueInfoProto(name=name, type=model.types[name]) for name in sorted(outputs))
    proto = ModelProto(ir_version=model.proto.ir_version, graph=graph)
    proto.opset_import.extend(model.proto.opset_import)
    proto.functions.extend(model.proto.functions)
    feeds = (generate(names, run, model.types, model.numbers, seed=seed) for names in (inputs, weights))
    return Piece(proto, *feeds)


def _comes_along(tensor: TensorProto) -> bool:
    return tensor.data_location != TensorProto.EXTERNAL and tensor.ByteSize() <= _LARGEST_KEPT


def _empty(tensor: TensorProto) -> TensorProto:
    """The same tensor as external data, whose contents are supplied when the session is opened."""
    empty = TensorProto(name=tensor.name, data_type=tensor.data_type, dims=tensor.dims, data_location=TensorProto.EXTERNAL)
    empty.external_data.append(onnx.StringStringEntryProto(key="location", value="generated"))
    return empty
