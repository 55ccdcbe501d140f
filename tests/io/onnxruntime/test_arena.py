"""The simulated arena places tensors where onnxruntime's does: in the same regions, with the same bytes in use at every node."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from exactness import random_feeds, random_schedule

import checkmate
from checkmate.core.model.costs import unit_costs
from checkmate.core.model.memory_model import MemoryModel
from checkmate.core.schedule.schedule import with_frees
from checkmate.core.schedule.simulate import simulate
from checkmate.io.onnx.compile.anchor_modes import Anchor
from checkmate.io.onnx.compile.unread import without_unread
from checkmate.io.onnx.compile.writer import compile_model
from checkmate.io.onnx.read.reader import OnnxModel, read_onnx
from checkmate.io.onnxruntime.arena import LARGEST_BLOCK, UNIT, Arena, ArenaSettings, Event, rounded
from checkmate.io.onnxruntime.predict import as_onnxruntime_frees, execution_order
from checkmate.io.onnxruntime.process_memory import allocation_events, block_needed, plan_arena
from checkmate.io.onnxruntime.session import exact_options, one_block
from checkmate.sample_graphs.networks import TINY


def arena(size: int = 1000 * UNIT, most_waste: int = 1) -> Arena:
    return Arena(ArenaSettings(size, most_waste))


def test_the_smallest_gap_that_is_large_enough_is_taken() -> None:
    found = arena()
    for key in range(6):
        found.allocate(key, (key + 1) * UNIT)
    assert found.touched_bytes == 21 * UNIT
    found.free(1)
    found.free(4)
    found.allocate(9, 2 * UNIT - 5)
    found.allocate(10, 3 * UNIT)
    assert found.touched_bytes == 21 * UNIT, "both fit into gaps: 2 units exactly, 3 of 5"
    found.allocate(11, 3 * UNIT)
    assert found.touched_bytes == 24 * UNIT, "2 units are left of the second gap"


def test_of_two_gaps_of_one_size_the_lower_one_is_taken() -> None:
    found = arena()
    for key in range(5):
        found.allocate(key, UNIT)
    found.free(3)
    found.free(1)
    found.allocate(9, UNIT)
    found.free(2)
    found.allocate(10, 2 * UNIT)
    assert found.touched_bytes == 5 * UNIT, "where 2 and 3 were: 9 took the place of 1"


@pytest.mark.parametrize("order", [(1, 2, 3), (3, 2, 1), (2, 1, 3), (1, 3, 2)])
def test_free_neighbours_become_one_gap(order: tuple[int, ...]) -> None:
    found = arena()
    for key in range(5):
        found.allocate(key, UNIT)
    for key in order:
        found.free(key)
    found.allocate(9, 3 * UNIT)
    assert found.touched_bytes == 5 * UNIT
    assert found.in_use == 5 * UNIT


def test_small_rests_are_not_split_off() -> None:
    found = arena(10 * UNIT, most_waste=3 * UNIT)
    found.allocate(0, 8 * UNIT)
    assert found.in_use == 10 * UNIT, "2 units more are less than the waste allowed, and less than as much again"
    found.free(0)
    found.allocate(1, 7 * UNIT)
    assert found.in_use == 7 * UNIT, "3 units are not"
    found.free(1)
    found.allocate(2, 5 * UNIT)
    assert found.in_use == 5 * UNIT, "nor is twice the size"


def test_regions_double_and_nothing_is_taken_for_nothing() -> None:
    found = Arena(ArenaSettings(first_region=4 * UNIT, most_waste=1, largest_growth=64 * UNIT))
    found.allocate(0, 0)
    found.free(0)
    found.free(77)
    assert found.regions == []
    for key, size in enumerate((1, 4, 20, 4, 100, 100, 1)):
        found.allocate(key, size * UNIT)
    assert [region // UNIT for region in found.regions] == [4, 8, 32, 64 * 2, 64 * 2]
    assert found.reserved_bytes == sum(found.regions)
    assert found.touched_bytes == (1 + 1 + 4 + 4 + 20 + 100 + 100) * UNIT


def test_sizes_are_rounded_up() -> None:
    assert [rounded(size) for size in (1, 255, 256, 257)] == [256, 256, 256, 512]


def real_and_simulated(model: OnnxModel, proto: onnx.ModelProto, folder: Path) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Bytes in use and bytes reserved after every node, with onnxruntime's default arena."""
    session = checkmate.session(proto.SerializeToString(), arena_bytes=0, threads=1, profile=folder / "profile")
    feeds = {name: onnxruntime.OrtValue.ortvalue_from_numpy(array) for name, array in random_feeds(model).items()}
    session.run_with_ort_values([output.name for output in session.get_outputs()], feeds)
    events = json.loads(Path(session.end_profiling()).read_text())
    nodes = [event["args"] for event in events if event.get("cat") == "Node" and event["name"].endswith("_kernel_time")]
    first = nodes[0]
    stored = int(first["mem_bytes_in_use"]) - int(first["mem_in_use_delta"])
    real = [(int(node["mem_bytes_in_use"]) - stored, int(node["mem_arena_held"]) - stored) for node in nodes]
    read = read_onnx(proto, threads=1)
    order = execution_order(read)
    schedule = as_onnxruntime_frees(read.graph, order)
    simulation = simulate(read.graph, unit_costs(read.graph), schedule, memory_model=MemoryModel.ONNXRUNTIME)
    found = Arena(ArenaSettings())
    simulated: list[tuple[int, int]] = []
    pending = iter(allocation_events(read.graph, order, simulation))
    event = next(pending, None)
    made = 0
    buffers = {stay.buffer: stay.first for stay in reversed(simulation.stays)}
    for number, index in enumerate(order):
        while event is not None and event.bytes is None and event.key >= 0:
            found.run([event])
            event = next(pending, None)
        while event is not None and event.bytes is not None and event.key >= 0 and buffers[event.key] == number:
            found.run([event])
            made += 1
            event = next(pending, None)
        while event is not None and event.key < 0:
            found.run([event])
            event = next(pending, None)
        simulated.append((found.in_use, found.reserved_bytes))
        assert read.graph.operations[index].name
    assert event is None
    assert made
    return real, simulated


