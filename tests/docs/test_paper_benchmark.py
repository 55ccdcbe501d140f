"""What benchmarks/paper.py stands on: networks that are the published ones, and the two formulations whose relaxations it compares."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path

import onnx
import pytest
from oracles import staged_optimum
from places import BENCHMARKS

sys.path.append(str(BENCHMARKS))

from integrality import chain, measure
from paper import named
from paper_networks import NETWORKS


def weights(model: onnx.ModelProto) -> int:
    """Numbers in all weights, running statistics included."""
    shapes = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    return sum(math.prod(int(size) for size in shapes[node.input[0]]) for node in model.graph.node if node.op_type == "ConstantOfShape")


@pytest.mark.parametrize(
    ("name", "published"),
    [("VGG-19", 143_667_240), ("ResNet-50", 25_557_032 + 53_120), ("MobileNet", 4_231_976 + 21_888)],
)
def test_networks_have_as_many_parameters_as_published(name: str, published: int) -> None:
    """Beside them, the running statistics of batch normalization."""
    model = NETWORKS[name]()
    onnx.checker.check_model(model, full_check=True)
    assert weights(model) == published
    (shape,) = [[dim.dim_param or dim.dim_value for dim in out.type.tensor_type.shape.dim] for out in model.graph.output]
    assert shape == ["batch", 1000]


def test_unet_labels_every_pixel() -> None:
    (output,) = NETWORKS["U-Net"]().graph.output
    assert [dim.dim_param or dim.dim_value for dim in output.type.tensor_type.shape.dim] == ["batch", 10, 416, 608]


def test_frontier_advancing_stages_tighten_the_relaxation_and_keep_the_optimum() -> None:
    free, partitioned = measure(layers=3, budget=3)
    assert free.optimum == partitioned.optimum == pytest.approx(staged_optimum(chain(3, 3)))
    assert free.ratio > 3 * partitioned.ratio > 3


def test_networks_are_named_as_anyone_would() -> None:
    assert named("vgg19, U-NET,Mobile-Net,unet", NETWORKS, "network") == ["VGG-19", "U-Net", "MobileNet"]


@pytest.mark.parametrize(("option", "kind", "known"), [("--networks", "network", "VGG-19"), ("--tables", "table", "figure5")])
def test_an_unknown_name_is_one_line_that_names_the_known_ones(option: str, kind: str, known: str, tmp_path: Path) -> None:
    script = BENCHMARKS / "paper.py"
    command = [sys.executable, str(script), "--graphs", str(tmp_path), option, "alexnet"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert f"unknown {kind} 'alexnet'" in done.stderr
    assert known in done.stderr
