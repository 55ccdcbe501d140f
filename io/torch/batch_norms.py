"""Batch normalization in training mode: recomputing it must not update the running statistics again.

The traced operator returns its result and the new running statistics, which it computes from the old ones. A recomputation in the backward
pass cannot do the same, because by then the old ones have been overwritten, and torch forbids to save them. So an update is an operation of
its own, which runs once and has no cost, right before the first computation: it stands for the new statistics, and for reading the old
ones. The first computation is the operator as traced and makes both; recomputations are the operator without statistics, which gives the
same bits.

The update is written where the first computation is. If a schedule has the update earlier, it counts the new statistics in place of the old
ones for a while; they are equally large, so the real run takes no more memory than predicted.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch.fx import Node

from ...core.model.graph import OperationSpec, ValueSpec
from ...core.model.problem import Problem
from .pinning import argument

_WITH_UPDATE = torch.ops.aten._native_batch_norm_legit_functional.default
WITHOUT_STATISTICS = torch.ops.aten._native_batch_norm_legit.no_stats
RESULTS = 3
"""Of its five outputs, those that both operators return: the result, the mean and the inverse standard deviation of the batch."""
KIND = "torch.statistics"


def updates_statistics(node: Node) -> bool:
    return node.target is _WITH_UPDATE and argument(node, "training") is True


def running_statistics(node: Node) -> tuple[Node, ...]:
    return tuple(stated for name in ("running_mean", "running_var") if isinstance(stated := argument(node, name), Node))


def statistics_operation(node: Node, made: tuple[ValueSpec, ...], reads: tuple[str, ...]) -> OperationSpec:
    """The update. Its last output has no bytes; the batch normalization reads it, so that it comes after the update."""
    ready = ValueSpec(f"{node.name}.ready", 0)
    return OperationSpec(name=f"{node.name}.statistics", kind=KIND, inputs=reads, outputs=(*made[RESULTS:], ready), pinned=True)


def without_statistics(made: tuple[ValueSpec, ...]) -> tuple[ValueSpec, ...]:
    return made[:RESULTS]


def arguments_without_statistics(node: Node) -> tuple[object, ...]:
    """The arguments of the operator without statistics."""
    return tuple(argument(node, name) for name in ("input", "weight", "bias", "training", "momentum", "eps"))


def with_updates_in_place(problem: Problem, sequence: Sequence[int]) -> tuple[int, ...]:
    """The same sequence with every update right before the first computation of its batch normalization, where it is written."""
    operations = problem.graph.operations
    reader: dict[int, int] = {}
    for number, index in enumerate(problem.graph_operation):
        if operations[index].kind == KIND:
            reader[problem.consumers[problem.outputs[number][-1]][0]] = number
    updates = set(reader.values())
    moved: list[int] = []
    for number in sequence:
        if number in updates:
            continue
        if number in reader:
            moved.append(reader.pop(number))
        moved.append(number)
    return tuple(moved)
