"""Convert old operators to opset 18, so that one version of each gradient is enough.

Not with `onnx.version_converter`, which would serialize the weights, rename values, and split a final Softmax that the loss must recognize.
Operators whose meaning is the same in opsets 7 to 18 are not changed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from onnx import NodeProto, TensorProto, helper, numpy_helper

from ....core.errors import InputError
from ..proto.attributes import find, integer, integers
from ..proto.model_file import plain_domain
from ..proto.stored import Array


class Upgrade:
    """One pass over the nodes; new constants are collected beside them."""

    def __init__(self, opset: int, ranks: Mapping[str, int], sizes: Mapping[str, Sequence[int]], elements: Mapping[str, int]) -> None:
        self.opset = opset
        self.ranks = ranks
        self.sizes = sizes
        self.elements = elements
        self.constants: list[TensorProto] = []

    def constant(self, node: NodeProto, role: str, numbers: Array) -> str:
        name = f"{node.name or node.output[0]}/{role}"
        self.constants.append(numpy_helper.from_array(numbers, name))
        return name

    def number(self, node: NodeProto, role: str, value: float) -> str:
        element = self.elements.get(node.input[0], TensorProto.FLOAT)
        return self.constant(node, role, np.asarray(value, helper.tensor_dtype_to_np_dtype(element)))


def upgraded(upgrade: Upgrade, nodes: Sequence[NodeProto]) -> list[NodeProto]:
    """The nodes in opset 18; nodes that need no change are the same objects."""
    made: list[NodeProto] = []
    for node in nodes:
        adapt = None if plain_domain(node.domain) else _ADAPTERS.get(node.op_type)
        if adapt is None:
            made.append(node)
        else:
            copy = NodeProto()
            copy.CopyFrom(node)
            made.append(adapt(upgrade, copy) or copy)
    return made


def _drop(node: NodeProto, *names: str) -> None:
    kept = [attribute for attribute in node.attribute if attribute.name not in names]
    del node.attribute[:]
    node.attribute.extend(kept)


def _set(node: NodeProto, name: str, value: object) -> None:
    _drop(node, name)
    node.attribute.append(helper.make_attribute(name, value))


def _inputs(node: NodeProto, *names: str) -> None:
    """Set all inputs, without blank ones at the end."""
    given = list(names)
    while given and not given[-1]:
        given.pop()
    del node.input[:]
    node.input.extend(given)


def _axes_input(first_opset: int) -> Callable[[Upgrade, NodeProto], None]:
    def adapt(upgrade: Upgrade, node: NodeProto) -> None:
        axes = integers(node, "axes")
        if upgrade.opset < first_opset and axes is not None:
            _drop(node, "axes")
            _inputs(node, node.input[0], upgrade.constant(node, "axes", np.asarray(axes, np.int64)))

    return adapt


def _split(upgrade: Upgrade, node: NodeProto) -> None:
    lengths = integers(node, "split")
    if upgrade.opset < 13 and lengths is not None:
        _drop(node, "split")
        _inputs(node, node.input[0], upgrade.constant(node, "split", np.asarray(lengths, np.int64)))
    elif upgrade.opset < 18 and len(node.input) < 2 and find(node, "num_outputs") is None:
        _set(node, "num_outputs", len(node.output))


def _slice(upgrade: Upgrade, node: NodeProto) -> None:
    if upgrade.opset >= 10:
        return
    starts, ends, axes = (integers(node, name) for name in ("starts", "ends", "axes"))
    _drop(node, "starts", "ends", "axes")
    extra = [("starts", starts), ("ends", ends), ("axes", axes)]
    _inputs(node, node.input[0], *(upgrade.constant(node, name, np.asarray(v, np.int64)) for name, v in extra if v is not None))


def _pad(upgrade: Upgrade, node: NodeProto) -> None:
    pads, value = integers(node, "pads"), find(node, "value")
    if upgrade.opset < 11 and pads is not None:
        _drop(node, "pads", "value")
        _inputs(
            node,
            node.input[0],
            upgrade.constant(node, "pads", np.asarray(pads, np.int64)),
            upgrade.number(node, "value", value.f) if value is not None and value.f else "",
        )


def _clip(upgrade: Upgrade, node: NodeProto) -> None:
    if upgrade.opset >= 11:
        return
    low, high = find(node, "min"), find(node, "max")
    _drop(node, "min", "max")
    _inputs(
        node,
        node.input[0],
        upgrade.number(node, "min", low.f) if low is not None else "",
        upgrade.number(node, "max", high.f) if high is not None else "",
    )


def _dropout(upgrade: Upgrade, node: NodeProto) -> None:
    if upgrade.opset >= 12:
        return
    ratio = find(node, "ratio")
    _drop(node, "ratio", "is_test")
    _inputs(node, node.input[0], upgrade.number(node, "ratio", 0.5 if ratio is None else ratio.f))


def _softmax(upgrade: Upgrade, node: NodeProto) -> None:
    """Before opset 13 Softmax normalized over all axes from `axis` on: the same as along `axis` if all later axes have size 1."""
    if upgrade.opset >= 13:
        return
    rank = upgrade.ranks.get(node.input[0])
    if rank is None:
        raise InputError(f"node {node.name or node.output[0]!r} ({node.op_type}): the shape of its input is not known")
    axis = integer(node, "axis", 1) % rank
    rest = upgrade.sizes[node.input[0]][axis + 1 :]
    if any(size != 1 for size in rest):
        raise InputError(
            f"node {node.name or node.output[0]!r} ({node.op_type} of opset {upgrade.opset}) normalizes over several axes at once: "
            "convert the model with onnx.version_converter to opset 13 first"
        )
    _set(node, "axis", axis)


def _batch_normalization(upgrade: Upgrade, node: NodeProto) -> None:
    if upgrade.opset < 9 and integer(node, "spatial", 1) == 0:
        raise InputError(f"node {node.name or node.output[0]!r}: BatchNormalization with spatial=0 has no equivalent in later opsets")
    if upgrade.opset < 14:
        _drop(node, "spatial")
        del node.output[1:]


def _upsample(upgrade: Upgrade, node: NodeProto) -> None:
    if upgrade.opset >= 10:
        return
    scales = find(node, "scales")
    name = node.input[1] if scales is None else upgrade.constant(node, "scales", np.asarray(scales.floats, np.float32))
    mode = find(node, "mode")
    node.op_type = "Resize"
    _drop(node, "scales", "mode")
    _set(node, "mode", "nearest" if mode is None else mode.s.decode())
    _asymmetric(node)
    _inputs(node, node.input[0], "", name)


def _resize(upgrade: Upgrade, node: NodeProto) -> None:
    if upgrade.opset < 11:
        _asymmetric(node)
        _inputs(node, node.input[0], "", node.input[1])


def _asymmetric(node: NodeProto) -> None:
    _set(node, "coordinate_transformation_mode", "asymmetric")
    _set(node, "nearest_mode", "floor")


def _scatter(upgrade: Upgrade, node: NodeProto) -> None:
    node.op_type = "ScatterElements"


def _topk(upgrade: Upgrade, node: NodeProto) -> None:
    count = find(node, "k")
    if upgrade.opset < 10 and count is not None:
        _drop(node, "k")
        _inputs(node, node.input[0], upgrade.constant(node, "k", np.asarray([count.i], np.int64)))


_ADAPTERS: Mapping[str, Callable[[Upgrade, NodeProto], None]] = {
    "Squeeze": _axes_input(13),
    "Unsqueeze": _axes_input(13),
    "ReduceSum": _axes_input(13),
    **{f"Reduce{kind}": _axes_input(18) for kind in ("Mean", "Max", "Min", "Prod", "L1", "L2", "LogSum", "LogSumExp", "SumSquare")},
    "Split": _split,
    "Slice": _slice,
    "Pad": _pad,
    "Clip": _clip,
    "Dropout": _dropout,
    "Softmax": _softmax,
    "LogSoftmax": _softmax,
    "Hardmax": _softmax,
    "BatchNormalization": _batch_normalization,
    "Upsample": _upsample,
    "Resize": _resize,
    "Scatter": _scatter,
    "TopK": _topk,
}
"""Operator -> its conversion to opset 18. Others only gained types, or attributes whose defaults keep the old meaning."""
