"""Run a program that was read from a `.pt2` file, operator by operator, with fake or with real tensors.

Operators are looked up by name in torch's own registry, in the namespaces `aten` and `prims` only. With fake tensors nothing is computed.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import torch

from ....core.errors import InputError
from .program_json import Block, Call, Kind, Program, Ref, Symbol, TensorMeta

DTYPES: Mapping[int, torch.dtype] = {
    1: torch.uint8,
    2: torch.int8,
    3: torch.int16,
    4: torch.int32,
    5: torch.int64,
    6: torch.float16,
    7: torch.float32,
    8: torch.float64,
    9: torch.complex32,
    10: torch.complex64,
    11: torch.complex128,
    12: torch.bool,
    13: torch.bfloat16,
    28: torch.uint16,
    29: torch.float8_e4m3fn,
    30: torch.float8_e5m2,
    34: torch.uint32,
    35: torch.uint64,
}
"""torch's numbers of types in its files."""
_LAYOUTS = {7: torch.strided}
_FORMATS = {1: torch.contiguous_format, 2: torch.channels_last, 3: torch.channels_last_3d, 4: torch.preserve_format}
_FORBIDDEN = ("filename", "path")
"""Arguments of operators that open files."""
_MANY = {"split", "split_with_sizes", "unbind", "chunk", "tensor_split", "unsafe_split", "unsafe_chunk", "unsafe_split_with_sizes"}
MOST_PARTS = 10_000
"""Tensors that one operator may return."""


class ProgramModule(torch.nn.Module):
    """A program as a function of its tensors, in the order of its inputs; returns its outputs in their order."""

    def __init__(self, program: Program, where: str) -> None:
        super().__init__()
        self.program = program
        self.where = where
        self._functions = {call.target: _resolve(call, where) for call in _all_calls(program.calls)}
        self._names = [spec.name for spec in program.inputs if spec.kind != "value"]
        self._values = {spec.name: spec.value for spec in program.inputs if spec.kind == "value" and spec.name}

    def forward(self, *tensors: torch.Tensor) -> tuple[Any, ...]:
        known: dict[str, Any] = {**self._values, **dict(zip(self._names, tensors, strict=True))}
        self._run(self.program.calls, known, _names(output.value for output in self.program.outputs))
        return tuple(self._value(output.value, known, "an output") for output in self.program.outputs)

    def _run(self, calls: Sequence[Call], known: dict[str, Any], kept: Iterable[str]) -> None:
        last = _last_uses(calls, kept)
        for number, call in enumerate(calls):
            self._bind(call, self._call(call, known), known)
            for name in last.get(number, ()):
                known.pop(name, None)

    def _call(self, call: Call, known: dict[str, Any]) -> Any:
        if call.target.endswith(("wrap_with_set_grad_enabled", "wrap_with_autocast")):
            return self._block(call, known)
        arguments = [self._value(each, known, call.where) for each in call.arguments]
        keywords = {name: self._value(each, known, call.where) for name, each in call.keywords.items()}
        _check_parts(call, arguments)
        try:
            return self._functions[call.target](*arguments, **keywords)
        except InputError:
            raise
        except Exception as error:
            message = " ".join(str(error).split())[:300]
            raise InputError(f"{self.where}: {call.where}: {call.target} fails: {message or type(error).__name__}") from error

    def _block(self, call: Call, known: dict[str, Any]) -> Any:
        """The body of `no_grad` or `autocast`."""
        place = next((number for number, each in enumerate(call.arguments) if isinstance(each, Block)), None)
        if place is None:
            raise InputError(f"{self.where}: {call.where}: a block without a body")
        block, settings = call.arguments[place], call.arguments[:place]
        inputs = [self._value(each, known, call.where) for each in call.arguments[place + 1 :]]
        if len(inputs) != len(block.inputs):
            raise InputError(f"{self.where}: {call.where}: a block of {len(block.inputs)} inputs gets {len(inputs)}")
        inner = dict(zip(block.inputs, inputs, strict=True))
        with _context(call, settings, self.where):
            self._run(block.calls, inner, _names(block.outputs))
            return [self._value(each, inner, call.where) for each in block.outputs]

    def _bind(self, call: Call, result: Any, known: dict[str, Any]) -> None:
        outputs = call.outputs
        if len(outputs) == 1 and isinstance(outputs[0], tuple):
            names, values = outputs[0], list(result)
        elif len(outputs) == 1 and not isinstance(result, (tuple, list)):
            names, values = outputs, [result]
        else:
            names, values = outputs, list(result) if isinstance(result, (tuple, list)) else [result] if outputs else []
        known.update({name: value for name, value in zip(names, values, strict=False) if isinstance(name, str)})

    def _value(self, argument: Any, known: Mapping[str, Any], where: str) -> Any:
        match argument:
            case Ref():
                if argument.name not in known:
                    raise InputError(f"{self.where}: {where}: reads {argument.name!r}, which nothing made before")
                return known[argument.name]
            case Kind():
                return _constant(argument, f"{self.where}: {where}")
            case list():
                return [self._value(each, known, where) for each in argument]
            case Block():
                raise InputError(f"{self.where}: {where}: a graph as an argument is not supported here")
            case _:
                return argument


def _all_calls(calls: Iterable[Call]) -> Iterable[Call]:
    for call in calls:
        yield call
        for argument in call.arguments:
            if isinstance(argument, Block):
                yield from _all_calls(argument.calls)


