"""Generated training graphs of any size: forward operations, then one backward operation for each, in reverse."""

from __future__ import annotations

from collections.abc import Callable

from checkmate.core.model.costs import given_costs
from checkmate.core.model.graph import OperationSpec, ValueSpec, Work, assemble
from checkmate.core.model.problem import Problem, build_problem

MEGABYTE = 1 << 20


def chain(operations: int) -> Problem:
    """A plain network of layers of different width and cost."""
    return _trained([(((layer - 1,) if layer else ()), 1 + layer % 5, 1.0 + layer % 3) for layer in range(operations // 2)], "chain")


def transformer(operations: int) -> Problem:
    """Blocks of attention and feed-forward layers with residuals: 12 forward operations each."""
    layers: list[tuple[tuple[int, ...], int, float]] = [((), 4, 1.0)]
    while len(layers) < operations // 2:
        start = len(layers) - 1
        here = len(layers)
        layers += [
            ((start,), 4, 0.5),
            ((here,), 4, 4.0),
            ((here,), 4, 4.0),
            ((here,), 4, 4.0),
            ((here + 1, here + 2), 8, 3.0),
            ((here + 4,), 8, 0.8),
            ((here + 5, here + 3), 4, 3.0),
            ((here + 6,), 4, 4.0),
            ((here + 7, start), 4, 0.3),
            ((here + 8,), 4, 0.5),
            ((here + 9,), 16, 14.0),
            ((here + 10,), 16, 1.0),
            ((here + 11,), 4, 14.0),
            ((here + 12, here + 8), 4, 0.3),
        ]
    return _trained(layers, "transformer")


def _trained(layers: list[tuple[tuple[int, ...], int, float]], name: str) -> Problem:
    """Each backward operation reads its layer's inputs and output and the gradients of whoever reads it."""
    readers: list[list[int]] = [[] for _ in layers]
    for layer, (inputs, _, _) in enumerate(layers):
        for source in inputs:
            readers[source].append(layer)
    specs = [
        OperationSpec(
            f"f{layer}", "Op", tuple(f"v{source}" for source in inputs), (ValueSpec(f"v{layer}", size * MEGABYTE),), work=Work(cost=cost)
        )
        for layer, (inputs, size, cost) in enumerate(layers)
    ]
    for layer in reversed(range(len(layers))):
        inputs, size, cost = layers[layer]
        read = (*(f"v{source}" for source in (*inputs, layer)), *(f"g{reader}" for reader in readers[layer]))
        specs.append(
            OperationSpec(f"b{layer}", "Op", read, (ValueSpec(f"g{layer}", size * MEGABYTE),), work=Work(cost=2 * cost), backward=True)
        )
    graph = assemble(f"{name}-{len(specs)}", specs, ["g0"], {})
    return build_problem(graph, given_costs(graph))


BUILDERS: dict[str, Callable[[int], Problem]] = {"chain": chain, "transformer": transformer}
