"""Articulation points: operations that lie on every path between two parts of the graph."""

from __future__ import annotations

from collections.abc import Sequence


def articulation_points(neighbours: Sequence[Sequence[int]]) -> list[int]:
    """The articulation points of an undirected graph, ascending. Tarjan's algorithm, in linear time and without recursion.

    The first and the last node count too, because the graph's input is connected to the first and its result to the last.
    """
    count = len(neighbours)
    seen = [0] * count
    """The number in which each node was discovered, from 1."""
    low = [0] * count
    """The earliest node that can be reached from the node's subtree by at most one edge outside the tree."""
    points = {0, count - 1} if count else set()
    clock = 0
    for root in range(count):
        if seen[root]:
            continue
        clock += 1
        seen[root] = low[root] = clock
        branches = 0
        path = [(root, -1, iter(neighbours[root]))]
        while path:
            node, parent, others = path[-1]
            for other in others:
                if not seen[other]:
                    clock += 1
                    seen[other] = low[other] = clock
                    path.append((other, node, iter(neighbours[other])))
                    break
                if other != parent:
                    low[node] = min(low[node], seen[other])
            else:
                path.pop()
                if parent == root:
                    branches += 1
                elif parent >= 0 and low[node] >= seen[parent]:
                    points.add(parent)
                if parent >= 0:
                    low[parent] = min(low[parent], low[node])
        if branches > 1:
            points.add(root)
    return sorted(points)
