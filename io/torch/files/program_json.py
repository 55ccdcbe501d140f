"""The JSON of a PyTorch program: inputs, calls of operators, outputs. Read strictly, without torch.

Only what a graph of operators can be made of is accepted: tensors, numbers, texts and lists of them, and the two blocks that torch.export
writes for `no_grad` and `autocast`. A symbolic size is a name or has a hint; expressions are never evaluated.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ...formats.strict_json import Fields, describe, quote
from .call_signature import input_structure

SCHEMA_MAJOR = 8
"""The version of torch's schema that is read; a new major version may mean anything."""
LARGEST_SIZE = 2**48
MOST_NODES = 2_000_000
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,500}")
_SYMBOL = re.compile(r"(?:Symbol\(')?([A-Za-z_][A-Za-z0-9_]{0,100})(?:'(?:, [a-z_]+=(?:True|False))*\))?")
"""A name alone, or as sympy writes a symbol."""
_OPERATOR = re.compile(r"torch\.ops\.([A-Za-z_][A-Za-z0-9_]*)\.([A-Za-z_][A-Za-z0-9_]*)\.([A-Za-z_][A-Za-z0-9_]*)")
_ARITHMETIC = frozenset(
    f"_operator.{name}"
    for name in (
        "add",
        "sub",
        "mul",
        "floordiv",
        "truediv",
        "mod",
        "neg",
        "pow",
        "eq",
        "ne",
        "lt",
        "le",
        "gt",
        "ge",
        "and_",
        "or_",
        "getitem",
    )
)
_BLOCKS = ("torch.ops.higher_order.wrap_with_set_grad_enabled", "torch.ops.higher_order.wrap_with_autocast")
NAMESPACES = ("aten", "prims")


@dataclass(frozen=True, slots=True)
class Symbol:
    """A size that is not fixed: a name (empty for an expression), and the size the program was exported with."""

    name: str
    hint: int | None


@dataclass(frozen=True, slots=True)
class TensorMeta:
    dtype: int
    sizes: tuple[int | Symbol, ...]
    strides: tuple[int | Symbol, ...]
    offset: int
    device: str
    requires_grad: bool


@dataclass(frozen=True, slots=True)
class Ref:
    """A value by name."""

    name: str


@dataclass(frozen=True, slots=True)
class Kind:
    """A constant of torch: a number type, a memory format, a layout or a device."""

    what: str
    value: int | str


@dataclass(frozen=True)
class Block:
    """The body of a block: a graph of its own."""

    inputs: tuple[str, ...]
    outputs: tuple[Any, ...]
    calls: tuple[Call, ...]


@dataclass(frozen=True, slots=True)
class Call:
    """One call of an operator."""

    target: str
    arguments: tuple[Any, ...]
    keywords: Mapping[str, Any]
    outputs: tuple[Any, ...]
    """Names of what it returns: one, or a tuple of names where it returns a list."""
    where: str


@dataclass(frozen=True, slots=True)
class InputSpec:
    """One input: `parameter`, `buffer`, `constant` (a tensor in the file), `user` or `value` (a number or text that is part of the
    program)."""

    kind: str
    name: str
    target: str = ""
    """The name of the parameter, buffer or constant."""
    value: Any = None
    persistent: bool = True


@dataclass(frozen=True, slots=True)
class OutputSpec:
    """One output: `output`, `loss`, `buffer` or `input` (its new value), `gradient` (of a parameter) or `input-gradient`."""

    kind: str
    value: Any
    """A `Ref`, or a constant."""
    target: str = ""


@dataclass(frozen=True)
class Program:
    """A program: its inputs and outputs, and what it computes."""

    inputs: tuple[InputSpec, ...]
    outputs: tuple[OutputSpec, ...]
    calls: tuple[Call, ...]
    tensors: Mapping[str, TensorMeta]
    input_structure: Any
    """The inputs of a user as nested tuples, lists and dicts, with None for each leaf; () if that is not known."""
    argument_names: tuple[str, ...] = ()
    torch_version: str = ""
    symbols: tuple[str, ...] = field(default=())
    """Names of free sizes, in the order of the inputs."""

    @property
    def is_differentiated(self) -> bool:
        """True if it has a backward pass already."""
        return any(output.kind == "gradient" for output in self.outputs)


