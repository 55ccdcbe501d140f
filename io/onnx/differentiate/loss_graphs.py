"""Add a loss to a forward graph, in standard operators; its gradient comes from the registry like any other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from onnx import NodeProto, ValueInfoProto, helper

from ....core.errors import InputError
from ..build.builder import GraphBuilder
from ..build.sampling import Shape
from ..proto.attributes import integer
from ..proto.elements import DOUBLE, FLOAT, INT64
from ..proto.model_file import plain_domain
from .forward_model import Forward
from .training_options import TrainingOptions


@dataclass(frozen=True, slots=True)
class Loss:
    """The scalar to differentiate, and the input that must be fed for it."""

    name: str
    labels: ValueInfoProto | None


def add_loss(builder: GraphBuilder, forward: Forward, options: TrainingOptions) -> Loss:
    builder.prefix = "loss"
    if options.loss_output is not None:
        return _existing(builder, forward, options.loss_output)
    if options.loss is None or options.loss not in _LOSSES:
        raise InputError(f"no loss {options.loss!r}; choose from {', '.join(_LOSSES)}")
    return _LOSSES[options.loss](builder, _prediction(builder, forward, options), options)


def _existing(builder: GraphBuilder, forward: Forward, name: str) -> Loss:
    outputs = [value.name for value in forward.outputs]
    if name not in outputs:
        raise InputError(f"--loss-output {name}: the model has no such output; choose from {', '.join(outputs[:10])}")
    if not builder.tensors.is_float(name) or any(dim != 1 for dim in builder.tensors.shape(name)):
        raise InputError(f"--loss-output {name}: a loss must be one number, but this output has shape {list(builder.tensors.shape(name))}")
    return Loss(name, None)


def _prediction(builder: GraphBuilder, forward: Forward, options: TrainingOptions) -> str:
    outputs = [value.name for value in forward.outputs]
    name = options.output or next((output for output in outputs if builder.tensors.is_float(output)), None)
    if name is None or name not in outputs or not builder.tensors.is_float(name):
        said = f"--output {options.output}: " if options.output else ""
        raise InputError(f"{said}the model has no such floating-point output; choose from {', '.join(outputs[:10])}")
    return name


def _maker(builder: GraphBuilder, name: str) -> NodeProto | None:
    """The node that makes a value, ignoring Identity."""
    makers = {output: node for node in builder.nodes for output in node.output}
    node = makers.get(name)
    while node is not None and node.op_type == "Identity":
        node = makers.get(node.input[0])
    return None if node is None or plain_domain(node.domain) else node


def _precise(builder: GraphBuilder, name: str) -> str:
    """Convert to float32: sixteen bits are too few to sum up a loss."""
    return name if builder.tensors.element(name) in (FLOAT, DOUBLE) else builder.cast(name, FLOAT)


def _feed(builder: GraphBuilder, name: str, element: int, shape: Shape) -> ValueInfoProto:
    value = helper.make_tensor_value_info(builder.unused(name), element, list(shape))
    builder.tensors.add_inputs([value])
    return value


def _named_loss(builder: GraphBuilder) -> str:
    """Rename the output of the last node to the name of the loss."""
    node = builder.nodes[-1]
    name = builder.unused("loss")
    builder.tensors.rename(node.output[0], name)
    node.output[0] = node.name = name
    return name


def _cross_entropy(builder: GraphBuilder, prediction: str, options: TrainingOptions) -> Loss:
    """Mean over all positions of -log p(label). A final Softmax or LogSoftmax becomes part of the loss, which is exact and stable."""
    rank = len(builder.tensors.shape(prediction))
    if rank < 2:
        raise InputError(f"cross-entropy needs one row of class scores per example, but {prediction!r} has {rank} dimensions")
    axis = options.class_axis if options.class_axis is not None else (rank - 1 if rank == 3 else 1)
    logits, node = prediction, _maker(builder, prediction)
    if node is not None and node.op_type in ("Softmax", "LogSoftmax"):
        logits = node.input[0]
        if options.class_axis is None:
            axis = integer(node, "axis", -1)
    if not -rank <= axis < rank or axis % rank == 0:
        raise InputError(
            f"cross-entropy: {prediction!r} has {rank} dimensions, and axis {axis} cannot hold the classes; set it with --class-axis"
        )
    axis %= rank
    shape = builder.tensors.shape(logits)
    logits = _precise(builder, logits)
    feed = _feed(builder, "labels", INT64, (*shape[:axis], *shape[axis + 1 :]))
    labels = feed.name
    if axis != 1:
        order = [*(place for place in range(rank) if place != axis), axis]
        logits = builder.add("Reshape", builder.transpose(logits, order), builder.integers([-1, _classes(shape, axis)]))
        labels = builder.add("Reshape", labels, builder.integers([-1]))
    builder.add_several("SoftmaxCrossEntropyLoss", 2, logits, labels, reduction="mean")
    return Loss(_named_loss(builder), feed)


def _classes(shape: Shape, axis: int) -> int:
    classes = shape[axis]
    if isinstance(classes, str):
        raise InputError(f"cross-entropy: the number of classes is a free dimension ({classes}); set it with --dim")
    return classes


def _mse(builder: GraphBuilder, prediction: str, options: TrainingOptions) -> Loss:
    value = _precise(builder, prediction)
    feed = _feed(builder, "targets", builder.tensors.element(value), builder.tensors.shape(value))
    error = builder.add("Sub", value, feed.name)
    builder.add("ReduceMean", builder.add("Mul", error, error), keepdims=0)
    return Loss(_named_loss(builder), feed)


def _bce_with_logits(builder: GraphBuilder, prediction: str, options: TrainingOptions) -> Loss:
    """Mean of softplus(x) - x t. A final Sigmoid becomes part of the loss."""
    node = _maker(builder, prediction)
    logits = node.input[0] if node is not None and node.op_type == "Sigmoid" else prediction
    value = _precise(builder, logits)
    feed = _feed(builder, "targets", builder.tensors.element(value), builder.tensors.shape(value))
    each = builder.add("Sub", builder.add("Softplus", value), builder.add("Mul", value, feed.name))
    builder.add("ReduceMean", each, keepdims=0)
    return Loss(_named_loss(builder), feed)


_LOSSES: Mapping[str, Callable[[GraphBuilder, str, TrainingOptions], Loss]] = {
    "cross-entropy": _cross_entropy,
    "mse": _mse,
    "bce-with-logits": _bce_with_logits,
}
