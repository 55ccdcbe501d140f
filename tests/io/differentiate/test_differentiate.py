"""Whole models: gradients against differences in onnxruntime, losses against formulas, and what the training graph says of itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from small_models import Net, cnn, language_model, mlp, tensor
from training_runs import check_by_differences, parameters, run, session

from checkmate.core.errors import InputError
from checkmate.io.onnx.differentiate.training_graph import differentiate
from checkmate.io.onnx.differentiate.training_options import Role, TrainingOptions

Array = np.ndarray[Any, Any]
RANDOM = np.random.default_rng(2)


def test_perceptron_at_any_batch_size() -> None:
    graph = differentiate(mlp(), TrainingOptions(loss="mse"))
    for batch in (1, 5):
        x, targets = RANDOM.normal(size=(batch, 4)), RANDOM.normal(size=(batch, 3))
        check_by_differences(graph, {"x": x.astype(np.float32), "targets": targets.astype(np.float32)})


def test_convolutional_network_with_statistics() -> None:
    graph = differentiate(cnn(pool="AveragePool"), TrainingOptions())
    data = {"image": RANDOM.normal(size=(3, 2, 6, 6)).astype(np.float32), "labels": np.asarray([0, 2, 1])}
    results = check_by_differences(graph, data)
    assert {parameter.name for parameter in graph.parameters if parameter.role is Role.STATISTIC} == {"n1.mean", "n1.var"}
    assert set(graph.updates) == {"n1.mean", "n1.var"}
    values = onnx.reference.ReferenceEvaluator(_cut(cnn(), "c1")).run(["c1"], {"image": data["image"]})[0]
    np.testing.assert_allclose(results[graph.updates["n1.mean"]], 0.1 * values.mean(axis=(0, 2, 3)), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(results[graph.updates["n1.var"]], 0.9 + 0.1 * values.var(axis=(0, 2, 3)), rtol=1e-4)


def _cut(model: onnx.ModelProto, name: str) -> onnx.ModelProto:
    del model.graph.output[:]
    model.graph.output.append(onnx.ValueInfoProto(name=name))
    return model


def test_language_model_with_free_length_and_tied_embedding() -> None:
    graph = differentiate(language_model(), TrainingOptions())
    for batch, length in ((2, 3), (1, 5)):
        data = {"tokens": RANDOM.integers(0, 7, (batch, length)), "labels": RANDOM.integers(0, 7, (batch, length))}
        check_by_differences(graph, data)
    assert "embedding" in graph.gradients
    assert len(graph.gradients) == 6


def test_final_softmax_is_taken_into_the_loss() -> None:
    data = {"image": RANDOM.normal(size=(3, 2, 6, 6)).astype(np.float32), "labels": np.asarray([0, 2, 1])}
    graph = differentiate(cnn(), TrainingOptions(batch_norm="eval", model_outputs=True))
    results = run(graph, {**data, **parameters(graph)})
    probabilities = results["probabilities"][np.arange(3), data["labels"]]
    assert results["loss"] == pytest.approx(-np.log(probabilities).mean(), rel=1e-5)
    assert "Softmax" not in {node.op_type for node in differentiate(cnn(), TrainingOptions()).model.graph.node}


def test_cross_entropy_is_written_out_where_it_stands() -> None:
    """In operators that onnxruntime has: it writes this one out itself otherwise, and runs half the backward pass before it."""
    net = Net()
    net.add("Conv", ["x", net.weight("w", 4, 2, 1, 1)], "scores")
    net.add("SoftmaxCrossEntropyLoss", ["scores", "labels"], "total")
    model = net.model([tensor("x", 3, 2, 5, 5), tensor("labels", 3, 5, 5, element=TensorProto.INT64)], [tensor("total")])
    graph = differentiate(model, TrainingOptions(loss=None, loss_output="total"))
    operators = [node.op_type for node in graph.model.graph.node]
    assert operators[: graph.forward_nodes] == ["Conv", "LogSoftmax", "Unsqueeze", "GatherElements", "ReduceMean", "Neg"]
    assert "SoftmaxCrossEntropyLoss" not in operators
    data = {"x": RANDOM.normal(size=(3, 2, 5, 5)).astype(np.float32), "labels": RANDOM.integers(0, 4, (3, 5, 5))}
    results = check_by_differences(graph, data)
    (expected,) = onnx.reference.ReferenceEvaluator(model).run(["total"], data)
    assert results["total"] == pytest.approx(float(expected), rel=1e-5)


def test_sigmoid_is_taken_into_the_loss() -> None:
    graph = differentiate(mlp(last="Sigmoid"), TrainingOptions(loss="bce-with-logits", model_outputs=True))
    data = {"x": RANDOM.normal(size=(4, 4)).astype(np.float32), "targets": RANDOM.integers(0, 2, (4, 3)).astype(np.float32)}
    results = check_by_differences(graph, data)
    y, t = results["y"], data["targets"]
    assert results["loss"] == pytest.approx(-(t * np.log(y) + (1 - t) * np.log(1 - y)).mean(), rel=1e-5)


def test_an_output_that_is_the_loss_already() -> None:
    net = Net()
    net.add("MatMul", ["x", net.weight("w", 3, 2)], "y")
    net.add("ReduceSumSquare", ["y"], "total", keepdims=0)
    model = net.model([tensor("x", "N", 3)], [tensor("y", "N", 2), tensor("total")])
    graph = differentiate(model, TrainingOptions(loss=None, loss_output="total"))
    assert graph.label_input is None
    check_by_differences(graph, {"x": RANDOM.normal(size=(2, 3)).astype(np.float32)})
    with pytest.raises(InputError, match="one number"):
        differentiate(model, TrainingOptions(loss=None, loss_output="y"))
    with pytest.raises(InputError, match="no such output"):
        differentiate(model, TrainingOptions(loss=None, loss_output="z"))


def test_forward_names_stay_and_gradients_say_whose_they_are() -> None:
    model = mlp()
    graph = differentiate(model, TrainingOptions(loss="mse"))
    made = {name for node in graph.model.graph.node for name in node.output}
    assert {name for node in model.graph.node for name in node.output} <= made
    assert graph.gradients == {name: f"grad/{name}" for name in ("w1", "b1", "w2", "b2")}
    assert {"grad/active", "grad/hidden"} <= made
    assert all(node.name.startswith("grad/") for node in graph.model.graph.node[graph.forward_nodes :])


def test_every_tensor_has_a_shape() -> None:
    graph = differentiate(cnn(), TrainingOptions(optimizer="adamw", batch_size=2))
    typed = {value.name for value in (*graph.model.graph.value_info, *graph.model.graph.output)}
    assert {name for node in graph.model.graph.node for name in node.output if name} <= typed
    for value in graph.model.graph.value_info:
        assert all(dim.HasField("dim_value") for dim in value.type.tensor_type.shape.dim), value.name


def test_stochastic_gradient_descent() -> None:
    options = TrainingOptions(loss="mse", optimizer="sgd", momentum=0.8, weight_decay=0.1)
    graph = differentiate(mlp(), options)
    data = {"x": RANDOM.normal(size=(4, 4)).astype(np.float32), "targets": RANDOM.normal(size=(4, 3)).astype(np.float32)}
    feeds = {**data, **parameters(graph), **graph.state}
    results = run(graph, feeds)
    for name, gradient in graph.gradients.items():
        step = results[gradient] + 0.1 * feeds[name]
        np.testing.assert_allclose(results[graph.updates[name]], feeds[name] - 0.01 * step, rtol=1e-5, atol=1e-7)
        np.testing.assert_allclose(results[graph.updates[f"state/{name}/momentum"]], step, rtol=1e-5, atol=1e-7)


def test_adam_with_decoupled_decay_over_two_steps() -> None:
    options = TrainingOptions(loss="mse", optimizer="adamw", weight_decay=0.1)
    graph = differentiate(mlp(), options)
    data = {"x": RANDOM.normal(size=(4, 4)).astype(np.float32), "targets": RANDOM.normal(size=(4, 3)).astype(np.float32)}
    feeds = {**data, **parameters(graph), **graph.state}
    first = second = np.zeros((6, 4))
    value = feeds["w1"].astype(np.float64)
    for step in (1, 2):
        results = run(graph, feeds)
        gradient = results[graph.gradients["w1"]].astype(np.float64)
        first, second = 0.9 * first + 0.1 * gradient, 0.999 * second + 0.001 * gradient**2
        move = first / (1 - 0.9**step) / (np.sqrt(second / (1 - 0.999**step)) + 1e-8)
        value = value - 0.001 * (move + 0.1 * value)
        feeds |= {name: results[output] for name, output in graph.updates.items()}
        np.testing.assert_allclose(feeds["w1"], value, rtol=1e-4, atol=1e-6)


def test_a_loop_on_the_graph_learns() -> None:
    random = np.random.default_rng(5)
    graph = differentiate(cnn(), TrainingOptions(optimizer="adamw", gradient_outputs=False))
    assert not any(value.name.startswith("grad/") for value in graph.model.graph.output)
    runner = session(graph.model)
    names = [value.name for value in graph.model.graph.output]
    feeds = {"image": random.normal(size=(8, 2, 6, 6)).astype(np.float32), "labels": random.integers(0, 3, 8)}
    feeds |= {**parameters(graph), **graph.state, "learning_rate": np.asarray(0.05, np.float32)}
    losses = []
    for _ in range(100):
        results = dict(zip(names, runner.run(names, feeds), strict=True))
        losses.append(float(results["loss"]))
        feeds |= {name: results[output] for name, output in graph.updates.items()}
    assert losses[-1] < 0.3 * losses[0]


def test_updates_come_after_the_last_read() -> None:
    graph = differentiate(language_model(), TrainingOptions(optimizer="sgd"))
    nodes = graph.model.graph.node
    for name, update in graph.updates.items():
        maker = next(index for index, node in enumerate(nodes) if update in node.output)
        assert all(index <= maker for index, node in enumerate(nodes) if name in node.input), name


def test_weight_gradients_come_before_the_data_gradient_below() -> None:
    """What a layer read can be freed before the gradient of the layer below takes its place."""
    graph = differentiate(mlp(), TrainingOptions(loss="mse"))
    made = [name for node in graph.model.graph.node for name in node.output]
    assert made.index("grad/w2") < made.index("grad/active") < made.index("grad/hidden") < made.index("grad/w1")


def test_choosing_what_to_train() -> None:
    graph = differentiate(mlp(), TrainingOptions(loss="mse", train=("w*",), freeze=("w1",)))
    assert set(graph.gradients) == {"w2"}
    roles = {parameter.name: parameter.role for parameter in graph.parameters}
    assert roles == {"w1": Role.FROZEN, "b1": Role.FROZEN, "w2": Role.TRAINED, "b2": Role.FROZEN}
    with pytest.raises(InputError, match=r"--freeze: no parameter matches 'w9'; did you mean 'w\d'"):
        differentiate(mlp(), TrainingOptions(loss="mse", freeze=("w9",)))
    with pytest.raises(InputError, match="no parameter to train"):
        differentiate(mlp(), TrainingOptions(loss="mse", freeze=("*",)))


def test_parameters_may_stay_in_the_model() -> None:
    graph = differentiate(mlp(), TrainingOptions(loss="mse", keep_initializers=True))
    assert [value.name for value in graph.model.graph.input] == ["x", "targets"]
    data = {"x": np.ones((2, 4), np.float32), "targets": np.zeros((2, 3), np.float32)}
    fed = differentiate(mlp(), TrainingOptions(loss="mse"))
    np.testing.assert_array_equal(run(graph, data)["grad/w1"], run(fed, {**data, **parameters(fed)})["grad/w1"])


def test_weights_in_all_their_hiding_places() -> None:
    """ConstantOfShape as in light models, a Constant node as Paddle writes, and an initializer listed as an input as in old files."""
    net = Net(9)
    net.add("ConstantOfShape", [net.whole("shape", 4, 3)], "w1", value=numpy_helper.from_array(np.asarray([0.5], np.float32)))
    net.add("Constant", [], "w2", value=numpy_helper.from_array(np.ones((3, 2), np.float32)))
    net.add("MatMul", ["x", "w1"], "a")
    net.add("MatMul", ["a", "w2"], "b")
    net.add("Add", ["b", net.weight("bias", 2)], "y")
    model = net.model([tensor("x", 2, 4), tensor("bias", 2)], [tensor("y", 2, 2)], ir_version=3)
    for keep in (False, True):
        graph = differentiate(model, TrainingOptions(loss="mse", keep_initializers=keep))
        assert set(graph.gradients) == {"w1", "w2", "bias"}
        session(graph.model)
    assert graph.data_inputs == ("x",)
    assert {parameter.name: parameter.array().shape for parameter in graph.parameters} == {"w1": (4, 3), "w2": (3, 2), "bias": (2,)}


def test_masks_and_single_numbers_are_no_weights() -> None:
    net = Net()
    net.add("MatMul", ["x", net.weight("w", 3, 2)], "y")
    net.add("Add", ["y", net.keep("mask", np.asarray([0, -np.inf], np.float32))], "masked")
    net.add("Mul", ["masked", net.keep("two", np.asarray(2, np.float32))], "z")
    graph = differentiate(net.model([tensor("x", 2, 3)], [tensor("z", 2, 2)]), TrainingOptions())
    assert set(graph.gradients) == {"w"}


def test_parameters_without_a_gradient_are_listed() -> None:
    net = Net()
    net.add("MatMul", ["x", net.weight("w", 3, 2)], "y")
    net.add("MatMul", ["x", net.weight("unused", 3, 2)], "z")
    net.add("Floor", [net.weight("stepped", 2)], "floor")
    net.add("Add", ["y", "floor"], "sum")
    graph = differentiate(net.model([tensor("x", 2, 3)], [tensor("sum", 2, 2), tensor("z", 2, 2)]), TrainingOptions(loss="mse"))
    assert set(graph.gradients) == {"w"}
    assert "does not depend on them" in graph.without_gradient["unused"]
    assert "no gradient" in graph.without_gradient["stepped"]


@pytest.mark.parametrize(
    ("operator", "domain", "advice"), [("Sideways", "mine", "mine.Sideways"), ("Det", "", "Det"), ("Hardmax", "", "Hardmax")]
)
def test_an_unknown_operator_on_the_way_is_refused(operator: str, domain: str, advice: str) -> None:
    net = Net()
    net.add("MatMul", ["x", net.weight("w", 3, 3)], "y")
    net.add(operator, ["y"], "z", domain=domain)
    model = net.model([tensor("x", 3, 3)], [tensor("z", 3, 3) if operator != "Det" else tensor("z")])
    if domain:
        model.opset_import.append(helper.make_opsetid(domain, 1))
        model.graph.value_info.append(tensor("z", 3, 3))
    net.add("ReduceSum", ["z"], "total", keepdims=0)
    model.graph.node.append(net.nodes[-1])
    model.graph.output.append(tensor("total"))
    with pytest.raises(InputError, match=rf"operator {advice} of node 'z_node'.*--freeze"):
        differentiate(model, TrainingOptions(loss=None, loss_output="total"))


def test_an_unknown_operator_beside_the_way_is_none_of_our_business() -> None:
    net = Net()
    net.add("Hardmax", ["x"], "z")
    net.add("MatMul", ["z", net.weight("w", 3, 3)], "y")
    assert set(differentiate(net.model([tensor("x", 3, 3)], [tensor("y", 3, 3)]), TrainingOptions(loss="mse")).gradients) == {"w"}


@pytest.mark.parametrize("dtype", [np.float16, np.float64])
def test_other_element_types(dtype: Any) -> None:
    graph = differentiate(mlp(dtype), TrainingOptions(optimizer="adamw"))
    feeds = {"x": RANDOM.normal(size=(4, 4)).astype(dtype), "labels": RANDOM.integers(0, 3, 4), **parameters(graph), **graph.state}
    results = run(graph, feeds)
    assert results["grad/w1"].dtype == results["updated/w1"].dtype == dtype
    precise = differentiate(mlp(np.float64), TrainingOptions())
    exact = run(precise, {**{name: feeds[name].astype(np.float64) for name in (*parameters(precise), "x")}, "labels": feeds["labels"]})
    np.testing.assert_allclose(results["grad/w1"], exact["grad/w1"], atol=2e-3 if dtype == np.float16 else 1e-12)


def test_bfloat16_is_typed_right() -> None:
    model = mlp()
    for stored in model.graph.initializer:
        numbers = numpy_helper.to_array(stored).astype(helper.tensor_dtype_to_np_dtype(TensorProto.BFLOAT16))
        stored.CopyFrom(numpy_helper.from_array(numbers, stored.name))
    for value in (*model.graph.input, *model.graph.output):
        value.type.tensor_type.elem_type = TensorProto.BFLOAT16
    graph = differentiate(model, TrainingOptions(optimizer="sgd"))
    onnx.checker.check_model(graph.model, full_check=True)
    types = {value.name: value.type.tensor_type.elem_type for value in graph.model.graph.output}
    assert types["grad/w1"] == types["updated/w1"] == TensorProto.BFLOAT16
    assert types["loss"] == TensorProto.FLOAT
