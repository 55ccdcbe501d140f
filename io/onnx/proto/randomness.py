"""Operations whose result differs from run to run: these must not be recomputed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from onnx import FunctionProto, NodeProto, TensorProto

from .attributes import find
from .captures import subgraphs
from .functions import FunctionKey, function_key
from .model_file import plain_domain

_RANDOM = frozenset({"RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike", "Multinomial", "Bernoulli"})
_FIRST_OPSET_OF_TRAINING_DROPOUT = 12


class Randomness:
    """Caches which functions are random, since many nodes may call the same one."""

    def __init__(self, functions: Mapping[FunctionKey, FunctionProto]) -> None:
        self._functions = functions
        self._random: dict[FunctionKey, bool] = {}

    def is_random(self, node: NodeProto, opset: int, truth: Callable[[str], bool | None]) -> bool:
        """A node without inputs counts as random. `truth` returns the value of a boolean tensor, if it is known."""
        key = function_key(node)
        if node.op_type == "Constant" and not key[0]:
            return False
        if not any(node.input) or self._is_random_operator(node, opset, truth):
            return True
        if any(self._any(graph.node, opset, truth) for graph in subgraphs(node)):
            return True
        return key in self._functions and self._is_random_function(key)

    def _is_random_operator(self, node: NodeProto, opset: int, truth: Callable[[str], bool | None]) -> bool:
        if find(node, "seed") is not None:
            return False
        if plain_domain(node.domain):
            return node.op_type.endswith("Dropout")
        if node.op_type in _RANDOM:
            return True
        if node.op_type != "Dropout" or opset < _FIRST_OPSET_OF_TRAINING_DROPOUT:
            return False
        training = node.input[2] if len(node.input) > 2 else ""
        return bool(training) and truth(training) is not False

    def _is_random_function(self, key: FunctionKey) -> bool:
        if key not in self._random:
            self._random[key] = False
            function = self._functions[key]
            opset = next((entry.version for entry in function.opset_import if not plain_domain(entry.domain)), 0)
            self._random[key] = self._any(function.node, opset, lambda name: None)
        return self._random[key]

    def _any(self, nodes: Iterable[NodeProto], opset: int, truth: Callable[[str], bool | None]) -> bool:
        body = list(nodes)
        constants = {node.output[0]: _stated_truth(node) for node in body if node.op_type == "Constant" and node.output}

        def known(name: str) -> bool | None:
            return constants[name] if name in constants else truth(name)

        return any(self.is_random(node, opset, known) for node in body)


def _stated_truth(node: NodeProto) -> bool | None:
    value = find(node, "value")
    if value is None or value.t.data_type != TensorProto.BOOL or value.t.data_location == TensorProto.EXTERNAL:
        return None
    return any(value.t.raw_data) or any(value.t.int32_data)
