"""Every private name of torch that checkmate uses is in this file.

They differ between releases. Importing this file checks the version, and `_private` names the ones that a release lacks, so that a new
release fails here with one line and not in the middle of a training step.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from importlib import import_module
from typing import Any

import torch

from ...core.errors import UnavailableError

TESTED = (2, 13)
"""The version that the tests run with."""
OLDEST = (2, 13)


def version_of(text: str) -> tuple[int, int]:
    major, minor = text.split("+")[0].split(".")[:2]
    return int(major), int(minor)


if version_of(torch.__version__) < OLDEST:
    raise UnavailableError(
        f"checkmate works with torch {OLDEST[0]}.{OLDEST[1]} and newer, and this is torch {torch.__version__}; "
        f"pip install 'torch=={TESTED[0]}.{TESTED[1]}.*'"
    )


def _private(module: str, *names: str) -> tuple[Any, ...]:
    """Private names of torch, or an error that says which version has them."""
    try:
        found = import_module(module)
        return tuple(getattr(found, name) for name in names)
    except (ImportError, AttributeError) as error:
        raise UnavailableError(
            f"torch {torch.__version__} is not supported: {error}; checkmate was tested with torch {TESTED[0]}.{TESTED[1]}: "
            f"pip install 'torch=={TESTED[0]}.{TESTED[1]}.*'"
        ) from None


(_sympify,) = _private("sympy", "sympify")
_OpOverload, _HigherOrderOperator = _private("torch._ops", "OpOverload", "HigherOrderOperator")


# Operators and fake tensors


def is_operator(target: object) -> bool:
    """A function of torch.ops with a schema."""
    return isinstance(target, _OpOverload)


def is_higher_order(target: object) -> bool:
    """An operator that takes functions: control flow, flex attention, kernels of the user."""
    return isinstance(target, _HigherOrderOperator)


def is_sideeffect_namespace(target: object) -> bool:
    """Collectives and operators with effects."""
    return is_operator(target) and target.namespace in ("_c10d_functional", "c10d", "c10d_functional", "_dtensor")  # type: ignore[attr-defined]


def storage_identity(tensor: torch.Tensor) -> int:
    return int(tensor.untyped_storage()._cdata)


_SIZES: ContextVar[dict[Any, Any] | None] = ContextVar("checkmate_sizes", default=None)


@contextmanager
def at_sizes(sizes: Mapping[Any, int]) -> Iterator[None]:
    """Read symbolic sizes as if a graph had been traced with these; with none, at the sizes it was traced with."""
    token = _SIZES.set(dict(sizes) or None)
    try:
        yield
    finally:
        _SIZES.reset(token)


def size_hint(size: Any) -> int | None:
    """A size as a number. A symbolic one is taken at the size it was traced with; None if that is not known."""
    found = number_hint(size)
    return None if found is None else int(found)


def number_hint(number: Any) -> Any:
    """A number that may be symbolic; None if its value depends on data."""
    if isinstance(number, (int, float)):
        return number
    node, sizes = number.node, _SIZES.get()
    if sizes is None:
        return node.hint if node.has_hint() else None
    found = node.expr.xreplace(sizes)
    return number_type(number)(found) if found.is_number or found in (True, False) else None


def number_type(number: Any) -> type:
    return float if isinstance(number, torch.SymFloat) else bool if isinstance(number, torch.SymBool) else int


def as_symbolic(value: Any) -> Any:
    """A plain number, for substitution in expressions."""
    return _sympify(value)


def symbol_of(number: Any) -> Any:
    """The symbol that a symbolic size is; None if it is an expression."""
    expression = number.node.expr
    return expression if expression.is_symbol else None


# Joint graphs of AOTAutograd

_extract_fwd_bwd_modules, _is_tangent = _private("torch._functorch.partitioners", "_extract_fwd_bwd_modules", "_is_tangent")
_InputMutation, _PlainInput, _Gradient = _private(
    "torch._functorch._aot_autograd.descriptors", "InputMutationAOTOutput", "PlainAOTInput", "GradAOTOutput"
)
(_aot_autograd,) = _private("torch._dynamo.backends.common", "aot_autograd")
(_BoxedCodeGen,) = _private("torch.fx.graph", "_BoxedCodeGen")
(_LazyGraphModule,) = _private("torch.fx._lazy_graph_module", "_LazyGraphModule")
(_TracingContext,) = _private("torch._guards", "TracingContext")
(_functorch_config,) = _private("torch._functorch", "config")


def compile_in_parts(gm: Any, inputs: Sequence[Any], partition: Callable[..., Any], compilers: Mapping[str, Callable[..., Any]]) -> Any:
    """Compile a graph of torch.compile: `partition` splits the joint graph, the compilers turn each part into a function of a list."""
    with _functorch_config.patch(enable_autograd_cache=False):
        return _aot_autograd(partition_fn=partition, **compilers)(gm, inputs)


def run_boxed(module: Any) -> Callable[[list[Any]], Any]:
    """A function that takes a list of inputs and empties it, so that inputs are freed after their last use."""
    module.graph.set_codegen(_BoxedCodeGen())
    module.recompile()
    _LazyGraphModule.force_recompile(module)
    return module.forward


def boxed(function: Callable[[list[Any]], Any]) -> Callable[[list[Any]], Any]:
    """Tell AOTAutograd that a function takes a list and empties it."""

    def run(arguments: list[Any]) -> Any:
        return function(arguments)

    run._boxed_call = True  # type: ignore[attr-defined]
    return run


def allow_other_plans() -> None:
    """Saved tensors differ between plans of one graph, so the runtime must not mark the sizes of some of them as dynamic. And none of them
    is overwritten, so a backward pass may run twice."""
    context = _TracingContext.try_get()
    if context is not None and context.fw_metadata is not None:
        context.fw_metadata.dynamic_saved_tensors_idxs.clear()
        context.fw_metadata.bw_donated_idxs = []


def input_number(node: Any) -> int | None:
    """Which input of the graph of torch.compile a placeholder of the joint graph is."""
    description = node.meta.get("desc")
    return description.idx if isinstance(description, _PlainInput) else None


def ends_in_graph_break(gm: Any) -> bool:
    """True if torch.compile left the rest of the function to another graph."""
    reason = getattr(gm, "compile_subgraph_reason", None)
    return bool(reason is not None and reason.graph_break)


def calling_module() -> torch.nn.Module | None:
    """The outermost module that is being called: the one whose training step this is."""
    frame = sys._getframe()
    found: torch.nn.Module | None = None
    while frame is not None:
        module = frame.f_locals.get("self") if frame.f_code.co_name in ("_call_impl", "_wrapped_call_impl") else None
        found = module if isinstance(module, torch.nn.Module) else found
        frame = frame.f_back  # type: ignore[assignment]
    return getattr(found, "_orig_mod", found)


def is_tangent(node: Any) -> bool:
    """A placeholder for a gradient that the caller passes to the backward pass."""
    return bool(_is_tangent(node))


def is_backward_node(node: Any) -> bool:
    return node.meta.get("partitioner_tag") == "is_backward"


def outputs_of(graph: Any) -> tuple[list[Any], list[Any]]:
    """The outputs of a joint graph, and what each of them is."""
    output = next(iter(graph.find_nodes(op="output")))
    return list(output.args[0]), list(output.meta["desc"])


def mutated_input(description: Any) -> Any:
    """The input that an output is the new value of; None for other outputs."""
    return description.mutated_input if isinstance(description, _InputMutation) else None


def gradient_of(description: Any) -> Any:
    """The input that an output is the gradient of; None for other outputs."""
    return description.grad_of if isinstance(description, _Gradient) else None


def split_joint(joint: Any, saved: list[Any], saved_numbers: list[Any], forward_count: int) -> tuple[Any, Any]:
    """The forward and the backward graph of a joint graph whose nodes are marked as belonging to one of them."""
    forward, backward = _extract_fwd_bwd_modules(joint, saved, saved_numbers, num_fwd_outputs=forward_count)
    for module in (forward, backward):
        module.graph.eliminate_dead_code(is_impure_node=lambda node: node.is_impure(impure_random=False))
        module.recompile()
    return forward, backward


# Memory

_enable_profiler, _disable_profiler = _private("torch._C._autograd", "_enable_profiler_legacy", "_disable_profiler_legacy")
_ProfilerConfig, _ProfilerState, _ExperimentalConfig = _private(
    "torch._C._profiler", "ProfilerConfig", "ProfilerState", "_ExperimentalConfig"
)

(_StorageWeakRef,) = _private("torch.multiprocessing.reductions", "StorageWeakRef")


def is_profiling() -> bool:
    """True if a profiler is active in this thread; there can be only one."""
    return bool(torch._C._autograd._profiler_enabled())


def allocations(call: Callable[[], Any]) -> tuple[Any, list[int]]:
    """What a call returns, and the bytes of every allocation (positive) and release (negative) on the CPU in this thread, in order.

    The plain profiler of autograd, not the one with traces: that takes a second to start and prints lines of its own.
    """
    _enable_profiler(_ProfilerConfig(_ProfilerState.CPU, False, True, False, False, False, _ExperimentalConfig()))
    try:
        result = call()
    finally:
        events = _disable_profiler()
    return result, [event.cpu_memory_usage() for thread in events for event in thread if event.kind() == "memory_alloc"]


def operator_calls(call: Callable[[], Any]) -> list[str]:
    """The names of the operators that a call runs in this thread, in order, with those that they run themselves."""
    _enable_profiler(_ProfilerConfig(_ProfilerState.CPU, False, False, False, False, False, _ExperimentalConfig()))
    try:
        call()
    finally:
        events = _disable_profiler()
    return [event.name() for thread in events for event in thread if event.kind() == "push"]


class WeakStorage:
    """A storage that may be freed meanwhile."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self._reference = _StorageWeakRef(tensor.untyped_storage())

    @property
    def is_alive(self) -> bool:
        return not self._reference.expired()

    def is_of(self, tensor: torch.Tensor) -> bool:
        return bool(self._reference == _StorageWeakRef(tensor.untyped_storage()))


