"""`differentiate`: from a forward model to a training graph. It reads and writes no files, and does not change the given model."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from onnx import ModelProto, NodeProto

from ....core.errors import InputError
from ..build.builder import GraphBuilder
from ..proto.captures import reads
from .assembly import Parts, assembled
from .branches import condition_inputs, weights_in_subgraphs
from .choices import MODES, OPTIMIZERS
from .engine import Backward
from .forward_model import Forward
from .loss_graphs import add_loss
from .modes import Statistics, set_batch_norm, set_dropout
from .optimizers import Optimizer
from .preparation import prepared
from .splitting import split_losses
from .trainable import find_parameters
from .training_options import Parameter, Role, TrainingGraph, TrainingOptions


def differentiate(model: ModelProto, options: TrainingOptions) -> TrainingGraph:
    """Add a loss, its gradients with respect to the parameters, and the updates."""
    _check(options)
    forward = prepared(model, options)
    tensors = forward.tensors()
    parameters = find_parameters(forward, tensors, options)
    statistics = set_batch_norm(forward, tensors, options.batch_norm)
    set_dropout(forward, options.dropout, options.seed)
    tensors = forward.tensors()
    outputs = [value.name for value in forward.outputs]

    builder = GraphBuilder(tensors, forward.opset, forward.inputs, forward.nodes)
    loss = add_loss(builder, forward, options)
    kept = {loss.name, *(outputs if options.model_outputs else ())}
    builder.nodes = _needed(builder.nodes, kept)
    forward_nodes = len(builder.nodes)
    updates = _running_statistics(builder, statistics, parameters)

    trained = [parameter.name for parameter in parameters if parameter.role is Role.TRAINED]
    if not trained:
        raise InputError(f"the model has no parameter to train: {_why_nothing_to_train(forward, parameters)}")
    optimizer = Optimizer(builder, options)
    gradients: dict[str, str] = {}

    def finish(parameter: str, gradient: str) -> None:
        gradients[parameter] = gradient
        optimizer.update(parameter, gradient)

    names = Backward(builder, loss.name, trained, finish).run()
    if not gradients:
        raise InputError(f"no parameter has a gradient: {loss.name!r} depends on none of the {len(trained)} trained parameters")
    without = {name: _why_none(forward, name, builder.nodes[:forward_nodes]) for name in trained if name not in gradients}
    return assembled(
        Parts(
            builder=builder,
            forward=forward,
            options=options,
            loss=loss,
            parameters=tuple(parameters),
            gradients=gradients,
            gradient_names=names,
            updates=updates | optimizer.updates,
            optimizer=optimizer,
            without_gradient=without,
            forward_nodes=split_losses(builder, forward_nodes),
        )
    )


def _check(options: TrainingOptions) -> None:
    for option, value, known in (
        ("--optimizer", options.optimizer, OPTIMIZERS),
        ("--bn", options.batch_norm, MODES),
        ("--dropout", options.dropout, MODES),
    ):
        if value not in known:
            raise InputError(f"{option}: no {value!r}; choose from {', '.join(known)}")


def _needed(nodes: Sequence[NodeProto], wanted: Collection[str]) -> list[NodeProto]:
    """The nodes that are needed to compute the outputs, in their order."""
    alive = set(wanted)
    kept = []
    for node in reversed(nodes):
        if any(name in alive for name in node.output):
            kept.append(node)
            alive.update(reads(node))
    return kept[::-1]


def _running_statistics(builder: GraphBuilder, statistics: Sequence[Statistics], parameters: Sequence[Parameter]) -> dict[str, str]:
    """Updated running statistics: momentum * running + (1 - momentum) * batch."""
    owned = {parameter.name for parameter in parameters if parameter.role is Role.STATISTIC}
    made = {name for node in builder.nodes for name in node.output}
    updates: dict[str, str] = {}
    for entry in statistics:
        for running, of_batch in zip(entry.running, entry.of_batch, strict=True):
            if running in owned and of_batch in made and running not in updates:
                builder.prefix = f"update/{running}"
                old = builder.add("Mul", running, builder.scalar(entry.momentum, running))
                new = builder.add("Mul", of_batch, builder.scalar(1 - entry.momentum, of_batch))
                updates[running] = builder.add("Add", old, new)
    return updates


def _why_nothing_to_train(forward: Forward, parameters: Sequence[Parameter]) -> str:
    if any(parameter.role is Role.FROZEN for parameter in parameters):
        return "all are frozen; --train and --freeze choose them"
    hidden, holder = weights_in_subgraphs(forward)
    if not hidden:
        return "no floating-point weight is stored in it"
    where = f"its {hidden} weights are used inside the subgraphs of {holder.op_type} node {holder.name!r}"
    if holder.op_type != "If":
        return f"{where}, which cannot be differentiated: export the model with the loop unrolled"
    inputs = condition_inputs(forward, holder)
    which = f"depends on the input {' and '.join(map(repr, inputs[:3]))}" if inputs else "is computed when the model runs"
    return f"{where}, whose condition {which}: store a value for it in the model, as an initializer, so that one branch can be chosen"


def _why_none(forward: Forward, name: str, nodes: Sequence[NodeProto]) -> str:
    if not any(name in reads(node) for node in nodes):
        return "the loss does not depend on them"
    return "the loss depends on them only through steps, counts or comparisons, which have no gradient"