@pytest.mark.parametrize("name", TINY)
def test_every_node_finds_the_same_bytes_in_use(name: str, tmp_path: Path) -> None:
    model = read_onnx(TINY[name]().SerializeToString(), name=name)
    real, simulated = real_and_simulated(model, model.proto, tmp_path)
    assert simulated == real
    compiled = compile_model(model, random_schedule(model, 3), anchor=Anchor.NONE)
    real, simulated = real_and_simulated(model, compiled, tmp_path)
    assert simulated == real


@pytest.mark.parametrize("name", ["vgg", "unet", "transformer"])
def test_the_block_is_enough_and_hardly_less_would_be(name: str) -> None:
    """With the arena limited to the block that was predicted, the model runs; with a page less, it does not."""
    model = read_onnx(TINY[name]().SerializeToString(), name=name, threads=1)
    schedule = with_frees(model.graph, without_unread(model.graph, random_schedule(model, 5).computations))
    compiled = compile_model(model, schedule, anchor=Anchor.NONE).SerializeToString()
    plan = plan_arena(model.graph, schedule)
    feeds = random_feeds(model)
    stored = sum(model.graph.fixed[kind] for kind in ("parameters", "constants", "barriers"))

    def runs(block: int) -> bool:
        options = exact_options(onnxruntime)
        options.intra_op_num_threads = 1
        options.log_severity_level = 4
        with one_block(onnxruntime, options, block, plan.most_waste, limit=block + rounded(stored)):
            session = onnxruntime.InferenceSession(compiled, options, providers=["CPUExecutionProvider"])
        try:
            session.run(None, dict(feeds))
        except Exception:
            return False
        return True

    assert runs(plan.block_bytes)
    assert not runs(plan.block_bytes - 8 * UNIT)


def test_a_block_that_gaps_made_too_small_grows() -> None:
    """At the end of a real block, the rest may be the smallest gap: it is used up where an unlimited one would not have been."""
    random = np.random.default_rng(0)
    for _ in range(200):
        events: list[Event] = []
        alive: list[int] = []
        for key in range(30):
            if alive and random.random() < 0.45:
                events.append(Event(alive.pop(int(random.integers(len(alive)))), None))
            events.append(Event(key, int(random.integers(1, 12)) * UNIT))
            alive.append(key)
        block = block_needed(events, 1)
        found = arena(block)
        found.run(events)
        assert len(found.regions) == 1
    assert block_needed([Event(0, LARGEST_BLOCK + 10**9)], 1) == rounded(LARGEST_BLOCK + 10**9)
    assert block_needed([], 1) == UNIT
