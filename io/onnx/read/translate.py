"""From a list of nodes to operations: in topological order, each with sizes, aliases and work."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from onnx import NodeProto, TypeProto

from ....core.errors import InputError
from ....core.model.graph import OperationSpec, ValueSpec, Work, assemble
from ..proto.captures import reads
from ..proto.dimensions import is_symbolic
from ..proto.elements import ELEMENT_BITS
from ..proto.model_file import plain_domain
from ..proto.naming import kind_of, looks_backward, operation_names
from ..proto.stored import Array
from ..proto.tensor_types import completed, shape_of, tensor_of, tensor_type, type_bytes
from ..proto.view_operators import is_view
from .bodies import Inside
from .containers import container_bytes, solve_concatenation, solve_sequence
from .control import look_inside
from .folding import folded
from .in_place import Pairs, in_place_pairs, written_over_fixed_memory
from .scope import Model, Scope
from .selection import empty_numbers, solve_selection
from .shapes import ContradictionError, inferred_types
from .statistics import must_run_once
from .unknown import contradiction, unknown_size
from .work import Call, flops, moved_bytes
from .workspace import Runtime, workspace_bytes


@dataclass(frozen=True, slots=True)
class _Facts:
    """The inferred types of the outputs of one node."""

    types: dict[str, TypeProto]
    numbers: dict[str, Array]
    contradiction: str = ""


def describe(model: Model, scope: Scope, nodes: Sequence[NodeProto], outputs: Sequence[str]) -> list[OperationSpec]:
    """Operations in topological order. Constant nodes become fixed memory of the scope; `outputs` are the outputs of the list of nodes."""
    names = operation_names(nodes)
    operations: list[int] = []
    for position, node in enumerate(nodes):
        if node.op_type == "Constant" and not plain_domain(node.domain):
            scope.add_constant(node, model.folder)
        else:
            operations.append(position)
    stored = scope.types.maps[0].keys()
    for position in operations:
        for output in nodes[position].output:
            if output in stored:
                raise InputError(
                    f"node {names[position]!r} makes {output!r}, which is already an initializer or input: tensor names must be unique"
                )
    made = {output for position in operations for output in nodes[position].output if output}
    wanted = frozenset(outputs)
    reading = {position: reads(nodes[position]) for position in operations}
    specs = [
        _operation(model, scope, nodes[position], names[position], reading[position], made, wanted)
        for position in _order(scope, nodes, names, reading, made)
    ]
    readers = Counter(name for used in reading.values() for name in used)
    once = {names[position] for position in operations if must_run_once(nodes[position], readers)}
    return [replace(spec, pinned=True) if spec.name in once else spec for spec in specs] if once else specs


def _order(scope: Scope, nodes: Sequence[NodeProto], names: Sequence[str], reading: dict[int, list[str]], made: set[str]) -> list[int]:
    """Sort and check with `assemble`, without sizes. Undefined inputs are left in, so that `assemble` reports them."""
    skeleton = [
        OperationSpec(
            name=names[position],
            kind=kind_of(nodes[position]),
            inputs=tuple(name for name in used if name in made or name not in scope.types),
            outputs=tuple(ValueSpec(output, 0) for output in nodes[position].output if output),
        )
        for position, used in reading.items()
    ]
    if not skeleton:
        return []
    positions = {names[position]: position for position in reading}
    return [positions[operation.name] for operation in assemble("graph", skeleton, (), {}).operations]


def _operation(
    model: Model, scope: Scope, node: NodeProto, name: str, used: Sequence[str], made: set[str], wanted: frozenset[str]
) -> OperationSpec:
    inside = look_inside(model, scope, node, describe)
    facts = _facts(model, scope, node, inside)
    sizes = {output: _define(model, scope, node, name, output, facts, inside) for output in node.output if output}
    kind = kind_of(node)
    view = is_view(node, wanted)
    source = node.input[0] if view and node.input[0] in made else None
    opset = scope.opset("") or 0
    in_place: Pairs = ()
    runtime = model.view if scope.troubles is None else None
    if runtime is not None:
        runtime.follow(node, scope, model.ir_version, facts.types, facts.numbers)
        in_place = () if view else in_place_pairs(node, made, lambda tensor: runtime.type_of(scope, tensor))
        sizes.update(dict.fromkeys(written_over_fixed_memory(node, made, wanted), 0))
    return OperationSpec(
        name=name,
        kind=kind,
        inputs=tuple(used_name for used_name in used if used_name in made),
        outputs=tuple(ValueSpec(output, 0 if view and source is None else size, source) for output, size in sizes.items()),
        workspace=0 if view else _workspace(model, scope, node, kind, inside),
        work=Work(moved_bytes=0) if view else _work(scope, node, kind, used, sum(sizes.values()), inside),
        view=view,
        backward=looks_backward(node),
        pinned=not view and model.randomness.is_random(node, opset, scope.truth),
        in_place=in_place,
    )


def _facts(model: Model, scope: Scope, node: NodeProto, inside: Inside | None) -> _Facts:
    if inside is not None:
        return _Facts(dict(inside.types), {})
    try:
        types = inferred_types(node, scope, model.ir_version)
    except ContradictionError as error:
        return _Facts({}, {}, str(error))
    if plain_domain(node.domain):
        return _Facts(types, {})
    solve_sequence(node, scope, types)
    for type_ in types.values():
        solve_concatenation(node, scope, type_)
        solve_selection(node, scope, type_)
    numbers = folded(node, scope.opset("") or 0, scope.types, scope.numbers, types)
    for name, found in numbers.items():
        tensor = tensor_of(types[name]) if name in types else None
        if tensor is not None and shape_of(types[name]) is None:
            types[name] = tensor_type(tensor.elem_type, np.shape(found))
    return _Facts(types, numbers | empty_numbers(types))


def _define(model: Model, scope: Scope, node: NodeProto, name: str, output: str, facts: _Facts, inside: Inside | None) -> int:
    """Determine the type and size of one output, from inference first and then from the declaration in the file."""
    type_ = completed(facts.types.get(output), lambda: _declared(model, scope, output, facts))
    size = None if type_ is None else type_bytes(type_)
    if size is None and type_ is not None and tensor_of(type_) is None and not facts.contradiction and not plain_domain(node.domain):
        size = container_bytes(node, scope)
    if size is None or type_ is None:
        if facts.contradiction:
            error = contradiction(output, name, kind_of(node), facts.contradiction, model.dimensions.given)
        else:
            error = unknown_size(output, name, kind_of(node), type_, inside.troubles[0] if inside and inside.troubles else "")
        if scope.troubles is None:
            raise error
        scope.troubles.append(str(error))
        scope.impossible = scope.impossible or bool(facts.contradiction) or (inside is not None and inside.impossible)
        scope.types[output] = TypeProto() if type_ is None else type_
        return 0
    scope.define(output, type_, size)
    if shape_of(facts.types.get(output)) is None:
        scope.relied.add(output)
    if output in facts.numbers:
        scope.numbers[output] = facts.numbers[output]
    return size


def _declared(model: Model, scope: Scope, output: str, facts: _Facts) -> TypeProto | None:
    """The declared type, unless it may be for other sizes than those that were set, and inference failed with the new sizes."""
    stated = scope.declared.get(output)
    if stated is None or (facts.contradiction and model.dimensions.given and not is_symbolic(stated)):
        return None
    return model.dimensions.settled(stated)


def _work(scope: Scope, node: NodeProto, kind: str, used: Sequence[str], made: int, inside: Inside | None) -> Work:
    moved = moved_bytes(kind, [scope.sizes.get(name, 0) for name in used], made)
    if inside is not None:
        return Work(flops=inside.flops, moved_bytes=moved)
    return Work(flops=flops(kind, _call(scope, node)), moved_bytes=moved)


def _workspace(model: Model, scope: Scope, node: NodeProto, kind: str, inside: Inside | None) -> int:
    if inside is not None:
        return inside.workspace
    made = scope.types.get(node.output[0]) if node.output else None
    tensor = None if made is None else tensor_of(made)
    if tensor is None:
        return 0
    runtime = Runtime(ELEMENT_BITS.get(tensor.elem_type, 0) // 8, scope.opset("") or 0, model.threads)
    return workspace_bytes(kind, _call(scope, node), runtime)


def _call(scope: Scope, node: NodeProto) -> Call:
    return Call(node, [shape_of(scope.types.get(name)) for name in node.input], [shape_of(scope.types.get(name)) for name in node.output])
