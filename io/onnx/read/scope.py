"""What is known about the tensors while a list of nodes is read: type, bytes, and the contents of those that determine shapes."""

from __future__ import annotations

from collections import ChainMap, Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from onnx import FunctionProto, GraphProto, NodeProto, SparseTensorProto, TensorProto, TypeProto, ValueInfoProto

from ....core.errors import InputError
from ....core.model.graph import LARGEST_BYTES
from ..proto.dimensions import Dimensions
from ..proto.elements import FLOAT, INT64, STRING
from ..proto.functions import FunctionKey
from ..proto.randomness import Randomness
from ..proto.stored import Array, shape_numbers, stored_bytes
from ..proto.tensor_types import tensor_type, type_bytes

if TYPE_CHECKING:
    from .runtime_view import RuntimeView


@dataclass(frozen=True, slots=True)
class Model:
    """What is shared by all scopes of one file."""

    functions: Mapping[FunctionKey, FunctionProto]
    dimensions: Dimensions
    folder: Path | None
    ir_version: int
    randomness: Randomness
    threads: int = 1
    """Threads of the session, for workspaces."""
    view: RuntimeView | None = None
    """What onnxruntime knows about the tensors of the graph, if needed; not for functions and subgraphs."""


@dataclass(slots=True)
class Scope:
    """The tensors that a list of nodes can see. A subgraph also sees those of the enclosing graph; a function sees only its own."""

    opsets: Mapping[str, int]
    types: ChainMap[str, TypeProto] = field(default_factory=ChainMap)
    sizes: ChainMap[str, int] = field(default_factory=ChainMap)
    numbers: ChainMap[str, Array] = field(default_factory=ChainMap)
    declared: dict[str, TypeProto] = field(default_factory=dict)
    """Declared types of computed tensors, as in the file."""
    fixed: Counter[str] = field(default_factory=Counter)
    """Bytes of stored tensors, by kind."""
    relied: set[str] = field(default_factory=set)
    """Computed tensors whose size is known only because the file states it."""
    elements: dict[str, list[TypeProto]] = field(default_factory=dict)
    """The types of the elements of sequences, where each is known."""
    impossible: bool = False
    """True inside a function or subgraph if sizes contradict each other, so that it cannot run."""
    troubles: list[str] | None = None
    """Unknown sizes inside functions and subgraphs. They are no error, because only the outputs must be known."""

    def inner(self) -> Scope:
        """The scope of a subgraph: it sees everything in this scope, and adds its own tensors."""
        return Scope(self.opsets, self.types.new_child(), self.sizes.new_child(), self.numbers.new_child(), troubles=[])

    def opset(self, domain: str) -> int | None:
        return self.opsets.get(domain)

    def truth(self, name: str) -> bool | None:
        """The value of a boolean tensor; None if unknown."""
        numbers = self.numbers.get(name)
        return None if numbers is None or numbers.size != 1 else bool(numbers.reshape(-1)[0])

    def declare(self, values: Iterable[ValueInfoProto]) -> None:
        for value in values:
            if value.name and value.HasField("type"):
                self.declared.setdefault(value.name, value.type)

    def define(self, name: str, type_: TypeProto, size: int) -> None:
        if size > LARGEST_BYTES:
            raise InputError(f"tensor {name!r} is larger than any memory: check its dimensions")
        self.types[name] = type_
        self.sizes[name] = size

    def define_new(self, name: str, type_: TypeProto, size: int, kind: str) -> None:
        """Add a tensor of fixed memory, of a kind."""
        if name in self.types.maps[0]:
            raise InputError(f"tensor {name!r} is defined twice: tensor names must be unique")
        self.define(name, type_, size)
        self.fixed[kind] += size

    def add_stored(self, graph: GraphProto, folder: Path | None) -> None:
        """Initializers, dense and sparse."""
        for tensor in graph.initializer:
            self._add_tensor(tensor.name, tensor, folder, "parameters")
        for sparse in graph.sparse_initializer:
            self._add_sparse(sparse.values.name, sparse, "parameters")

    def add_constant(self, node: NodeProto, folder: Path | None) -> None:
        """A Constant node is fixed memory, as in onnxruntime, and not an operation."""
        name = node.output[0] if node.output else ""
        attribute = next((attribute for attribute in node.attribute if attribute.name.startswith(("value", "sparse_value"))), None)
        if not name or attribute is None:
            raise InputError(f"Constant node {node.name or name!r} has no value or no output")
        match attribute.name:
            case "value":
                self._add_tensor(name, attribute.t, folder, "constants")
            case "sparse_value":
                self._add_sparse(name, attribute.sparse_tensor, "constants")
            case "value_int":
                self._add_numbers(name, np.asarray(attribute.i, np.int64), INT64)
            case "value_ints":
                self._add_numbers(name, np.asarray(list(attribute.ints), np.int64), INT64)
            case "value_float":
                self._add_numbers(name, np.asarray(attribute.f, np.float32), FLOAT)
            case "value_floats":
                self._add_numbers(name, np.asarray(list(attribute.floats), np.float32), FLOAT)
            case _:
                texts = list(attribute.strings) or [attribute.s]
                shape = () if attribute.name == "value_string" else (len(attribute.strings),)
                self.define_new(name, tensor_type(STRING, shape), sum(map(len, texts)), "constants")

    def _add_tensor(self, name: str, tensor: TensorProto, folder: Path | None, kind: str) -> None:
        self.define_new(name, tensor_type(tensor.data_type, tensor.dims), stored_bytes(tensor), kind)
        numbers = shape_numbers(tensor, folder)
        if numbers is not None:
            self.numbers[name] = numbers

    def _add_sparse(self, name: str, sparse: SparseTensorProto, kind: str) -> None:
        type_ = tensor_type(sparse.values.data_type, sparse.dims)
        size = type_bytes(type_)
        if size is None:
            raise InputError(f"sparse tensor {name!r} has dimensions or elements without a size")
        self.define_new(name, type_, size, kind)

    def _add_numbers(self, name: str, numbers: Array, element: int) -> None:
        self.define_new(name, tensor_type(element, numbers.shape), numbers.nbytes, "constants")
        self.numbers[name] = numbers
