"""The profiler's files as facts: `recorded/` holds what onnxruntime wrote on a CPU. Events of a GPU are made up here, in their shape."""

from __future__ import annotations

import json
from typing import Any

import pytest
from places import TESTS

from checkmate.io.onnxruntime.measure import node_costs
from checkmate.io.onnxruntime.nodes import FileNode
from checkmate.io.onnxruntime.trace import computed_bytes, least_seconds, parse_trace, parse_workspaces

CPU, CUDA = "CPUExecutionProvider", "CUDAExecutionProvider"
NODES = [FileNode("first", "Tanh", "first"), FileNode("Mul_2", "Mul", "")]


def session_event(name: str, start: int, duration: int) -> dict[str, Any]:
    return {"cat": "Session", "pid": 7, "tid": 7, "dur": duration, "ts": start, "ph": "X", "name": name, "args": {}}


def node_event(name: str, kind: str, index: int, start: int, duration: int, provider: str = CPU, **extra: str) -> dict[str, Any]:
    details = {"op_name": kind, "node_index": str(index), "provider": provider, "thread_scheduling_stats": "", **extra}
    return {"cat": "Node", "pid": 7, "tid": 7, "dur": duration, "ts": start, "ph": "X", "name": f"{name}_kernel_time", "args": details}


def recorded(version: str) -> list[dict[str, Any]]:
    """What onnxruntime wrote for `[first] Tanh`, a nameless Mul by a Constant and `[last] MatMul`, run twice on one thread."""
    path = TESTS / "recorded" / f"profile_cpu_{version}.json"
    events = json.loads(path.read_text())
    assert isinstance(events, list)
    return events


@pytest.mark.parametrize("version", ["1_20", "1_23", "1_31"])
def test_recorded_runs_are_told_apart_and_of_each_node_the_shortest_counts(version: str) -> None:
    runs = parse_trace(recorded(version))
    assert [[(node.index, node.name, node.kind, node.provider) for node in run] for run in runs] == [
        [(0, "first", "Tanh", CPU), (1, "Mul_1", "Mul", CPU), (2, "last", "MatMul", CPU)]
    ] * 2
    costs = node_costs([*NODES, FileNode("last", "MatMul", "last")], least_seconds(runs), runs[-1])
    first, second = ([node.seconds for node in run] for run in runs)
    assert costs == dict(zip(("first", "Mul_2", "last"), map(min, first, second), strict=True))


def test_the_recorded_times_are_those_in_the_file() -> None:
    runs = parse_trace(recorded("1_31"))
    assert [[node.seconds for node in run] for run in runs] == [[4612e-6, 31e-6, 42e-6], [27e-6, 11e-6, 18e-6]]


def test_recorded_memory_is_counted_from_what_was_there_before_the_run() -> None:
    assert [computed_bytes(run) for run in parse_trace(recorded("1_31"))] == [[16384, 32768, 49152]] * 2
    assert [computed_bytes(run) for run in parse_trace(recorded("1_23"))] == [None, None], "before 1.28 it is not told"


def test_events_in_another_order_are_the_same_trace() -> None:
    assert parse_trace(reversed(recorded("1_31"))) == parse_trace(recorded("1_31"))


def test_nodes_inside_of_others_are_part_of_these() -> None:
    events = [
        session_event("model_run", 0, 100),
        node_event("inner", "Add", 0, 12, 5),
        node_event("branch", "If", 0, 10, 20),
        node_event("after", "Relu", 1, 30, 5),
    ]
    (run,) = parse_trace(events)
    assert [node.name for node in run] == ["branch", "after"]


def test_cuda_events_with_kernels_copies_and_nodes_left_on_the_cpu() -> None:
    kernel = {
        "cat": "Kernel",
        "pid": -1,
        "tid": 1,
        "dur": 900,
        "ts": 25,
        "ph": "X",
        "name": "void tanh<float>",
        "args": {"op_name": "Tanh"},
    }
    events = [
        session_event("model_run", 0, 1000),
        node_event("Memcpy_token_3", "MemcpyFromHost", 2, 5, 15, CUDA),
        node_event("first", "Tanh", 0, 20, 40, CUDA),
        kernel,
        node_event("Mul_1", "Mul", 1, 70, 0, CPU),
    ]
    (run,) = parse_trace(events)
    assert [node.provider for node in run] == [CUDA, CUDA, CPU]
    costs = node_costs(NODES, least_seconds([run]), run)
    assert costs == {"first": 40e-6, "Mul_2": 0.5e-6}, "copies are nobody's, and nothing runs in no time"


def test_a_fused_node_under_the_number_of_another_is_not_taken_for_it() -> None:
    (run,) = parse_trace(
        [session_event("model_run", 0, 100), node_event("TRTKernel_graph_0", "TRTKernel", 1, 10, 20, "TensorrtExecutionProvider")]
    )
    assert node_costs(NODES, least_seconds([run]), run) == {}


def test_workspaces_by_name_with_hash_and_commas() -> None:
    text = (
        "#name,input_sizes,initializers_sizes,total_dynamic_sizes,total_temp_allocations\n"
        "grad/up1/join_1517,0,0,4718592,10616832\n"
        "a,b_c_99,16388,0,4096,7\n"
        "a,b_c_99,16388,0,4096,5\n"
    )
    assert parse_workspaces(text) == {"grad/up1/join": 10616832, "a,b_c": 7}