def parse_program(document: object, where: str) -> Program:
    top = Fields(document, where)
    version = top.child("schema_version")
    if version.whole("major") != SCHEMA_MAJOR:
        version.fail("major", f"this checkmate reads programs of schema {SCHEMA_MAJOR}, the file has {version.whole('major')}")
    module = top.child("graph_module")
    graph = module.child("graph")
    signature = module.child("signature")
    tensors = {name: parse_tensor_meta(table.child(name)) for table in (graph.child("tensor_values"),) for name in table.content}
    inputs = tuple(_input_spec(each) for each in signature.objects("input_specs"))
    outputs = tuple(_output_spec(each) for each in signature.objects("output_specs"))
    calls = _calls(graph)
    structure, names = input_structure(module)
    symbols = [
        size.name
        for spec in inputs
        if spec.kind == "user" and spec.name in tensors
        for size in tensors[spec.name].sizes
        if isinstance(size, Symbol) and size.name
    ]
    for spec in inputs:
        if spec.kind != "value" and spec.name not in tensors and spec.kind != "user":
            graph.fail("tensor_values", f"no entry for the input {quote(spec.name)}")
    return Program(
        inputs, outputs, calls, tensors, structure, names, top.text("torch_version", "", empty=True), tuple(dict.fromkeys(symbols))
    )


def parse_tensor_meta(fields: Fields) -> TensorMeta:
    device = fields.child("device")
    kind = device.text("type")
    index = device.content.get("index")
    layout = fields.whole("layout")
    if layout != 7:
        fields.fail("layout", "only dense tensors are supported")
    sizes, strides = (tuple(_size(each) for each in fields.objects(key)) for key in ("sizes", "strides"))
    if len(sizes) != len(strides):
        fields.fail("strides", f"expected {len(sizes)} of them, found {len(strides)}")
    offset = _size(fields.child("storage_offset"))
    return TensorMeta(
        dtype=fields.whole("dtype"),
        sizes=sizes,
        strides=strides,
        offset=offset if isinstance(offset, int) else 0,
        device=f"{kind}:{index}" if isinstance(index, int) and kind != "cpu" else kind,
        requires_grad=fields.flag("requires_grad"),
    )


def _size(fields: Fields) -> int | Symbol:
    if "as_int" in fields:
        size = fields.whole("as_int")
        if size > LARGEST_SIZE:
            fields.fail("as_int", f"{size} is larger than any tensor")
        return size
    expression = fields.child("as_expr")
    text = expression.text("expr_str")
    hint = expression.content.get("hint")
    known = (
        Fields(hint, expression.where, f"{expression.path}.hint").whole("as_int") if isinstance(hint, dict) and "as_int" in hint else None
    )
    symbol = _SYMBOL.fullmatch(text)
    return Symbol(symbol.group(1) if symbol else "", known)


def _input_spec(fields: Fields) -> InputSpec:
    kind, spec = _only(fields)
    match kind:
        case "parameter":
            return InputSpec("parameter", _name(spec.child("arg"), "name"), spec.text("parameter_name"))
        case "buffer":
            return InputSpec("buffer", _name(spec.child("arg"), "name"), spec.text("buffer_name"), persistent=spec.flag("persistent"))
        case "tensor_constant":
            return InputSpec("constant", _name(spec.child("arg"), "name"), spec.text("tensor_constant_name"))
        case "user_input":
            found = _argument(spec.child("arg"))
            if not isinstance(found, Ref):
                return InputSpec("value", "", value=found)
            return InputSpec("user", found.name)
        case "constant_input":
            return InputSpec("value", spec.text("name"), value=_plain(spec.child("value")))
        case _:
            pass
    return fields.fail("", f"an input of kind {quote(kind)} is not supported: only tensors, numbers and texts are")


