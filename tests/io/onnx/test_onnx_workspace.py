"""The formulas for workspace say what onnxruntime says of its own kernels."""

from __future__ import annotations

from pathlib import Path

import pytest
from exactness import random_feeds
from onnx import parser

import checkmate
from checkmate.io.onnx.read.reader import read_onnx
from checkmate.io.onnx.read.workspace import FORMULAS
from checkmate.io.onnxruntime.trace import parse_workspaces

IMAGE = "float[2,4,12,12] x"
CASES = {
    "Where": "float[8,6] x, float[8,6] y => [o] c = Less(x, y) [n] z = Where(c, x, y)",
    "Where, one choice small": "float[8,6] x, float[6] y => [o] c = Less(x, y) [n] z = Where(c, x, y)",
    "Softmax": "float[8,6] x => [n] z = Softmax(x)",
    "Softmax along the first axis": "float[8,6] x => [n] z = Softmax<axis = 0>(x)",
    "Softmax along the last axis by its number": "float[8,6] x => [n] z = Softmax<axis = 1>(x)",
    "LogSoftmax in the middle": "double[4,8,6] x => [n] z = LogSoftmax<axis = 1>(x)",
    "Max of two": "float[8,6] x, float[6] y => [n] z = Max(x, y)",
    "Max of three": "float[8,6] x, float[6] y => [n] z = Max(x, y, y)",
    "Sum of four": "float[8,6] x, float[6] y => [n] z = Sum(x, y, y, x)",
    "Mean": "float[8,6] x, float[6] y => [n] z = Mean(x, y, x)",
    "Min": "float[8,6] x, float[6] y => [n] z = Min(x, y, x)",
    "Conv": f"{IMAGE}, float[6,4,3,3] w => [n] z = Conv<pads = [1,1,1,1]>(x, w)",
    "Conv of points": f"{IMAGE}, float[6,4,1,1] w => [n] z = Conv(x, w)",
    "Conv of every second point": f"{IMAGE}, float[6,4,1,1] w => [n] z = Conv<strides = [2,2]>(x, w)",
    "Conv of a small image": "float[2,4,2,2] x, float[32,4,3,3] w => [n] z = Conv<pads = [1,1,1,1]>(x, w)",
    "Conv with as many filters as positions": "float[2,4,2,2] x, float[4,4,3,3] w => [n] z = Conv<pads = [1,1,1,1]>(x, w)",
    "Conv in groups of fewer filters": "float[2,8,3,3] x, float[12,4,3,3] w => [n] z = Conv<pads = [1,1,1,1], group = 2>(x, w)",
    "Conv without an image": "float[0,4,12,12] x, float[6,4,3,3] w => [n] z = Conv<pads = [1,1,1,1]>(x, w)",
    "Conv in groups": f"{IMAGE}, float[4,1,3,3] w => [n] z = Conv<pads = [1,1,1,1], group = 4>(x, w)",
    "Conv of one image": "float[1,4,40,40] x, float[6,4,3,3] w => [n] z = Conv<pads = [1,1,1,1]>(x, w)",
    "Conv of one small image": "float[1,2,6,6] x, float[3,2,3,3] w => [n] z = Conv<pads = [1,1,1,1]>(x, w)",
    "Conv of one image with little to do": "float[1,1,9,9] x, float[2,1,3,3] w => [n] z = Conv(x, w)",
    "Conv in one image of a few columns": "float[1,32,5,7] x, float[8,32,3,3] w => [n] z = Conv<pads = [1,1,1,1]>(x, w)",
    "Conv of one image in columns for two threads": "float[1,32,4,5] x, float[16,32,3,3] w => [n] z = Conv<pads = [1,1,1,1]>(x, w)",
    "Conv of one image in columns for four threads": "float[1,32,6,8] x, float[16,32,3,3] w => [n] z = Conv<pads = [1,1,1,1]>(x, w)",
    "Conv of points at a border": f"{IMAGE}, float[6,4,1,1] w => [n] z = Conv<pads = [1,0,0,0]>(x, w)",
    "Conv over the whole width": "float[2,1,12,12] x, float[6,1,3,12] w => [n] z = Conv(x, w)",
    "Conv over the whole height": "float[2,1,12,12] x, float[6,1,12,1] w => [n] z = Conv(x, w)",
    "Conv over the whole width, dilated": "float[2,1,23,12] x, float[6,1,3,12] w => [n] z = Conv<dilations = [2,1]>(x, w)",
    "Conv over a line": "float[2,4,30] x, float[6,4,3] w => [n] z = Conv(x, w)",
    "Conv over a volume": "float[2,4,6,6,6] x, float[6,4,3,3,3] w => [n] z = Conv(x, w)",
    "Conv with the same size": f'{IMAGE}, float[6,4,3,3] w => [n] z = Conv<auto_pad = "SAME_UPPER">(x, w)',
    "Conv of points with the same size": f'{IMAGE}, float[6,4,1,1] w => [n] z = Conv<auto_pad = "SAME_UPPER">(x, w)',
    "Conv where it is valid": f'{IMAGE}, float[6,4,1,1] w => [n] z = Conv<auto_pad = "VALID">(x, w)',
    "BatchNormalization": f"{IMAGE}, float[4] s, float[4] b, float[4] m, float[4] v => [n] z = BatchNormalization(x, s, b, m, v)",
    "BatchNormalization in training": (
        f"{IMAGE}, float[4] s, float[4] b, float[4] m, float[4] v => [n] z, m1, v1 = BatchNormalization<training_mode = 1>(x, s, b, m, v)"
    ),
    "ConvTranspose": f"{IMAGE}, float[4,6,2,2] w => [n] z = ConvTranspose<strides = [2,2]>(x, w)",
    "Attention": "float[2,3,8,4] x, float[2,3,6,4] k, float[2,3,6,4] v => [n] z = Attention(x, k, v)",
    "MatMul": "float[8,6] x, float[6,8] y => [n] z = MatMul(x, y)",
    "Exp": "float[8,6] x => [n] z = Exp(x)",
}


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("name", CASES)
def test_onnxruntime_takes_as_much(name: str, threads: int, tmp_path: Path) -> None:
    inputs, body = CASES[name].split(" => ")
    kind = "double" if "double" in inputs else "float"
    opset = 23 if name == "Attention" else 17
    proto = parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}]>\ng ({inputs}) => ({kind}[?] z) {{ {body} }}')
    proto.graph.output[0].type.tensor_type.ClearField("shape")
    model = read_onnx(proto.SerializeToString(), name="test", threads=threads)
    statistics = tmp_path / "statistics.csv"
    session = checkmate.session(
        proto.SerializeToString(), threads=threads, config={"session.collect_node_memory_stats_to_file": str(statistics)}
    )
    session.run(None, random_feeds(model))
    del session
    measured = parse_workspaces(statistics.read_text())
    assert {operation.name: operation.workspace for operation in model.graph.operations} == measured


def test_every_formula_is_tried() -> None:
    assert [kind for kind in FORMULAS if not any(f"= {kind}" in case for case in CASES.values())] == []