# Inductor


def compile_with_inductor(gm: Any, inputs: Sequence[Any], partition: Callable[..., Any], observe: Callable[[Any, bool], Any]) -> Any:
    """Compile a graph with Inductor, split by `partition`. `observe` may wrap what it makes of each part, forward or backward."""
    compile_fx, compile_inner = _private("torch._inductor.compile_fx", "compile_fx", "compile_fx_inner")
    (base,) = _private("torch._inductor.custom_graph_pass", "CustomPartitionerFn")
    (config,) = _private("torch._inductor", "config")

    def split(_: object, joint: Any, joint_inputs: Any, **options: Any) -> Any:
        return partition(joint, joint_inputs, **options)

    # The result depends on more than the graph, so Inductor must not cache it: the identity is None.
    partitioner = type("Partitioner", (base,), {"__call__": split, "uuid": lambda _: None})

    def inner(part: Any, examples: Any, **options: Any) -> Any:
        return observe(compile_inner(part, examples, **options), bool(options.get("is_backward")))

    with (
        _only_real_modules(),
        config.patch(custom_partitioner_fn=partitioner(), fx_graph_cache=False),
        _functorch_config.patch(enable_autograd_cache=False),
    ):
        return compile_fx(gm, inputs, inner_compile=inner)


@contextmanager
def _only_real_modules() -> Iterator[None]:
    """Inductor pickles, and pickle looks for names in all modules: Pyomo's stand-ins for missing libraries raise an error then."""
    stand_ins = {name: module for name, module in sys.modules.items() if type(module).__name__ == "DeferredImportModule"}
    for name in stand_ins:
        del sys.modules[name]
    try:
        yield
    finally:
        for name, module in stand_ins.items():
            sys.modules.setdefault(name, module)


