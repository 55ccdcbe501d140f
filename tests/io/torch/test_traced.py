"""Traced graphs: sizes and aliases as in a real run, what must run once, forward before backward."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: pip install torch==2.13.0")

from torch.fx import GraphModule, Interpreter, Node
from torch_zoo import GPT, ZOO, Counting, Entry, SharedNorm, images, tokens, vectors

from checkmate.core.model.memory_model import CUDA_ROUNDING, MemoryModel, allocated_bytes
from checkmate.io.torch.boundary import BOUNDARY
from checkmate.io.torch.internals import compile_in_parts, run_boxed, split_joint
from checkmate.io.torch.joint_graphs import joint_roles
from checkmate.io.torch.rewriting import rewrite
from checkmate.io.torch.storages import tensors_in
from checkmate.io.torch.traced import TracedGraph, read_traced


def joint_of(model: Any, *inputs: Any) -> tuple[TracedGraph, GraphModule, list[Any]]:
    """The joint graph of a model, read, and the inputs that its forward part got."""
    caught: list[Any] = []

    def backend(gm: GraphModule, example: list[Any]) -> Any:
        def partition(joint: GraphModule, _: object, *, num_fwd_outputs: int, **more: Any) -> Any:
            roles = joint_roles(joint, num_fwd_outputs, more.get("static_lifetime_input_indices") or ())
            traced = read_traced(joint.graph, roles, "model")
            caught[:] = traced, joint
            everything = rewrite(traced, tuple(range(len(traced.graph.operations))), joint.graph)
            return split_joint(GraphModule(joint, everything.graph), everything.saved, everything.saved_numbers, num_fwd_outputs)

        def compiler(part: GraphModule, _: object) -> Any:
            code = run_boxed(part)

            def run(arguments: list[Any]) -> Any:
                if len(caught) == 2:
                    caught.append(list(arguments))
                return code(arguments)

            run._boxed_call = True  # type: ignore[attr-defined]
            return run

        return compile_in_parts(gm, example, partition, {"fw_compiler": compiler, "bw_compiler": compiler})

    torch._dynamo.reset()
    torch.compile(model, backend=backend)(*inputs)
    traced, joint, arguments = caught
    return traced, joint, arguments


class Recorder(Interpreter):
    """Keeps what every node returns."""

    def __init__(self, module: GraphModule) -> None:
        super().__init__(module, garbage_collect_values=False)
        self.seen: dict[Node, Any] = {}

    def run_node(self, n: Node) -> Any:
        found = super().run_node(n)
        self.seen[n] = found
        return found


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gpt", "resnet", "unet", "mobilenet", "vit", "moe", "lstm-cells", "autocast"])
def test_sizes_and_aliases_are_those_of_a_real_run(name: str) -> None:
    """Two nodes share memory in the graph if and only if they do in a real run, and all sizes are equal."""
    entry: Entry = ZOO[name]
    traced, joint, arguments = joint_of(entry.make(), *entry.inputs())
    tangents = [torch.ones(node.meta["val"].shape, dtype=node.meta["val"].dtype) for node in traced.roles.tangents]
    recorder = Recorder(joint)
    with torch.no_grad():
        recorder.run(*arguments, *tangents)
    real: dict[int, int] = {}
    for node, value in recorder.seen.items():
        if node.op == "output":
            continue
        for (_, fake), (_, tensor) in zip(tensors_in(node.meta.get("val")), tensors_in(value), strict=True):
            expected = real.setdefault(fake.untyped_storage()._cdata, tensor.untyped_storage()._cdata)
            assert expected == tensor.untyped_storage()._cdata, node.name
            assert fake.untyped_storage().nbytes() == tensor.untyped_storage().nbytes(), node.name
            assert fake.stride() == tensor.stride(), node.name
    assert len(set(real.values())) == len(real)


def test_whatever_needs_a_tangent_comes_after_every_output_of_the_forward_pass() -> None:
    traced, _, _ = joint_of(GPT(), *tokens())
    operations, producers = traced.graph.operations, traced.graph.producers()
    boundary = traced.boundary
    assert boundary is not None
    assert operations[boundary].name == BOUNDARY
    assert operations[boundary].pinned
    ancestors: list[set[int]] = []
    for operation in operations:
        before = {producers[value] for value in operation.inputs}
        ancestors.append(before.union(*(ancestors[number] for number in before)))
    gradients = [producers[value] for value in traced.graph.outputs if producers[value] not in {*ancestors[boundary], boundary}]
    assert len(gradients) == len(list(GPT().parameters()))
    assert all(boundary in ancestors[number] for number in gradients)
    held = [producers[value] for value in traced.graph.outputs if producers[value] in ancestors[boundary]]
    assert held
    assert all(operations[number].pinned for number in held)


def test_random_operations_run_once_and_in_their_order() -> None:
    traced, _, _ = joint_of(GPT(dropout=0.5), *tokens())
    drawing = [each for each in traced.graph.operations if "native_dropout.default" in each.kind]
    assert len(drawing) == 6, "two of each block, and that of its attention"
    assert all(each.pinned for each in drawing)
    made: set[int] = set()
    for each in drawing:
        assert not made or made & set(each.inputs)
        made |= set(each.outputs)
    quiet, _, _ = joint_of(GPT(dropout=0.0), *tokens())
    assert not any(each.pinned for each in quiet.graph.operations if "attention" in each.kind)


def test_running_statistics_are_updated_by_operations_of_their_own() -> None:
    traced, _, _ = joint_of(SharedNorm(), *images())
    updates = [each for each in traced.graph.operations if each.kind == "torch.statistics"]
    assert len(updates) == 3
    assert all(each.pinned for each in updates)
    norms = [each for each in traced.graph.operations if "batch_norm_legit" in each.kind]
    assert len(norms) == 3
    assert not any(each.pinned for each in norms)
    for update, norm in zip(updates, norms, strict=True):
        assert update.outputs[-1] in norm.inputs


def test_what_reads_an_input_before_it_is_written_runs_in_the_forward_pass() -> None:
    traced, _, _ = joint_of(Counting(), vectors()[0])
    operations = traced.graph.operations
    boundary = traced.boundary
    assert boundary is not None
    first = [each for each in operations if each.name.startswith("sub") and each.pinned]
    assert first
    assert all(set(each.outputs) & set(operations[boundary].inputs) for each in first)


def test_equal_computations_are_one_and_outputs_stay_apart() -> None:
    class Twice(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(4, 4))

        def forward(self, x: Any) -> Any:
            one, two = torch.tanh(x @ self.weight), torch.tanh(x @ self.weight)
            return (one * two).sum(), one.exp(), two.exp()

    traced, _, _ = joint_of(Twice(), torch.ones(4, 4))
    kinds = [each.kind for each in traced.graph.operations if not each.backward]
    assert kinds.count("aten.tanh.default") == 1
    assert kinds.count("aten.exp.default") == 2


def test_the_allocator_rounds_on_cuda_only() -> None:
    assert [allocated_bytes(size, "cpu") for size in (0, 1, 512, 513)] == [0, 1, 512, 513]
    assert [allocated_bytes(size, "cuda") for size in (0, 1, 512, 513)] == [0, CUDA_ROUNDING, 512, 1024]
    assert not MemoryModel.TORCH.overwrites
