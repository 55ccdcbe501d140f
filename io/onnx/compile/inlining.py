"""Replace calls of model-local functions by the bodies of the functions.

onnxruntime does the same when it opens a model, but puts the nodes of a call behind all other nodes that are ready, and merges equal nodes
of two calls. So the order and the recomputations of a compiled model can be kept only if it has no calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from onnx import AttributeProto, FunctionProto, NodeProto

from ..proto.attributes import bound
from ..proto.captures import subgraphs
from ..proto.functions import FunctionKey, function_key
from ..proto.model_file import opset_versions
from ..proto.rebinding import rename_reads


class Inliner:
    """The functions of one model, and the opsets it imports."""

    def __init__(self, functions: Mapping[FunctionKey, FunctionProto], opsets: Mapping[str, int], unused: Callable[[str], str]) -> None:
        self._functions = functions
        self._opsets = dict(opsets)
        self._unused = unused
        self.imports: dict[str, int] = {}
        """Opsets that function bodies use and that the model does not import."""

    def expanded(self, node: NodeProto) -> Iterator[NodeProto]:
        """The node itself or, for a call, the body of the function with unique names."""
        function = self._functions.get(function_key(node))
        if function is None or not self._can_be_inlined(function):
            yield node
            return
        given = {attribute.name: attribute for attribute in (*function.attribute_proto, *node.attribute)}
        actual = {formal: name for formal, name in zip(function.input, node.input, strict=False) if name}
        absent = frozenset(formal for formal in function.input if formal not in actual)
        wanted = dict(zip(function.output, node.output, strict=False))
        current = dict(actual)
        for inner in function.node:
            copy = _copied(inner, given, absent)
            rename_reads(copy, current)
            copy.name = self._unused(f"{node.name}/{inner.name or inner.op_type}")
            for position, name in enumerate(inner.output):
                if name:
                    current[name] = copy.output[position] = wanted.get(name) or self._unused(f"{node.name}/{name}")
            yield from self.expanded(copy)
        for formal, name in wanted.items():
            if name and formal in actual:
                yield NodeProto(op_type="Identity", name=self._unused(f"{node.name}/Identity"), input=[actual[formal]], output=[name])

    def _can_be_inlined(self, function: FunctionProto) -> bool:
        """A body must use the same opset versions as the model, and must not have subgraphs, whose names could clash with outer names."""
        wanted = opset_versions(function.opset_import)
        if any(self._opsets.get(domain, version) != version for domain, version in wanted.items()):
            return False
        if any(True for inner in function.node for _ in subgraphs(inner)):
            return False
        new = {domain: version for domain, version in wanted.items() if domain not in self._opsets}
        self._opsets |= new
        self.imports |= new
        return True


def _copied(inner: NodeProto, given: Mapping[str, AttributeProto], absent: frozenset[str]) -> NodeProto:
    copy = NodeProto()
    copy.CopyFrom(bound(inner, given, absent))
    return copy