# Tracing without torch.compile


@contextmanager
def fake_tensors() -> Iterator[Any]:
    """Tensors made within have sizes, but no data and no memory."""
    (mode,) = _private("torch._subclasses.fake_tensor", "FakeTensorMode")
    with mode(allow_non_fake_inputs=True) as fake:
        yield fake


def trace_joint(model: torch.nn.Module, inputs: tuple[Any, ...], keywords: Mapping[str, Any]) -> tuple[Any, int]:
    """The joint graph of a model, and the number of outputs of its forward pass. The inputs may be fake; the parameters need no copy."""
    (export,) = _private("torch._functorch.aot_autograd", "aot_export_joint_with_descriptors")
    with ExitStack() as stack, torch.enable_grad():
        joint = export(stack, model, inputs, dict(keywords))
        return joint.graph_module, int(joint._aot_state.fw_metadata.num_forward)


def input_kind(node: Any) -> str | None:
    """What a placeholder of a joint graph is: `parameter`, `buffer`, or None."""
    parameter, buffer = _private("torch._functorch._aot_autograd.descriptors", "ParamAOTInput", "BufferAOTInput")
    description = node.meta.get("desc")
    return "parameter" if isinstance(description, parameter) else "buffer" if isinstance(description, buffer) else None


def output_number(description: Any) -> int | None:
    """Which output of the traced function an output of a joint graph is; None for others."""
    (plain,) = _private("torch._functorch._aot_autograd.descriptors", "PlainAOTOutput")
    return description.idx if isinstance(description, plain) else None