def _plain(fields: Fields) -> Any:
    """A constant: none, a number, a text."""
    kind, value = next(iter(fields.content.items()), ("as_none", True))
    if kind == "as_none":
        return None
    if kind not in ("as_int", "as_float", "as_string", "as_bool") or isinstance(value, (dict, list)):
        fields.fail("", f"expected a constant, found {quote(kind)}")
    return value


_OUTPUTS = {
    "user_output": ("output", ""),
    "loss_output": ("loss", ""),
    "buffer_mutation": ("buffer", "buffer_name"),
    "gradient_to_parameter": ("gradient", "parameter_name"),
    "gradient_to_user_input": ("input-gradient", "user_input_name"),
    "user_input_mutation": ("input", "user_input_name"),
}


def _output_spec(fields: Fields) -> OutputSpec:
    kind, spec = _only(fields)
    if kind not in _OUTPUTS:
        fields.fail("", f"an output of kind {quote(kind)} is not supported")
    name, target = _OUTPUTS[kind]
    arg = spec.child("arg")
    value = _argument(arg) if kind == "user_output" else Ref(_name(arg, "name"))
    return OutputSpec(name, value, spec.text(target) if target else "")


def _only(fields: Fields) -> tuple[str, Fields]:
    """A union of torch's schema: an object with one key."""
    keys = [key for key in fields.content if not key.startswith("$")]
    if len(keys) != 1:
        fields.fail("", f"expected one key, found {len(keys)}")
    return keys[0], fields.child(keys[0])


def _calls(graph: Fields) -> tuple[Call, ...]:
    nodes = graph.items("nodes")
    if len(nodes) > MOST_NODES:
        graph.fail("nodes", f"{len(nodes)} nodes are more than {MOST_NODES}")
    return tuple(_call(each) for each in graph.objects("nodes"))


def _call(fields: Fields) -> Call:
    target = fields.text("target")
    known = _OPERATOR.fullmatch(target)
    if target not in _ARITHMETIC and target not in _BLOCKS and (known is None or known.group(1) not in NAMESPACES):
        fields.fail("target", f"{quote(target)} is not supported: only operators of {' and '.join(NAMESPACES)} are run")
    arguments: list[Any] = []
    keywords: dict[str, Any] = {}
    for each in fields.objects("inputs"):
        value = _argument(each.child("arg"))
        if each.content.get("kind") != 1:
            keywords[each.text("name")] = value
        else:
            arguments.append(value)
    outputs = tuple(_result(each) for each in fields.objects("outputs"))
    return Call(target, tuple(arguments), keywords, outputs, fields.path)


def _result(fields: Fields) -> Any:
    """The name of what a call returns, or a tuple of names."""
    kind, value = next(iter(fields.content.items()), ("", None))
    if kind == "as_tensor" or kind in ("as_sym_int", "as_sym_float", "as_sym_bool"):
        child = fields.child(kind)
        return _name(child, "name" if kind == "as_tensor" else "as_name")
    if kind in ("as_tensors", "as_optional_tensors"):
        names = _argument_of(kind, value, fields)
        return tuple(item.name if isinstance(item, Ref) else None for item in names)
    if kind not in ("as_none", "as_optional_tensor"):
        fields.fail("", f"an operator cannot return {quote(kind)} here ({describe(value)})")
    return None


def _name(fields: Fields, key: str) -> str:
    name = fields.text(key)
    if not _NAME.fullmatch(name):
        fields.fail(key, f"{quote(name)} is not a name")
    return name


def _argument(fields: Fields) -> Any:
    keys = list(fields.content)
    if len(keys) != 1:
        fields.fail("", f"an argument has one kind, this one has {len(keys)}")
    kind = keys[0]
    return _argument_of(kind, fields.content[kind], fields)


def _argument_of(kind: str, value: object, fields: Fields) -> Any:
    """An argument as a plain value, a `Ref`, a `Kind` or a `Block`."""
    parse = _ARGUMENTS.get(kind)
    if parse is None:
        fields.fail("", f"an argument of kind {quote(kind)} is not supported")
    return parse(value, fields, kind)


