"""The parameters of the torch module, restored from the metadata that its exporter writes; the files here are written by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from small_models import Net, tensor

from checkmate.io.onnx.differentiate.training_graph import differentiate
from checkmate.io.onnx.differentiate.training_options import Role, TrainingGraph, TrainingOptions

SIGNATURE = "pkg.torch.export.ExportedProgram.graph_signature"
LINEAR, NORM, CONV = "aten.linear.default", "aten.layer_norm.default", "aten.conv2d.default"


class Exported(Net):
    """Nodes with the metadata of torch's exporter."""

    def from_torch(self, operator: str, inputs: Sequence[str], output: str, called: str, arguments: str, **attributes: Any) -> str:
        self.add(operator, inputs, output, **attributes)
        text = f"%made : [num_users=1] = call_function[target=torch.ops.{called}](args = ({arguments}), kwargs = {{}})"
        self.nodes[-1].metadata_props.add(key="pkg.torch.onnx.fx_node", value=text)
        return output

    def exported(self, names: dict[str, str], output: onnx.ValueInfoProto, *, old_style: bool = False, buffers: Sequence[str] = ()) -> Any:
        model = self.model([tensor("x", 2, 4)], [output])
        if old_style:
            specs = [
                f"InputSpec(kind=<InputKind.{_kind(name, buffers)}: 2>, arg=TensorArgument(name='{name}'), target='{target}', "
                "persistent=None)"
                for name, target in names.items()
            ]
            text = f"ExportGraphSignature(input_specs=[{', '.join(specs)}], output_specs=[])"
        else:
            text = "\n# inputs\n" + "\n".join(f"{name}: {_kind(name, buffers)} target='{target}'" for name, target in names.items())
        model.graph.metadata_props.add(key=SIGNATURE, value=text + "\nx: USER_INPUT\n")
        return model


def _kind(name: str, buffers: Sequence[str]) -> str:
    return "BUFFER" if name in buffers else "PARAMETER"


def trained(graph: TrainingGraph) -> dict[str, list[int]]:
    return {parameter.name: list(parameter.shape) for parameter in graph.parameters if parameter.role is Role.TRAINED}


def two_layers(net: Exported, second_weight: np.ndarray[Any, Any] | None = None) -> Exported:
    """Two linear layers as the optimizer leaves them: transposed weights under new names, both biases one tensor."""
    zeros = net.keep("a.bias", np.zeros(4, np.float32))
    net.from_torch("MatMul", ["x", net.weight("val_1", 4, 4)], "m1", LINEAR, "%x, %p_a_weight, %p_a_bias")
    net.from_torch("Add", ["m1", zeros], "h1", LINEAR, "%x, %p_a_weight, %p_a_bias")
    if second_weight is None:
        net.weight("val_2", 4, 4)
    else:
        net.keep("val_2", second_weight)
    net.from_torch("MatMul", ["h1", "val_2"], "m2", LINEAR, "%h1, %p_b_weight, %p_b_bias")
    net.from_torch("Add", ["m2", zeros], "y", LINEAR, "%h1, %p_b_weight, %p_b_bias")
    return net


NAMES = {"p_a_weight": "a.weight", "p_a_bias": "a.bias", "p_b_weight": "b.weight", "p_b_bias": "b.bias"}


@pytest.mark.parametrize("old_style", [False, True])
def test_merged_biases_are_separate_again_and_weights_have_their_names(old_style: bool) -> None:
    model = two_layers(Exported()).exported(NAMES, tensor("y", 2, 4), old_style=old_style)
    graph = differentiate(model, TrainingOptions(loss="mse"))
    assert trained(graph) == {"a.bias": [4], "a.weight.T": [4, 4], "b.weight.T": [4, 4], "b.bias": [4]}
    assert graph.gradients["b.bias"] == "grad/b.bias"
    assert len(graph.warnings) == 1
    assert graph.warnings[0].startswith("the exporter had merged 1 parameter with equal ones")


def test_equal_random_numbers_are_a_tie_of_the_module() -> None:
    net = Exported()
    table = net.random.normal(size=(6, 4)).astype(np.float32)
    net.from_torch("Gather", [net.keep("table.weight", table), net.whole("places", 1, 2)], "e", "aten.embedding.default", "%p_t, %places")
    net.from_torch("MatMul", ["e", net.keep("val_9", table.T)], "y", LINEAR, "%e, %p_head")
    model = net.exported({"p_t": "table.weight", "p_head": "head.weight"}, tensor("y", 2, 6))
    graph = differentiate(model, TrainingOptions(loss="mse"))
    assert trained(graph) == {"table.weight": [6, 4]}
    assert sum(node.op_type == "Transpose" and "table.weight" in node.input for node in graph.model.graph.node) == 1


