"""Small random graphs with all the model knows: several outputs, views, pinned operations, graph outputs, workspace, fixed memory."""

from __future__ import annotations

import random

from checkmate.core.model.costs import given_costs
from checkmate.core.model.floors import feasibility_floor, least_memory
from checkmate.core.model.graph import Graph, OperationSpec, ValueSpec, Work, assemble
from checkmate.core.model.memory_model import MemoryModel
from checkmate.core.model.problem import Problem, build_problem
from checkmate.core.schedule.sequence import profile


def random_graph(seed: int, most: int = 7, plain: bool = False) -> Graph:
    """Deterministic for a seed. `plain` leaves out everything but one value per operation."""
    rng = random.Random(seed)
    count = rng.randint(1, most)
    values: list[str] = []
    specs: list[OperationSpec] = []
    for index in range(count):
        width = min(len(values), rng.choice((0, 1, 1, 2, 2, 3)))
        recent = values[-5:] if rng.random() < 0.6 else values
        inputs = tuple(sorted(rng.sample(recent, min(width, len(recent))), key=values.index))
        name = f"op{index}"
        if not plain and inputs and rng.random() < 0.15:
            specs.append(OperationSpec(name, "View", inputs[:1], (ValueSpec(f"v{index}", 0, inputs[0]),), view=True))
            values.append(f"v{index}")
            continue
        if not plain and rng.random() < 0.04:
            specs.append(OperationSpec(name, "View", (), (ValueSpec(f"v{index}", 0),), view=True))
            values.append(f"v{index}")
            continue
        outputs = tuple(
            ValueSpec(f"v{index}_{part}", rng.choice((0, 1, 1, 2, 3, 5, 8)) if rng.random() < 0.9 else rng.randint(0, 40))
            for part in range(1 if plain else rng.choice((1, 1, 1, 2, 3)))
        )
        specs.append(
            OperationSpec(
                name,
                "Op",
                inputs,
                outputs,
                workspace=0 if plain or rng.random() < 0.7 else rng.randint(1, 4),
                work=Work(cost=float(rng.randint(0, 9))),
                backward=not plain and index > count // 2 and rng.random() < 0.7,
                pinned=not plain and rng.random() < 0.1,
            )
        )
        values.extend(output.name for output in outputs)
    outputs_wanted = [name for name in values if rng.random() < (0.0 if plain else 0.15)]
    fixed = {} if plain or rng.random() < 0.5 else {"parameters": rng.randint(0, 20)}
    return assemble(f"random-{seed}", specs, outputs_wanted, fixed)


def random_problem(seed: int, most: int = 7, plain: bool = False) -> Problem:
    """A random graph with a budget between its floor and the keep-all peak (sometimes just below the floor)."""
    graph = random_graph(seed, most, plain)
    problem = build_problem(graph, given_costs(graph))
    if not problem.count:
        return problem
    rng = random.Random(f"budget {seed}")
    floor, peak = feasibility_floor(problem).bytes, profile(problem, range(problem.count)).peak
    return problem.with_budget(max(1, rng.randint(floor - 1, peak)))


def random_training(seed: int, *, in_place: bool = False) -> Problem:
    """Two or three layers and their gradients. Gradients of weights may be made in steps, which presolve merges."""
    rng = random.Random(f"training {seed}")
    specs: list[OperationSpec] = []
    outputs: list[str] = []

    def add(name: str, inputs: tuple[str, ...], size: int | None = None) -> str:
        made = ValueSpec(name, rng.choice((1, 2, 3, 3, 5)) if size is None else size)
        sizes = {spec.outputs[0].name: spec.outputs[0].bytes for spec in specs}
        same = [source for source in inputs if sizes[source] == made.bytes]
        pairs = ((same[0], name),) if in_place and same and rng.random() < 0.6 else ()
        specs.append(
            OperationSpec(
                name,
                "Op",
                inputs,
                (made,),
                workspace=rng.choice((0, 0, 0, 1, 3)),
                work=Work(cost=float(rng.randint(0, 6))),
                pinned=rng.random() < 0.05,
                in_place=pairs,
            )
        )
        if rng.random() < 0.1:
            outputs.append(name)
        return name

    layers = rng.choice((2, 2, 3))
    forward = [add("f0", ())]
    for layer in range(1, layers):
        forward.append(add(f"f{layer}", (forward[-1],) if layer < 2 or rng.random() < 0.7 else (forward[-1], forward[0])))
    gradient = add("loss", (forward[-1],))
    for layer in reversed(range(layers)):
        above, value = gradient, forward[layer]
        gradient = add(f"b{layer}", (above, value) if rng.random() < 0.8 else (above,))
        if layer and rng.random() < 0.6 and len(specs) < 9:
            size = rng.choice((2, 3, 5))
            padded = add(f"pad{layer}", (value,), size)
            taps = [add(f"tap{layer}_{number}", (padded, above), 1) for number in range(rng.choice((1, 2)))]
            outputs.append(taps[0] if len(taps) == 1 else add(f"w{layer}", tuple(taps), 1))
    graph = assemble(f"training-{seed}", specs, sorted(set(outputs)), {})
    model = MemoryModel.ONNXRUNTIME if in_place else MemoryModel.GENERIC
    problem = build_problem(graph, given_costs(graph), memory_model=model)
    floor, peak = least_memory(problem).bytes, profile(problem, range(problem.count)).peak
    return problem.with_budget(max(1, rng.randint(floor, max(floor, peak))))
