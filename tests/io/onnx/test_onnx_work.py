"""FLOPs and bytes moved, against numbers worked out by hand."""

from __future__ import annotations

import pytest
from onnx import defs, parser

from checkmate.core.model.graph import Work
from checkmate.io.onnx.read.reader import read_onnx
from checkmate.io.onnx.read.work import FORMULAS


def work(inputs: str, node: str, opset: int = 18, stored: str = "") -> Work:
    """Of the first operation, in a model with these inputs."""
    text = f'<ir_version: 10, opset_import: ["" : {opset}]> g ({inputs}) => () {"<" + stored + ">" if stored else ""} {{ {node} }}'
    proto = parser.parse_model(text)
    proto.graph.output.add(name=next(name for name in proto.graph.node[0].output if name))
    return read_onnx(proto.SerializeToString()).graph.operations[0].work


IMAGE = "float[2,6,10,10] x, "


@pytest.mark.parametrize(
    ("inputs", "node", "flops"),
    [
        (IMAGE + "float[8,6,3,3] w", "y = Conv(x, w)", 2 * (2 * 8 * 8 * 8) * (6 * 9)),
        (IMAGE + "float[8,6,3,3] w, float[8] b", "y = Conv<pads = [1,1,1,1]>(x, w, b)", 2 * (2 * 8 * 100) * (6 * 9) + 2 * 8 * 100),
        (IMAGE + "float[6,1,3,3] w", "y = Conv<group = 6, strides = [2,2]>(x, w)", 2 * (2 * 6 * 4 * 4) * 9),
        (IMAGE + "float[6,5,2,2] w, float[5] b", "y = ConvTranspose<strides = [2,2]>(x, w, b)", 2 * (2 * 6 * 100) * (5 * 4) + 2 * 5 * 400),
        ("uint8[2,6,10,10] x, uint8[8,6,3,3] w", "y = ConvInteger(x, w)", 2 * (2 * 8 * 64) * 54),
        ("float[4,7] a, float[7,5] b", "y = MatMul(a, b)", 2 * 4 * 7 * 5),
        ("float[3,1,4,7] a, float[2,7,5] b", "y = MatMul(a, b)", 2 * 6 * 4 * 7 * 5),
        ("float[7] a, float[7] b", "y = MatMul(a, b)", 14),
        ("int8[4,7] a, int8[7,5] b", "y = MatMulInteger(a, b)", 2 * 4 * 7 * 5),
        ("float[4,7] a, float[7,5] b", "y = Gemm(a, b)", 2 * 4 * 7 * 5),
        ("float[7,4] a, float[5,7] b, float[5] c", "y = Gemm<transA = 1, transB = 1>(a, b, c)", 2 * 4 * 7 * 5 + 20),
        ("float[2,3,4] a, float[2,4,5] b", 'y = Einsum<equation = "bij, bjk -> bik">(a, b)', 2 * 2 * 3 * 4 * 5),
        ("float[3,4] a", 'y = Einsum<equation = "ij->ji">(a)', 12),
        ("float[2,3,4] a, float[2,4,5] b", 'y = Einsum<equation = "...ij,...jk->...ik">(a, b)', None),
        (IMAGE[:-2], "y = MaxPool<kernel_shape = [3,2]>(x)", 2 * 6 * 8 * 9 * 6),
        (IMAGE[:-2], "y = AveragePool<kernel_shape = [2,2], strides = [2,2]>(x)", 2 * 6 * 25 * 4),
        (IMAGE[:-2], "y = GlobalAveragePool(x)", 1200),
        (IMAGE + "float[6] s", "y = BatchNormalization(x, s, s, s, s)", 4800),
        (IMAGE[:-2], "y = LRN<size = 5>(x)", 1200 * 18),
        ("float[4,6] x, float[6] s", "y = LayerNormalization(x, s, s)", 24 * 8),
        ("float[4,6] x", "y = Softmax(x)", 120),
        ("float[4,6] x", "y = LogSoftmax(x)", 144),
        ("float[4,6] x", "y = Relu(x)", 24),
        ("float[4,6] x, float[6] b", "y = Add(x, b)", 24),
        ("float[4,1] x, float[6] b", "y = Add(x, b)", 24),
        ("float[4,6] x", "y = Sum(x, x, x)", 48),
        ("float[4,6] x", "y = Tanh(x)", 144),
        ("float[4,6] x", "y = ReduceMean(x)", 24),
        ("float[4,6] x", "y = ArgMax(x)", 24),
        ("float[5,2,8] x, float[1,40,8] w, float[1,40,10] r", "y = LSTM<hidden_size = 10>(x, w, r)", 2 * 10 * (320 + 400)),
        (
            "float[5,2,8] x, float[2,30,8] w, float[2,30,10] r",
            'y = GRU<hidden_size = 10, direction = "bidirectional">(x, w, r)',
            2 * 10 * 1080,
        ),
        ("float[4,6] x", "y = Transpose(x)", None),
        ("float[4,6] x", "y = Cast<to = 10>(x)", None),
    ],
)
def test_flops(inputs: str, node: str, flops: float | None) -> None:
    assert work(inputs, node).flops == flops


@pytest.mark.parametrize(
    ("inputs", "attributes"),
    [
        ("float[2,3,4,8] q, float[2,3,6,8] k, float[2,3,6,5] v", ""),
        ("float[2,4,24] q, float[2,6,24] k, float[2,6,15] v", "<q_num_heads = 3, kv_num_heads = 3>"),
    ],
)
def test_attention_counts_the_same_with_heads_apart_or_folded(inputs: str, attributes: str) -> None:
    assert work(inputs, f"y = Attention{attributes}(q, k, v)", 23).flops == 2 * 3 * 4 * 6 * (2 * 8 + 2 * 5 + 5)


def test_resize_by_mode() -> None:
    stored = "float[4] s = {1, 1, 2, 2}"
    for mode, factor in (("nearest", 1), ("linear", 8), ("cubic", 32)):
        assert work("float[1,1,4,4] x", f'y = Resize<mode = "{mode}">(x, , s)', stored=stored).flops == 64 * factor


def test_top_k_grows_with_the_logarithm_of_k() -> None:
    assert work("float[4,64] x", "y, i = TopK(x, k)", stored="int64[1] k = {8}").flops == 256 * 3


@pytest.mark.parametrize(
    ("inputs", "node", "moved"),
    [
        ("float[4,6] x, float[6] b", "y = Add(x, b)", 96 + 24 + 96),
        ("float[4,6] x", "y = Mul(x, x)", 96 + 96),
        ("float[4,6] x", "y = Shape(x)", 16),
        ("float[4,6] x", "y = Size(x)", 8),
        ("float[30000,64] table, int64[10] rows", "y = Gather(table, rows)", 2560 + 80 + 2560),
        ("float[4,6] x", "y, mask = Dropout(x)", 96 + 96 + 24),
        ("float[4,6] x", "y = Dropout(x)", 96 + 96),
    ],
)
def test_bytes_moved(inputs: str, node: str, moved: int) -> None:
    assert work(inputs, node).moved_bytes == moved


def test_every_formula_is_for_an_operator_that_exists() -> None:
    known = {schema.name for schema in defs.get_all_schemas_with_history() if not schema.domain}
    newer_than_the_oldest_onnx = {"RMSNormalization", "RotaryEmbedding", "Attention", "Swish", "SwiGLU"}
    assert set(FORMULAS) - known <= newer_than_the_oldest_onnx
