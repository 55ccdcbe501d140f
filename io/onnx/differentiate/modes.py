"""BatchNormalization and Dropout in training mode."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from onnx import NodeProto, helper, numpy_helper

from ..build.known_tensors import Tensors
from ..proto.attributes import find
from ..proto.model_file import plain_domain
from .forward_model import Forward


@dataclass(frozen=True, slots=True)
class Statistics:
    """Running statistics of one BatchNormalization, and the tensors with the statistics of the batch."""

    running: tuple[str, str]
    of_batch: tuple[str, str]
    momentum: float


def set_batch_norm(forward: Forward, tensors: Tensors, mode: str) -> list[Statistics]:
    """In training mode with momentum 0, so that outputs 2 and 3 are the mean and variance of the batch, which the gradient needs.

    Each node gets its own statistics as inputs, because onnxruntime overwrites these inputs with the outputs. Their numbers do not matter,
    but no two are equal: by default onnxruntime stores small constants that are equal once, and nodes would overwrite each other's.
    """
    found: list[Statistics] = []
    for node in forward.nodes:
        if node.op_type != "BatchNormalization" or plain_domain(node.domain):
            continue
        if mode == "eval":
            _keep_attributes(node, without=("training_mode",))
            del node.output[1:]
            continue
        attribute = find(node, "momentum")
        momentum = 0.9 if attribute is None else attribute.f
        running = (node.input[3], node.input[4])
        dtype = helper.tensor_dtype_to_np_dtype(tensors.element(node.input[3]))
        channels = tensors.shape(node.input[1])[0]
        assert isinstance(channels, int)
        stem = node.output[0]
        names = (f"{stem}/blank_mean", f"{stem}/blank_variance")
        blank = {name: np.full(channels, _unlike_others(2 * len(found) + number), dtype) for number, name in enumerate(names)}
        forward.initializers |= {name: numpy_helper.from_array(numbers, name) for name, numbers in blank.items()}
        node.input[3], node.input[4] = blank
        del node.output[1:]
        of_batch = (f"{stem}/batch_mean", f"{stem}/batch_variance")
        node.output.extend(of_batch)
        _keep_attributes(node, without=("training_mode", "momentum"))
        node.attribute.extend([helper.make_attribute("training_mode", 1), helper.make_attribute("momentum", 0.0)])
        found.append(Statistics(running, of_batch, momentum))
    return found


def _unlike_others(number: int) -> float:
    """A small positive number for each number, exact in every floating-point type, bfloat16 with its 8 digits included."""
    power, digits = divmod(number, 128)
    return (1 + digits / 128) * 2.0 ** (power - 10)


def set_dropout(forward: Forward, mode: str, seed: int) -> None:
    """Make Dropout active with a seed, so that a copy of the node draws the same mask; or turn it off."""
    truths = {flag: numpy_helper.from_array(np.asarray(flag == "train"), f"dropout/{flag}") for flag in ("train", "eval")}
    for node in forward.nodes:
        if node.op_type != "Dropout" or plain_domain(node.domain):
            continue
        inputs = [node.input[0], node.input[1] if len(node.input) > 1 else "", truths[mode].name]
        del node.input[:]
        node.input.extend(inputs)
        forward.initializers[truths[mode].name] = truths[mode]
        if mode == "train" and find(node, "seed") is None:
            node.attribute.append(helper.make_attribute("seed", seed))
            seed += 1


def _keep_attributes(node: NodeProto, *, without: tuple[str, ...]) -> None:
    kept = [attribute for attribute in node.attribute if attribute.name not in without]
    del node.attribute[:]
    node.attribute.extend(kept)
