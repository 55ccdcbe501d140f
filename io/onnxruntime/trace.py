"""Parse the output of onnxruntime's profiler: which nodes ran, in which order, for how long, and how much memory was in use.

Pure functions on documents, so that output recorded on one machine, or in the format of a GPU, can be tested on another.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_KERNEL = "_kernel_time"
_RUN = "model_run"


@dataclass(frozen=True, slots=True)
class NodeRun:
    """One run of a node."""

    index: int
    """Its position in the file without Constant nodes, which onnxruntime makes initializers before it numbers the nodes."""
    name: str
    kind: str
    provider: str
    seconds: float
    requested_bytes: int | None = None
    """Bytes allocated in the arena when the node ends, before its inputs are freed. With onnxruntime 1.28 or newer."""
    delta_bytes: int | None = None
    """Bytes that the node itself allocated."""


Run = tuple[NodeRun, ...]


def parse_trace(events: Iterable[Mapping[str, Any]]) -> tuple[Run, ...]:
    """The runs of a profile, in order. Nodes inside other nodes (bodies of If, Loop and Scan) are left out."""
    relevant = [event for event in events if event.get("ph") == "X" and _is_relevant(event)]
    relevant.sort(key=lambda event: (event["ts"], -event["dur"]))
    runs: list[Run] = []
    nodes: list[NodeRun] = []
    node_end = -1
    begun = False
    for event in relevant:
        if event["cat"] == "Session":
            if begun:
                runs.append(tuple(nodes))
            begun, nodes, node_end = True, [], -1
        elif begun and event["ts"] >= node_end:
            node_end = event["ts"] + event["dur"]
            nodes.append(_node(event))
    return (*runs, tuple(nodes)) if begun else ()


def _is_relevant(event: Mapping[str, Any]) -> bool:
    name = str(event.get("name", ""))
    return (event.get("cat") == "Node" and name.endswith(_KERNEL)) or (event.get("cat") == "Session" and name == _RUN)


def _node(event: Mapping[str, Any]) -> NodeRun:
    details = event.get("args", {})
    return NodeRun(
        index=int(details.get("node_index", -1)),
        name=str(event["name"]).removesuffix(_KERNEL),
        kind=str(details.get("op_name", "")),
        provider=str(details.get("provider", "")),
        seconds=event["dur"] / 1e6,
        requested_bytes=_number(details, "mem_bytes_requested_in_use"),
        delta_bytes=_number(details, "mem_requested_in_use_delta"),
    )


def _number(details: Mapping[str, Any], key: str) -> int | None:
    return int(details[key]) if key in details else None


def least_seconds(runs: Sequence[Run]) -> dict[int, float]:
    """For each node, the shortest of its runs, because disturbances only make a run longer."""
    least: dict[int, float] = {}
    for run in runs:
        for node in run:
            least[node.index] = min(node.seconds, least.get(node.index, node.seconds))
    return least


def computed_bytes(run: Run) -> list[int] | None:
    """Bytes in memory at each node of a run, without those from before the run; None if onnxruntime does not report them."""
    if not run or run[0].requested_bytes is None or run[0].delta_bytes is None:
        return None
    before = run[0].requested_bytes - run[0].delta_bytes
    return [node.requested_bytes - before if node.requested_bytes is not None else 0 for node in run]


def parse_workspaces(text: str) -> dict[str, int]:
    """The workspace of each node, by its name, from the statistics that onnxruntime writes (1.23 and newer).

    A line is `name_hash,input_sizes,initializers_sizes,total_dynamic_sizes,total_temp_allocations`, and names may hold commas.
    """
    workspaces: dict[str, int] = {}
    for line in text.splitlines():
        if line.startswith("#") or line.count(",") < 4:
            continue
        label, _, _, _, temporary = line.rsplit(",", 4)
        name = label.strip('"').rpartition("_")[0]
        workspaces[name] = max(int(temporary), workspaces.get(name, 0))
    return workspaces