# Exported programs


def build_exported_program(
    module: Any,
    inputs: Sequence[Any],
    outputs: Sequence[Any],
    tensors: Mapping[str, torch.Tensor],
    structure: tuple[Any, Any, tuple[str, ...]],
) -> Any:
    """An ExportedProgram of a graph whose placeholders are `inputs` and whose outputs are `outputs`."""
    (program_type,) = _private("torch.export.exported_program", "ExportedProgram")
    call_entry, call_signature = _private("torch.export.exported_program", "ModuleCallEntry", "ModuleCallSignature")
    signature, input_spec, output_spec, input_kinds, output_kinds, tensor, constant = _private(
        "torch.export.graph_signature",
        *("ExportGraphSignature", "InputSpec", "OutputSpec", "InputKind", "OutputKind", "TensorArgument", "ConstantArgument"),
    )
    (tree_structure,) = _private("torch.utils._pytree", "tree_structure")
    kinds = {
        "parameter": input_kinds.PARAMETER,
        "buffer": input_kinds.BUFFER,
        "constant": input_kinds.CONSTANT_TENSOR,
        "user": input_kinds.USER_INPUT,
    }
    results = {
        "loss": output_kinds.LOSS_OUTPUT,
        "output": output_kinds.USER_OUTPUT,
        "buffer": output_kinds.BUFFER_MUTATION,
        "input": output_kinds.USER_INPUT_MUTATION,
        "gradient": output_kinds.GRADIENT_TO_PARAMETER,
        "input-gradient": output_kinds.GRADIENT_TO_USER_INPUT,
    }

    def returned(value: Any) -> Any:
        return tensor(name=value.name) if hasattr(value, "name") else constant(name="", value=value)

    in_specs = [
        input_spec(kinds[each.kind], tensor(name=each.name), each.target or None, each.persistent if each.kind == "buffer" else None)
        for each in inputs
    ]
    out_specs = [output_spec(results[each.kind], returned(each.value), each.target or None) for each in outputs]
    passed, given, names = structure
    users = [each.arg for each in in_specs if each.kind is input_kinds.USER_INPUT]
    plain = [each.arg for each in out_specs if each.kind in (results["loss"], results["output"], results["gradient"])]
    entry = call_entry(
        "", call_signature(users, plain, *(tree_structure(_with_leaves(each)) for each in (passed, given)), list(names) or None)
    )
    stored = {each.target: tensors[each.target] for each in inputs if each.kind in ("parameter", "buffer")}
    constants = {each.target: tensors[each.target] for each in inputs if each.kind == "constant"}
    return program_type(module, module.graph, signature(in_specs, out_specs), stored, {}, [entry], None, constants)


def _with_leaves(structure: Any) -> Any:
    """A structure in which None stands for a tensor; torch takes None for nothing."""
    if isinstance(structure, tuple):
        return tuple(_with_leaves(each) for each in structure)
    if isinstance(structure, list):
        return [_with_leaves(each) for each in structure]
    if isinstance(structure, dict):
        return {key: _with_leaves(each) for key, each in structure.items()}
    return 0


def save_exported_program(program: Any, file: Any, extra: Mapping[str, str]) -> None:
    (save,) = _private("torch.export", "save")
    save(program, file, extra_files=dict(extra))
