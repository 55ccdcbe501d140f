"""Outputs that nothing reads: which are left out, and which need a reader so that they are freed."""

from __future__ import annotations

import pytest
from onnx import NodeProto, helper

from checkmate.io.onnx.compile.unread import blanked, unread_outputs


def normalization(*, training: int) -> NodeProto:
    return helper.make_node("BatchNormalization", list("xsbmv"), ["y", "mean", "variance"], training_mode=training)


def test_statistics_written_over_their_inputs_need_no_reader() -> None:
    assert unread_outputs(normalization(training=1), {"y"}) == []
    assert unread_outputs(normalization(training=1), set()) == ["y"]
    assert unread_outputs(normalization(training=0), {"y"}) == ["mean", "variance"]


def test_views_need_no_reader_unless_they_are_copies() -> None:
    assert unread_outputs(helper.make_node("Identity", ["x"], ["y"]), set()) == []


@pytest.mark.parametrize(
    ("operator", "outputs", "read", "left"),
    [
        ("Dropout", "y mask", "y", "y"),
        ("Dropout", "y mask", "mask", "y mask"),
        ("Dropout", "y mask", "", "y mask"),
        ("Dropout", "y mask more", "y", "y - more"),
        ("LSTM", "y h c", "c", "- - c"),
        ("LSTM", "y h c", "h", "- h"),
        ("LSTM", "y h c", "y", "y"),
        ("TopK", "values indices", "values", "values indices"),
    ],
)
def test_optional_outputs_are_left_out(operator: str, outputs: str, read: str, left: str) -> None:
    node = helper.make_node(operator, ["x"], outputs.split())
    blanked(node, read.split())
    assert [name or "-" for name in node.output] == left.split()


def test_operators_of_others_are_left_alone() -> None:
    node = helper.make_node("Dropout", ["x"], ["y", "mask"], domain="other")
    blanked(node, {"y"})
    assert list(node.output) == ["y", "mask"]