def _last_uses(calls: Sequence[Call], kept: Iterable[str]) -> dict[int, list[str]]:
    """The values to forget after each call: those that it is the last to read, or that nothing reads."""
    last: dict[str, int] = {}
    for number, call in enumerate(calls):
        for name in (*_names(call.outputs), *_names(call.arguments), *_names(call.keywords.values())):
            last[name] = number
    forgotten: dict[int, list[str]] = {}
    stays = frozenset(kept)
    for name, number in last.items():
        if name not in stays:
            forgotten.setdefault(number, []).append(name)
    return forgotten


def _names(arguments: Iterable[Any]) -> Iterable[str]:
    for each in arguments:
        if isinstance(each, Ref):
            yield each.name
        elif isinstance(each, str):
            yield each
        elif isinstance(each, (list, tuple)):
            yield from _names(each)


def _resolve(call: Call, where: str) -> Any:
    """The function of a target. Names were checked before: `torch.ops.<namespace>.<operator>.<overload>`, or arithmetic on numbers."""
    if call.target.startswith("torch.ops.higher_order."):
        return None
    if call.target.startswith("_operator."):
        return getattr(operator, call.target.removeprefix("_operator."))
    namespace, name, overload = call.target.removeprefix("torch.ops.").split(".")
    try:
        found = getattr(getattr(getattr(torch.ops, namespace), name), overload)
    except (AttributeError, RuntimeError):
        raise InputError(f"{where}: {call.where}: torch {torch.__version__} has no operator {namespace}.{name}.{overload}") from None
    schema = getattr(found, "_schema", None)
    if schema is None or any(argument.name in _FORBIDDEN for argument in schema.arguments):
        raise InputError(f"{where}: {call.where}: {call.target} is not an operator on tensors")
    return found


def _check_parts(call: Call, arguments: Sequence[Any]) -> None:
    """A few bytes of JSON can ask for a tensor to be split into billions."""
    name = call.target.split(".")[-2] if call.target.count(".") >= 3 else ""
    if name in _MANY and arguments and isinstance(arguments[0], torch.Tensor):
        largest = max(arguments[0].shape, default=1)
        size = arguments[1] if len(arguments) > 1 and isinstance(arguments[1], int) and "unbind" not in name else 1
        parts = size if "chunk" in name or name == "tensor_split" else largest // max(size, 1)
        if isinstance(arguments[1] if len(arguments) > 1 else None, list):
            parts = len(arguments[1])
        if parts > MOST_PARTS:
            raise InputError(f"{call.where}: splits a tensor into more than {MOST_PARTS} parts")


def _context(call: Call, settings: Sequence[Any], where: str) -> Any:
    if call.target.endswith("wrap_with_set_grad_enabled"):
        if len(settings) != 1 or not isinstance(settings[0], bool):
            raise InputError(f"{where}: {call.where}: expected whether gradients are enabled")
        return torch.set_grad_enabled(settings[0]) if not settings[0] or torch.is_grad_enabled() else nullcontext()
    if len(settings) != 4:
        raise InputError(f"{where}: {call.where}: expected the settings of autocast")
    device, dtype, enabled, cache = settings
    if not isinstance(device, str) or not isinstance(enabled, bool):
        raise InputError(f"{where}: {call.where}: expected the settings of autocast")
    chosen = _constant(dtype, where) if isinstance(dtype, Kind) else None
    return torch.autocast(device, chosen, enabled, cache if isinstance(cache, bool) else None)


def _constant(kind: Kind, where: str) -> Any:
    if kind.what == "device":
        try:
            return torch.device(str(kind.value))
        except RuntimeError:
            raise InputError(f"{where}: no device {str(kind.value)!r:.60}") from None
    tables: Mapping[str, Mapping[int, Any]] = {"dtype": DTYPES, "layout": _LAYOUTS, "memory_format": _FORMATS}
    table = tables[kind.what]
    if kind.value not in table:
        raise InputError(f"{where}: no {kind.what.replace('_', ' ')} number {kind.value}")
    return table[int(kind.value)]


def resolved_sizes(meta: TensorMeta, chosen: Mapping[str, int], where: str) -> tuple[list[int], list[int]]:
    """Sizes and strides of an input, at the chosen sizes of symbols. Strides of symbolic sizes are those of a dense tensor."""
    sizes = [_size(size, chosen, where) for size in meta.sizes]
    if all(isinstance(step, int) for step in meta.strides):
        return sizes, [int(step) for step in meta.strides if isinstance(step, int)]
    strides, step = [0] * len(sizes), 1
    for place in sorted(range(len(sizes)), key=lambda place: _hint(meta.strides[place])):
        strides[place] = step
        step *= max(sizes[place], 1)
    return sizes, strides


def _size(size: int | Symbol, chosen: Mapping[str, int], where: str) -> int:
    if isinstance(size, int):
        return size
    found = chosen.get(size.name, size.hint)
    if found is None:
        raise InputError(f"{where}: the size {size.name or 'of a dimension'} is not known; set it with --batch-size or --dim NAME=N")
    return found


def _hint(step: int | Symbol) -> int:
    return step if isinstance(step, int) else step.hint or 2**62


def fake_input(meta: TensorMeta, chosen: Mapping[str, int], where: str, requires_grad: bool) -> torch.Tensor:
    """A tensor without data. To be called where tensors are fake."""
    if meta.dtype not in DTYPES:
        raise InputError(f"{where}: no dtype number {meta.dtype}")
    sizes, strides = resolved_sizes(meta, chosen, where)
    try:
        made = torch.empty_strided(sizes, strides, dtype=DTYPES[meta.dtype], device=meta.device)
    except (RuntimeError, AssertionError) as error:
        raise InputError(f"{where}: no such tensor: {' '.join(str(error).split())[:200]}") from None
    wants = requires_grad and (made.dtype.is_floating_point or made.dtype.is_complex)
    return made.requires_grad_() if wants else made
