"""Prepare a forward model for differentiation: known branches taken, the batch size set, operators of opset 18 or newer, no sequences."""

from __future__ import annotations

from collections.abc import Sequence

from onnx import ModelProto, NodeProto, ValueInfoProto, helper, version_converter

from ....core.errors import InputError
from ..build.known_tensors import Tensors
from ..proto.captures import reads, subgraphs
from ..proto.model_file import one_line
from .batching import rebatch
from .branches import take_known_branches
from .expansion import expand_composites
from .forward_model import OLDEST_OPSET, Forward, read_forward
from .module_parameters import restore_parameters, signature_of, tied_vectors
from .sequences import replace_sequences
from .training_options import TrainingOptions
from .upgrade import Upgrade, upgraded


def prepared(model: ModelProto, options: TrainingOptions) -> Forward:
    """The forward model, in operators that have a gradient where that is possible."""
    forward = read_forward(model, options.dims, options.batch_size)
    if forward.new_batch is not None:
        rebatch(forward, forward.new_batch)
    take_known_branches(forward)
    signature = signature_of(model.graph)
    if signature is not None:
        restored = restore_parameters(forward, signature)
        forward.parameters, forward.constants = frozenset(restored.parameters), frozenset(restored.constants)
        forward.warnings += restored.warnings
    elif model.producer_name == "pytorch":
        tied = tied_vectors(forward.nodes, forward.initializers)
        if tied:
            forward.warnings.append(_tied(tied))
    if forward.opset < OLDEST_OPSET:
        _upgrade(forward)
    replace_sequences(forward)
    expand_composites(forward)
    return forward


def _tied(names: Sequence[str]) -> str:
    listed = ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
    which = "the same vector" if len(names) == 1 else f"each of {len(names)} vectors"
    return f"several nodes read {which} ({listed}), which is trained as one; if the module has several, export it without optimization"


def _upgrade(forward: Forward) -> None:
    tensors = forward.tensors()
    names = tensors.names()
    sizes = {name: tensors.shape(name) for name in names if tensors.is_float(name)}
    upgrade = Upgrade(
        forward.opset,
        {name: len(shape) for name, shape in sizes.items()},
        {name: [size if isinstance(size, int) else 0 for size in shape] for name, shape in sizes.items()},
        {name: tensors.element(name) for name in sizes},
    )
    nodes = [_with_new_subgraphs(forward, tensors, node) if any(True for _ in subgraphs(node)) else node for node in forward.nodes]
    forward.nodes = upgraded(upgrade, nodes)
    forward.initializers |= {tensor.name: tensor for tensor in upgrade.constants}
    forward.opsets = {**forward.opsets, "": OLDEST_OPSET}


def _with_new_subgraphs(forward: Forward, tensors: Tensors, node: NodeProto) -> NodeProto:
    """An If, Loop or Scan whose subgraphs are converted by onnx, in a model of its own: it reads tensors of known types, no weights."""
    skeleton = ModelProto()
    skeleton.ir_version = forward.ir_version
    skeleton.opset_import.extend(helper.make_opsetid(domain, version) for domain, version in forward.opsets.items())
    skeleton.graph.name = "subgraphs"
    skeleton.graph.node.append(node)
    skeleton.graph.input.extend(tensors.value_info(name) for name in reads(node))
    skeleton.graph.output.extend(ValueInfoProto(name=name) for name in node.output if name)
    try:
        converted: ModelProto = version_converter.convert_version(skeleton, OLDEST_OPSET)
    except (RuntimeError, ValueError) as error:
        raise InputError(
            f"node {node.name!r} ({node.op_type}) holds operators of opset {forward.opset} that onnx cannot convert "
            f"({one_line(error, 200)}): export the model with opset {OLDEST_OPSET} or newer"
        ) from None
    made: NodeProto = next(found for found in converted.graph.node if found.op_type == node.op_type)
    return made