def test_one_vector_that_fills_all_places_of_a_normalization() -> None:
    """A fresh BatchNorm: scale and variance are ones, bias and mean are zeros."""
    net = Exported()
    ones, zeros = net.keep("n.weight", np.ones(4, np.float32)), net.keep("n.bias", np.zeros(4, np.float32))
    called = "aten._native_batch_norm_legit_no_training.default"
    arguments = "%x, %p_w, %p_b, %b_m, %b_v, 0.1, 1e-05"
    net.from_torch("BatchNormalization", ["x", ones, zeros, zeros, ones], "y", called, arguments)
    names = {"p_w": "n.weight", "p_b": "n.bias", "b_m": "n.running_mean", "b_v": "n.running_var"}
    graph = differentiate(net.exported(names, tensor("y", 2, 4), buffers=("b_m", "b_v")), TrainingOptions(loss="mse"))
    roles = {parameter.name: parameter.role for parameter in graph.parameters}
    assert roles == {
        "n.weight": Role.TRAINED,
        "n.bias": Role.TRAINED,
        "n.running_mean": Role.STATISTIC,
        "n.running_var": Role.STATISTIC,
    }


def test_a_bias_that_was_removed_because_it_is_zeros() -> None:
    net = Exported()
    net.from_torch("Gemm", ["x", net.weight("a.weight", 3, 4)], "y", LINEAR, "%x, %p_w, %p_b", transB=1)
    graph = differentiate(net.exported({"p_w": "a.weight", "p_b": "a.bias"}, tensor("y", 2, 3)), TrainingOptions(loss="mse"))
    assert trained(graph) == {"a.weight": [3, 4], "a.bias": [3]}
    assert "removed 1 bias of zeros" in graph.warnings[0]


def test_what_is_no_parameter_of_the_module_is_not_trained() -> None:
    """A buffer, a constant of a formula, and a value that the exporter computed from a parameter."""
    net = Exported()
    net.from_torch("Mul", ["x", net.weight("rope", 4)], "r", "aten.mul.Tensor", "%x, %b_rope")
    net.from_torch("Add", ["r", net.weight("val_3", 2, 4)], "s", "aten.sdpa.default", "%r")
    net.from_torch("Add", ["s", net.weight("embedding_1", 2, 4)], "e", "aten.add.Tensor", "%s, %embedding_1")
    net.from_torch("Mul", ["e", net.weight("alpha", 1)], "p", "aten.mul.Tensor", "%e, %p_alpha")
    net.from_torch("Gemm", ["p", net.weight("w", 4, 3)], "y", "aten.mm.default", "%p, %p_w")
    names = {"b_rope": "rope", "p_alpha": "alpha", "p_w": "w", "p_table": "table"}
    model = net.exported(names, tensor("y", 2, 3), buffers=("b_rope",))
    graph = differentiate(model, TrainingOptions(loss="mse"))
    assert trained(graph) == {"alpha": [1], "w": [4, 3]}, "a parameter of one number is one if the module says so"
    assert "1 parameter of the module (table)" in graph.warnings[0]
    chosen = differentiate(model, TrainingOptions(loss="mse", train=("embedding_1",)))
    assert trained(chosen) == {"embedding_1": [2, 4]}, "the user may choose anything"


def test_the_weights_of_a_cell_are_named_after_its_module() -> None:
    net = Exported()
    net.from_torch("Unsqueeze", ["x", net.whole("axis", 0)], "u", "aten.unsqueeze.default", "%x, 0")
    weights = [net.weight("val_1", 1, 12, 4), net.weight("val_2", 1, 12, 3), net.weight("val_3", 1, 24)]
    first = net.keep("val_0", np.zeros((1, 2, 3), np.float32))
    called = "%u, [%zeros, %zeros], [%p_wi, %p_wh, %p_bi, %p_bh]"
    net.from_torch("LSTM", ["u", *weights, "", first, first], "y", "aten.lstm.input", called, hidden_size=3)
    names = {"p_wi": "net.cell.wi", "p_wh": "net.cell.wh", "p_bi": "net.cell.bi", "p_bh": "net.cell.bh"}
    graph = differentiate(net.exported(names, tensor("y", 1, 1, 2, 3)), TrainingOptions(loss="mse"))
    assert trained(graph) == {"net.cell.W_l0": [1, 12, 4], "net.cell.R_l0": [1, 12, 3], "net.cell.B_l0": [1, 24]}


def test_a_file_that_says_nothing_about_its_module_gets_a_hint() -> None:
    net = Net()
    bias = net.weight("bias", 4)
    net.add("Add", ["x", bias], "h")
    net.add("Add", ["h", bias], "y")
    model = net.model([tensor("x", 2, 4)], [tensor("y", 2, 4)])
    assert differentiate(model, TrainingOptions(loss="mse")).warnings == ()
    model.producer_name = "pytorch"
    assert differentiate(model, TrainingOptions(loss="mse")).warnings[0].startswith("several nodes read the same vector (bias)")


def test_damaged_metadata_is_no_bug() -> None:
    model = two_layers(Exported()).exported(NAMES, tensor("y", 2, 4))
    for node in model.graph.node:
        node.metadata_props[0].value = "%h : call_function[target=torch.ops." + LINEAR + "](args = (%p_a_bias, %p_nothing, %p_a_bias"
    assert "a.bias" in trained(differentiate(model, TrainingOptions(loss="mse")))