def _number(value: object, fields: Fields, kind: str) -> Any:
    if isinstance(value, bool) or not isinstance(value, int):
        fields.fail(kind, f"expected a whole number, found {describe(value)}")
    if abs(value) > 2**63:
        fields.fail(kind, f"{value} does not fit into 64 bits")
    return value


def _float(value: object, fields: Fields, kind: str) -> Any:
    """torch writes infinities and NaN as texts."""
    if isinstance(value, str) and value in ("Infinity", "-Infinity", "NaN"):
        return float(value.replace("Infinity", "inf"))
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        fields.fail(kind, f"expected a number, found {describe(value)}")
    return float(value)


def _bool(value: object, fields: Fields, kind: str) -> Any:
    if not isinstance(value, bool):
        fields.fail(kind, f"expected true or false, found {describe(value)}")
    return value


def _string(value: object, fields: Fields, kind: str) -> Any:
    if not isinstance(value, str):
        fields.fail(kind, f"expected text, found {describe(value)}")
    return value


def _tensor(value: object, fields: Fields, kind: str) -> Any:
    return Ref(_name(Fields(value, fields.where, fields.path), "name"))


def _symbolic(value: object, fields: Fields, kind: str) -> Any:
    inner = Fields(value, fields.where, fields.path)
    if "as_name" in inner:
        return Ref(_name(inner, "as_name"))
    return _plain(inner)


def _optional(value: object, fields: Fields, kind: str) -> Any:
    inner = Fields(value, fields.where, fields.path)
    return _tensor(inner.get("as_tensor"), inner, kind) if "as_tensor" in inner else None


def _list(parse: Callable[[object, Fields, str], Any]) -> Callable[[object, Fields, str], Any]:
    def items(value: object, fields: Fields, kind: str) -> Any:
        if not isinstance(value, list):
            fields.fail(kind, f"expected a list, found {describe(value)}")
        return [parse(item, fields, kind) for item in value]

    return items


def _kind(what: str) -> Callable[[object, Fields, str], Any]:
    def parse(value: object, fields: Fields, kind: str) -> Any:
        return Kind(what, _number(value, fields, kind))

    return parse


def _device(value: object, fields: Fields, kind: str) -> Any:
    inner = Fields(value, fields.where, fields.path)
    name, index = inner.text("type"), inner.content.get("index")
    return Kind("device", f"{name}:{index}" if isinstance(index, int) and name != "cpu" else name)


def _block(value: object, fields: Fields, kind: str) -> Any:
    inner = Fields(value, fields.where, fields.path).child("graph")
    inputs = tuple(found.name for each in inner.objects("inputs") if isinstance(found := _argument(each), Ref))
    return Block(inputs, tuple(_argument(each) for each in inner.objects("outputs")), _calls(inner))


_ARGUMENTS: Mapping[str, Callable[[object, Fields, str], Any]] = {
    "as_none": lambda value, fields, kind: None,
    "as_tensor": _tensor,
    "as_tensors": _list(_tensor),
    "as_int": _number,
    "as_ints": _list(_number),
    "as_float": _float,
    "as_floats": _list(_float),
    "as_string": _string,
    "as_strings": _list(_string),
    "as_bool": _bool,
    "as_bools": _list(_bool),
    "as_sym_int": _symbolic,
    "as_sym_ints": _list(_symbolic),
    "as_sym_float": _symbolic,
    "as_sym_floats": _list(_symbolic),
    "as_sym_bool": _symbolic,
    "as_sym_bools": _list(_symbolic),
    "as_optional_tensor": _optional,
    "as_optional_tensors": _list(_optional),
    "as_scalar_type": _kind("dtype"),
    "as_memory_format": _kind("memory_format"),
    "as_layout": _kind("layout"),
    "as_device": _device,
    "as_int_lists": _list(_list(_number)),
    "as_graph": _block,
}
