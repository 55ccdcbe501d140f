"""The parameters of the torch module that a model was exported from, restored from what the exporter writes about them.

`torch.onnx.export(dynamo=True)` lists the module's parameters in the metadata of the graph, and names in the metadata of each node the
parameters that the node reads. Its optimizer (`optimize=True`, the default) stores equal tensors once: a fresh BERT has 20 of 41
parameters, because all its biases are zeros. It also removes biases of zeros, stores transposed weights under names like `val_330`, and
stores values that it computed in advance. Here, parameters get their own tensors and names again, and tensors that are no parameters of the
module are known as such. A weight that is stored transposed is called `name.T`.

Tensors of equal random numbers are no coincidence: the module ties them, and they stay tied. Only a tensor filled with one number is taken
apart.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from onnx import GraphProto, NodeProto, TensorProto, helper, numpy_helper

from ....core.model.units import count
from ..build.known_tensors import FLOATS
from ..proto.attributes import integer
from ..proto.stored import array_of
from .forward_model import Forward

_SIGNATURE = "pkg.torch.export.ExportedProgram.graph_signature"
_FX_NODE = "pkg.torch.onnx.fx_node"
_INPUT_LINE = re.compile(r"^(\w+): (PARAMETER|BUFFER|CONSTANT_TENSOR) target='([^']*)'", re.MULTILINE)
_INPUT_SPEC = re.compile(r"InputKind\.(PARAMETER|BUFFER|CONSTANT_TENSOR): \d+>, arg=TensorArgument\(name='([^']*)'\), target='([^']*)'")
"""How torch 2.8 and newer, and how older versions, write the inputs of the exported program."""
_REFERENCE = re.compile(r"%(\w+)")
_CALLED = re.compile(r"target=([\w.]+)\]\((.*)", re.DOTALL)
_LINEAR, _ADDMM = "torch.ops.aten.linear.default", "torch.ops.aten.addmm.default"
_GROUP_NORM = "torch.ops.aten.group_norm.default"
_RECURRENT = ("LSTM", "GRU", "RNN")
_WITHOUT_OPTIMIZATION = "export the model with optimize=False"


@dataclass(frozen=True, slots=True)
class Signature:
    """The tensors of the module, by their names in the exported program."""

    parameters: Mapping[str, str]
    """Name in the program -> name in the module."""
    others: Mapping[str, str]
    """Buffers and constants."""


@dataclass(slots=True)
class ModuleParameters:
    """What was found."""

    parameters: set[str] = field(default_factory=set)
    """Stored tensors that are parameters of the module."""
    constants: set[str] = field(default_factory=set)
    """Stored floating-point tensors that are no parameters of the module."""
    untied: int = 0
    """Parameters that had been merged with equal ones and have their own tensor again."""
    zeros: int = 0
    """Biases that had been removed, because they are zeros, and are there again."""
    precomputed: list[str] = field(default_factory=list)
    """Stored values that the exporter computed in advance, perhaps from parameters."""
    absent: list[str] = field(default_factory=list)
    """Parameters that are not in the file under their names: the exporter computed with them, or the module ties them to others."""

    @property
    def warnings(self) -> Iterator[str]:
        if self.untied or self.zeros:
            merged = f"merged {count(self.untied, 'parameter')} with equal ones" if self.untied else ""
            removed = f"removed {count(self.zeros, 'bias').replace('biass', 'biases')} of zeros" if self.zeros else ""
            done = " and ".join(filter(None, (merged, removed)))
            yield f"the exporter had {done}; all have their own tensors and names again ({_WITHOUT_OPTIMIZATION} to avoid this)"
        if self.absent:
            yield (
                f"{count(len(self.absent), 'parameter')} of the module ({_names(self.absent)}) are in the file only in what the exporter "
                f"computed from them, or are tied to others; {_WITHOUT_OPTIMIZATION} to train them"
            )
        elif self.precomputed:
            yield (
                f"the exporter computed {count(len(self.precomputed), 'value')} in advance ({_names(self.precomputed)}), through which no "
                f"gradient goes; {_WITHOUT_OPTIMIZATION} if they depend on parameters"
            )


def _names(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")


def signature_of(graph: GraphProto) -> Signature | None:
    """None for a model that torch's exporter did not make, or an older one that wrote no signature."""
    text = next((entry.value for entry in graph.metadata_props if entry.key == _SIGNATURE), "")
    found = _INPUT_LINE.findall(text) or [(name, kind, target) for kind, name, target in _INPUT_SPEC.findall(text)]
    if not found:
        return None
    parameters = {name: target for name, kind, target in found if kind == "PARAMETER"}
    return Signature(parameters, {name: target for name, kind, target in found if kind != "PARAMETER"})


