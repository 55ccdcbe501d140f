"""Assemble the model from forward pass, backward pass and updates: final names, no unused nodes, a type for every tensor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from onnx import ModelProto, NodeProto, ValueInfoProto, helper

from ..build.builder import GraphBuilder
from ..proto.captures import reads
from .forward_model import Forward
from .loss_graphs import Loss
from .optimizers import Optimizer
from .training_options import Parameter, TrainingGraph, TrainingOptions


@dataclass(frozen=True, slots=True)
class Parts:
    """All that `differentiate` found."""

    builder: GraphBuilder
    forward: Forward
    options: TrainingOptions
    loss: Loss
    parameters: tuple[Parameter, ...]
    gradients: Mapping[str, str]
    gradient_names: Mapping[str, str]
    updates: Mapping[str, str]
    optimizer: Optimizer
    without_gradient: Mapping[str, str]
    forward_nodes: int


def assembled(parts: Parts) -> TrainingGraph:
    builder, forward, options = parts.builder, parts.forward, parts.options
    updates = _closed_updates(builder, parts.updates)
    names = _final_names(builder, parts.gradient_names, updates)
    gradients = {parameter: names.get(tensor, tensor) for parameter, tensor in parts.gradients.items()}
    updates = {source: names.get(tensor, tensor) for source, tensor in updates.items()}
    _rename(builder, names)
    shown = list(gradients.values()) if options.gradient_outputs else []
    model_outputs = [value.name for value in forward.outputs if value.name != parts.loss.name] if options.model_outputs else []
    outputs = list(dict.fromkeys([parts.loss.name, *model_outputs, *shown, *updates.values()]))

    moved = set() if options.keep_initializers else {parameter.name for parameter in parts.parameters}
    forward_nodes = {id(node) for node in builder.nodes[: parts.forward_nodes]}
    nodes = [node for node in _live(builder.nodes, outputs) if not (len(node.output) == 1 and node.output[0] in moved)]
    used = {name for node in nodes for name in reads(node)}
    parameters = tuple(parameter for parameter in parts.parameters if parameter.name in used)
    feeds = list(forward.inputs)
    if parts.loss.labels is not None:
        feeds.append(parts.loss.labels)
    if not options.keep_initializers:
        feeds += [builder.tensors.value_info(parameter.name) for parameter in parameters]
    feeds += parts.optimizer.inputs
    stored = [tensor for name, tensor in {**forward.initializers, **builder.constants}.items() if name in used and name not in moved]
    model = ModelProto()
    model.ir_version = forward.ir_version
    model.producer_name = "checkmate"
    model.opset_import.extend(helper.make_opsetid(domain, version) for domain, version in forward.opsets.items())
    graph = model.graph
    graph.name = forward.name
    graph.node.extend(nodes)
    graph.input.extend(feeds)
    graph.output.extend(builder.tensors.value_info(name) for name in outputs)
    graph.initializer.extend(stored)
    graph.value_info.extend(_types(builder, nodes, outputs))
    for key, value in forward.metadata.items():
        model.metadata_props.add(key=key, value=value)
    return TrainingGraph(
        model=model,
        loss=parts.loss.name,
        data_inputs=tuple(value.name for value in forward.inputs),
        label_input=None if parts.loss.labels is None else parts.loss.labels.name,
        parameters=parameters,
        gradients=gradients,
        updates=updates,
        state=parts.optimizer.state,
        without_gradient=parts.without_gradient,
        warnings=tuple(forward.warnings),
        forward_nodes=sum(id(node) in forward_nodes for node in nodes),
    )


def _closed_updates(builder: GraphBuilder, updates: Mapping[str, str]) -> dict[str, str]:
    """An update that is also a forward value or another output gets its own tensor."""
    closed: dict[str, str] = {}
    for source, tensor in updates.items():
        if not tensor.startswith("update/"):
            builder.prefix = f"update/{source}"
            tensor = builder.add("Identity", tensor)
        closed[source] = tensor
    return closed


def _final_names(builder: GraphBuilder, gradients: Mapping[str, str], updates: Mapping[str, str]) -> dict[str, str]:
    names = {tensor: builder.unused(name) for tensor, name in gradients.items()}
    return names | {tensor: builder.unused(f"updated/{source}") for source, tensor in updates.items()}


def _rename(builder: GraphBuilder, names: Mapping[str, str]) -> None:
    for node in builder.nodes:
        for index, name in enumerate(node.input):
            if name in names:
                node.input[index] = names[name]
        for index, name in enumerate(node.output):
            if name in names:
                node.output[index] = names[name]
                builder.tensors.rename(name, names[name])
                if node.name == name:
                    node.name = names[name]


def _live(nodes: Sequence[NodeProto], outputs: Sequence[str]) -> list[NodeProto]:
    alive = set(outputs)
    kept = []
    for node in reversed(nodes):
        if any(name in alive for name in node.output):
            kept.append(node)
            alive.update(reads(node))
    return kept[::-1]


def _types(builder: GraphBuilder, nodes: Sequence[NodeProto], outputs: Sequence[str]) -> list[ValueInfoProto]:
    given = set(outputs)
    return [builder.tensors.value_info(name) for node in nodes for name in node.output if name and name not in given]
