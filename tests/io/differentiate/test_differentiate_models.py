"""Models as they come: any opset from 7 on, functions, Dropout, fixed batches, and two models of the onnx wheel."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from small_models import Net, cnn, language_model, mlp, tensor
from training_runs import check_by_differences, parameters, run, session

from checkmate.core.errors import InputError
from checkmate.io.onnx.differentiate.training_graph import differentiate
from checkmate.io.onnx.differentiate.training_options import TrainingOptions

RANDOM = np.random.default_rng(4)
LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"


@pytest.mark.parametrize("opset", [7, 8, 9, 10, 11, 12, 13, 15, 17, 18, 20, 21, 22, 23])
def test_convolutional_network_of_any_opset(opset: int) -> None:
    graph = differentiate(cnn(opset), TrainingOptions(batch_size=2))
    assert {entry.version for entry in graph.model.opset_import} == {max(opset, 18)}
    feeds = {"image": np.random.default_rng(8).normal(size=(2, 2, 6, 6)).astype(np.float32), "labels": np.asarray([0, 1])}
    expected = run(differentiate(cnn(18), TrainingOptions(batch_size=2)), {**feeds, **parameters(graph)})
    for name, result in run(graph, {**feeds, **parameters(graph)}).items():
        np.testing.assert_allclose(result, expected[name], rtol=1e-4, atol=1e-6)


def test_language_model_of_a_newer_opset() -> None:
    graph = differentiate(language_model(20), TrainingOptions(batch_size=2))
    check_by_differences(graph, {"tokens": RANDOM.integers(0, 7, (2, 4)), "labels": RANDOM.integers(0, 7, (2, 4))})


def _old(opset: int) -> onnx.ModelProto:
    """Settings as attributes, the way they were before they became inputs."""
    net = Net(opset)
    net.add("MatMul", ["x", net.weight("w", 4, 6)], "a")
    net.add("Clip", ["a"], "b", min=-9.0, max=9.0)
    net.add("Unsqueeze", ["b"], "c", axes=[1, 2])
    net.add("Pad", ["c"], "d", pads=[0, 0, 1, 0, 0, 0, 0, 1])
    if opset < 9:
        net.add("Upsample", ["d"], "e", scales=[1.0, 1.0, 2.0, 1.0], mode="nearest")
    else:
        net.add("Upsample", ["d", net.keep("scales", np.asarray([1, 1, 2, 1], np.float32))], "e", mode="nearest")
    net.add("Slice", ["e"], "f", starts=[0, 1], ends=[4, 99], axes=[2, 3])
    net.nodes.append(helper.make_node("Split", ["f"], ["g", "h"], name="split", axis=3, split=[2, 4]))
    net.add("ReduceSum", ["h"], "i", axes=[3], keepdims=1)
    net.add("Mul", ["g", "i"], "j")
    net.add("Dropout", ["j"], "k", ratio=0.0)
    net.add("ReduceMean", ["k"], "l", axes=[1, 2], keepdims=0)
    net.add("Squeeze", ["l"], "m")
    net.add("Softmax", ["m"], "y", axis=1)
    return net.model([tensor("x", 3, 4)], [tensor("y", 3, 2)], ir_version=4)


@pytest.mark.parametrize("opset", [7, 9])
def test_settings_that_used_to_be_attributes(opset: int) -> None:
    graph = differentiate(_old(opset), TrainingOptions(dropout="eval"))
    check_by_differences(graph, {"x": RANDOM.normal(size=(3, 4)).astype(np.float32), "labels": np.asarray([0, 1, 1])})


def test_softmax_over_several_axes_of_old_opsets_is_refused() -> None:
    net = Net(9)
    net.add("MatMul", ["x", net.weight("w", 4, 6)], "a")
    net.add("Softmax", ["a"], "y", axis=1)
    with pytest.raises(InputError, match="several axes at once"):
        differentiate(net.model([tensor("x", 2, 3, 4)], [tensor("y", 2, 3, 6)]), TrainingOptions(loss="mse"))


def test_dropout_draws_one_mask_for_both_directions() -> None:
    net = Net(11)
    net.add("MatMul", ["x", net.weight("w", 4, 50)], "a")
    net.add("Dropout", ["a"], "y", ratio=0.4)
    graph = differentiate(net.model([tensor("x", 1, 4)], [tensor("y", 1, 50)]), TrainingOptions(loss="mse", model_outputs=True, seed=3))
    dropouts = [node for node in graph.model.graph.node if node.op_type == "Dropout"]
    assert [helper.get_attribute_value(attribute) for attribute in dropouts[0].attribute if attribute.name == "seed"] == [3]
    feeds = {"x": np.ones((1, 4), np.float32), "targets": np.ones((1, 50), np.float32), **parameters(graph)}
    results = run(graph, feeds)
    kept = results["y"] != 0
    assert 5 < kept.sum() < 45
    np.testing.assert_array_equal((results["grad/w"] != 0).all(axis=0), kept[0])
    np.testing.assert_allclose(results["grad/w"][0], (2 * (results["y"] - 1) / 50 / 0.6 * kept)[0], rtol=1e-4)


def test_functions_are_inlined() -> None:
    body = [helper.make_node("MatMul", ["x", "w"], ["y"]), helper.make_node("Tanh", ["y"], ["z"])]
    function = helper.make_function("mine", "Layer", ["x", "w"], ["z"], body, [helper.make_opsetid("", 18)])
    net = Net()
    net.add("Layer", ["x", net.weight("w1", 4, 5)], "a", domain="mine")
    net.add("Layer", ["a", net.weight("w2", 5, 2)], "y", domain="mine")
    model = net.model([tensor("x", "N", 4)], [tensor("y", "N", 2)])
    model.functions.append(function)
    model.opset_import.append(helper.make_opsetid("mine", 1))
    graph = differentiate(model, TrainingOptions(loss="mse"))
    check_by_differences(
        graph, {"x": RANDOM.normal(size=(3, 4)).astype(np.float32), "targets": RANDOM.normal(size=(3, 2)).astype(np.float32)}
    )


def test_a_batch_fixed_in_the_file_can_be_another() -> None:
    net = Net()
    net.add("Conv", ["x", net.weight("c", 2, 1, 2, 2)], "a")
    net.add("Reshape", ["a", net.whole("flat", 1, 8)], "b")
    net.add("MatMul", ["b", net.weight("w", 8, 3)], "y")
    model = net.model([tensor("x", 1, 1, 3, 3)], [tensor("y", 1, 3)])
    graph = differentiate(model, TrainingOptions(batch_size=4))
    check_by_differences(graph, {"x": RANDOM.normal(size=(4, 1, 3, 3)).astype(np.float32), "labels": np.asarray([0, 1, 2, 0])})


def test_only_what_flows_with_the_batch_is_given_another() -> None:
    """A target of -1 leaves no room for a mistake: a vector that becomes one row stays one row."""
    net = Net()
    net.add("MatMul", ["x", net.weight("w", 4, 6)], "a")
    net.add("Constant", [], "flat", value=numpy_helper.from_array(np.asarray([1, -1])))
    net.add("Reshape", ["a", "flat"], "b")
    net.add("ReduceMax", ["b", net.whole("axes", 0)], "top", keepdims=0)
    net.add("Reshape", ["top", net.whole("row", 1, -1)], "c")
    net.add("Add", ["b", "c"], "y")
    graph = differentiate(net.model([tensor("x", 1, 4)], [tensor("y", 1, 6)]), TrainingOptions(loss="mse", batch_size=3))
    shapes = {value.name: [dim.dim_value for dim in value.type.tensor_type.shape.dim] for value in graph.model.graph.value_info}
    assert (shapes["b"], shapes["c"], shapes["y"]) == ([3, 6], [1, 6], [3, 6])


def test_a_free_batch_can_be_fixed() -> None:
    graph = differentiate(mlp(), TrainingOptions(batch_size=5))
    assert graph.model.graph.input[0].type.tensor_type.shape.dim[0].dim_value == 5
    assert not any(node.op_type == "Shape" for node in graph.model.graph.node)


def test_class_scores_may_lie_along_any_axis() -> None:
    net = Net()
    net.add("Conv", ["x", net.weight("c", 3, 2, 1, 1)], "y")
    model = net.model([tensor("x", 2, 2, 2, 3)], [tensor("y", 2, 3, 2, 3)])
    x = RANDOM.normal(size=(2, 2, 2, 3)).astype(np.float32)
    for axis, shape in ((None, (2, 2, 3)), (1, (2, 2, 3)), (3, (2, 3, 2))):
        graph = differentiate(model, TrainingOptions(class_axis=axis))
        check_by_differences(graph, {"x": x, "labels": RANDOM.integers(0, 3, shape)})
    with pytest.raises(InputError, match="--class-axis"):
        differentiate(model, TrainingOptions(class_axis=0))


def test_the_model_given_is_not_changed() -> None:
    model = cnn(9)
    before = model.SerializeToString(deterministic=True)
    first = differentiate(model, TrainingOptions(optimizer="adamw"))
    second = differentiate(model, TrainingOptions(optimizer="adamw"))
    assert model.SerializeToString(deterministic=True) == before
    assert first.model.SerializeToString(deterministic=True) == second.model.SerializeToString(deterministic=True)


@pytest.mark.parametrize("name", ["squeezenet", "shufflenet"])
def test_a_model_of_the_onnx_wheel(name: str) -> None:
    model = onnx.load(str(LIGHT / f"light_{name}.onnx"))
    graph = differentiate(model, TrainingOptions(batch_size=2))
    assert not graph.without_gradient
    feeds: dict[str, Any] = {parameter.name: _drawn(parameter.shape) for parameter in graph.parameters}
    for value in graph.model.graph.input:
        shape = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        if value.name == graph.label_input:
            feeds[value.name] = RANDOM.integers(0, 1000, shape)
        elif value.name in graph.data_inputs:
            feeds[value.name] = RANDOM.normal(size=shape).astype(np.float32)
    assert all(np.isfinite(result).all() for result in session(graph.model).run(None, feeds))


def _drawn(shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    if len(shape) < 2:
        return np.ones(shape, np.float32)
    return (RANDOM.normal(size=shape) * np.sqrt(2 / np.prod(shape[1:]))).astype(np.float32)


def test_weights_outside_the_file_stay_there() -> None:
    """A tensor that lies outside the file stays a reference."""
    net = Net()
    net.add("MatMul", ["x", "w"], "y")
    far = onnx.TensorProto(name="w", data_type=1, dims=[3, 2], data_location=onnx.TensorProto.EXTERNAL)
    far.external_data.add(key="location", value="weights.bin")
    net.stored.append(far)
    graph = differentiate(net.model([tensor("x", 2, 3)], [tensor("y", 2, 2)]), TrainingOptions(loss="mse", keep_initializers=True))
    kept = {stored.name: stored for stored in graph.model.graph.initializer}["w"]
    assert kept.data_location == onnx.TensorProto.EXTERNAL