def restore_parameters(forward: Forward, signature: Signature) -> ModuleParameters:
    """Give merged parameters tensors of their own, and say which stored tensors are no parameters."""
    return _Restoring(forward, signature).run()


@dataclass(frozen=True, slots=True)
class _Use:
    """A stored tensor that a node reads."""

    node: NodeProto
    index: int

    @property
    def name(self) -> str:
        return str(self.node.input[self.index])


class _Restoring:
    def __init__(self, forward: Forward, signature: Signature) -> None:
        self._forward = forward
        self._signature = signature
        self._parameters = set(signature.parameters.values())
        self._targets = {*signature.parameters.values(), *signature.others.values()}
        self._found = ModuleParameters()
        self._kept: dict[str, str] = {}
        """Stored tensor -> the first parameter that it was found to be."""
        self._inserted: dict[int, list[NodeProto]] = {}
        """Transposes to insert before a node, by its id."""

    def run(self) -> ModuleParameters:
        floats = {name for name, tensor in self._forward.initializers.items() if tensor.data_type in FLOATS}
        parameters = set(self._parameters)
        read: set[str] = set()
        for program, nodes in self._by_program_node().items():
            uses = [_Use(node, index) for node in nodes for index, name in enumerate(node.input) if name in floats]
            called = _CALLED.search(program)
            references = list(dict.fromkeys(_REFERENCE.findall(called.group(2)))) if called else []
            read.update(references)
            parameters |= self._matched(called.group(1) if called else "", references, nodes, uses)
        without_program = {name for node in self._forward.nodes if not _program_node(node) for name in node.input}
        if self._inserted:
            self._insert()
        stored = {name for name, tensor in self._forward.initializers.items() if tensor.data_type in FLOATS}
        self._found.constants = {name for name in stored if name not in parameters and name not in without_program}
        self._found.constants |= {node.output[0] for node in self._forward.nodes if node.op_type in ("Constant", "ConstantOfShape")}
        self._found.parameters = {name for name in parameters if name in stored}
        computed = read - set(self._signature.parameters) - set(self._signature.others)
        self._found.precomputed = sorted(name for name in computed & floats if not self._is_filled(name))
        if self._found.precomputed:
            unread = [target for name, target in self._signature.parameters.items() if name not in read]
            self._found.absent += [target for target in unread if target not in stored]
        return self._found

    def _by_program_node(self) -> dict[str, list[NodeProto]]:
        """The nodes that each node of the exported program became."""
        groups: dict[str, list[NodeProto]] = {}
        for node in self._forward.nodes:
            program = _program_node(node)
            if program:
                groups.setdefault(program, []).append(node)
        return groups

    def _matched(self, operator: str, references: Sequence[str], nodes: Sequence[NodeProto], uses: Sequence[_Use]) -> set[str]:
        """The parameters among the tensors that one node of the program reads."""
        wanted = [name for name in references if name in self._signature.parameters or name in self._signature.others]
        if operator == _ADDMM and len(wanted) > 1:
            wanted = [*wanted[1:], wanted[0]]  # addmm reads its bias first, Gemm last
        names = [self._signature.parameters.get(name) or self._signature.others[name] for name in wanted]
        own, unknown = _divided([use for use in uses if not _is_no_parameter(operator, use)], names)
        missing = [name for name in names if name not in own]
        unknown = [use for use in unknown if self._forward.initializers[use.name].dims]
        if len(missing) == len(unknown) + 1:
            self._restore_bias(nodes, missing)
        cells = [node for node in nodes if node.op_type in _RECURRENT]
        if cells and missing:
            return self._named_cells(cells, missing[0].rpartition(".")[0])
        if len(unknown) != len(missing):
            self._found.absent += [name for name in missing if name in self._parameters and name not in self._found.absent]
            return {use.name for use in unknown} if missing else set()
        restored = {name: self._restored(operator, use, name) for use, name in zip(unknown, missing, strict=True)}
        buffers = set(self._signature.others.values())
        return {made for name, made in restored.items() if name not in buffers}

    def _restore_bias(self, nodes: Sequence[NodeProto], missing: list[str]) -> None:
        """The exporter removes biases that are zeros from these operators, in which the bias is the last parameter."""
        takers = [node for node in nodes if node.op_type in ("Gemm", "Conv", "ConvTranspose") and len(node.input) == 2]
        weight = self._forward.initializers.get(takers[0].input[1]) if len(takers) == 1 else None
        if weight is None or not weight.dims or missing[-1] in self._forward.initializers:
            return
        node, name = takers[0], missing.pop()
        size = weight.dims[0]
        if node.op_type == "Gemm" and not integer(node, "transB", 0):
            size = weight.dims[1]
        elif node.op_type == "ConvTranspose":
            size = weight.dims[1] * integer(node, "group", 1)
        zeros = np.zeros(size, helper.tensor_dtype_to_np_dtype(weight.data_type))
        self._forward.initializers[name] = numpy_helper.from_array(zeros, name)
        node.input.append(name)
        self._found.zeros += 1

    def _named_cells(self, cells: Sequence[NodeProto], module: str) -> set[str]:
        """The weights of all directions of a layer are stored as one tensor, with the gates in another order: `lstm.W_l0`."""
        names: set[str] = set()
        for layer, node in enumerate(cells):
            for index, letter in ((1, "W"), (2, "R"), (3, "B")):
                stored = node.input[index] if index < len(node.input) else ""
                if stored not in self._forward.initializers:
                    continue
                name = f"{module}.{letter}_l{layer}".removeprefix(".")
                names.add(self._copied(stored, name) if stored not in self._targets else stored)
                node.input[index] = name if stored not in self._targets else stored
        return names

    def _copied(self, stored: str, name: str) -> str:
        if name not in self._forward.initializers:
            copy = TensorProto()
            copy.CopyFrom(self._forward.initializers[stored])
            copy.name = name
            self._forward.initializers[name] = copy
        return name

    def _restored(self, operator: str, use: _Use, target: str) -> str:
        """Let a node read a parameter under its own name. Returns the name of the tensor that it reads."""
        stored = use.name
        transposed = stored not in self._targets and operator == _LINEAR and use.node.op_type == "MatMul" and use.index == 1
        if stored not in self._targets and not transposed and sum(size > 1 for size in self._forward.initializers[stored].dims) > 1:
            return stored  # in which layout is not known; a vector has only one
        if transposed:
            original = self._tied_to(stored)
            if original is not None:
                self._read_transposed(use, original)
                return original
            target = f"{target}.T"
        owner = stored if stored in self._targets else self._kept.setdefault(stored, target)
        if owner != target and not self._is_filled(stored):
            return owner
        if target not in self._forward.initializers:
            self._copied(stored, target)
            self._found.untied += owner != target
        use.node.input[use.index] = target
        return target

    def _tied_to(self, stored: str) -> str | None:
        """A parameter whose transpose this is: the module ties them, as language models tie their first and last weights."""
        tensor = self._forward.initializers[stored]
        if self._is_filled(stored) or tensor.data_location == TensorProto.EXTERNAL:
            return None
        for name in self._targets:
            other = self._forward.initializers.get(name)
            if other is None or other.data_location == TensorProto.EXTERNAL or list(other.dims) != list(tensor.dims)[::-1]:
                continue
            if other.data_type == tensor.data_type and np.array_equal(array_of(other).T, array_of(tensor)):
                return name
        return None

    def _read_transposed(self, use: _Use, original: str) -> None:
        made = f"{use.name}/transposed"
        if not any(made in node.output for nodes in self._inserted.values() for node in nodes):
            node = helper.make_node("Transpose", [original], [made], name=made, perm=[1, 0])
            self._inserted.setdefault(id(use.node), []).append(node)
        use.node.input[use.index] = made

    def _insert(self) -> None:
        self._forward.nodes = [made for node in self._forward.nodes for made in (*self._inserted.get(id(node), ()), node)]

    def _is_filled(self, name: str) -> bool:
        """True for a tensor filled with one number. External data is not read: vectors count as filled, matrices do not."""
        tensor = self._forward.initializers[name]
        if tensor.data_location == TensorProto.EXTERNAL:
            return len(tensor.dims) <= 1
        numbers = array_of(tensor).reshape(-1)
        return bool(numbers.size) and bool((numbers == numbers[0]).all())


