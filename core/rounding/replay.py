"""How much memory a fractional solution of the merged-stage relaxation takes between the moments the relaxation looks at."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..milp.relaxation import Reduced, Relaxation


def memory_within(reduced: Reduced, relaxation: Relaxation, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """About how much memory is taken while each first computation runs, in units of the reduced problem.

    A value that a first computation later in the stage reads is there until then; after that, as much of it as the stage passes on.
    """
    problem = reduced.problem
    padded = np.append(values, 0.0)
    change = np.zeros(problem.count + 1)
    made = reduced.producer
    last_in_stage = np.empty(len(made), dtype=np.int64)
    for t, run in enumerate(relaxation.runs):
        if not run:
            continue
        inside = (reduced.edge_reader >= run.start) & (reduced.edge_reader < run.stop)
        last_in_stage[:] = -1
        np.maximum.at(last_in_stage, reduced.edge_value[inside], reduced.edge_reader[inside])
        earlier = made < run.start
        at_start = np.where(earlier, padded[relaxation.keep[t]], 1.0)
        begin = np.maximum(made, run.start)
        until = np.where(last_in_stage >= 0, last_in_stage + 1, begin + np.where(earlier, 0, 1))
        read = np.where(earlier, np.minimum(1.0, at_start + padded[relaxation.compute[t, made]]), 1.0)
        after = np.minimum(at_start, padded[relaxation.keep[t + 1]])
        chosen = np.flatnonzero(reduced.counted & (made < run.stop) & ((read > 0) | (after > 0)))
        size = reduced.size[chosen]
        np.add.at(change, begin[chosen], size * read[chosen])
        np.add.at(change, until[chosen], size * (after[chosen] - read[chosen]))
        change[run.stop] -= float((size * after[chosen]).sum())
    taken: NDArray[np.float64] = np.cumsum(change)[: problem.count] + np.array(reduced.scale.workspace)
    return taken