def _divided(uses: Sequence[_Use], names: Sequence[str]) -> tuple[set[str], list[_Use]]:
    """The tensors that are read under their own names, and the other uses; a second use of one name may be another, equal tensor."""
    own: set[str] = set()
    others = []
    for use in uses:
        if use.name in names and use.name not in own:
            own.add(use.name)
        else:
            others.append(use)
    return own, others


def _is_no_parameter(operator: str, use: _Use) -> bool:
    """The scales of the InstanceNormalization that GroupNorm becomes."""
    return operator == _GROUP_NORM and use.node.op_type == "InstanceNormalization"


def _program_node(node: NodeProto) -> str:
    return next((entry.value for entry in node.metadata_props if entry.key == _FX_NODE), "")


def tied_vectors(nodes: Iterable[NodeProto], initializers: Mapping[str, TensorProto]) -> list[str]:
    """Stored vectors that several nodes read, in a file that does not say whether the module has them separately."""
    readers: dict[str, int] = {}
    for node in nodes:
        for name in set(node.input):
            if name in initializers and len(initializers[name].dims) == 1 and initializers[name].data_type in FLOATS:
                readers[name] = readers.get(name, 0) + 1
    return [name for name, amount in readers.items() if amount > 1 and initializers[name].dims[0] > 1]
