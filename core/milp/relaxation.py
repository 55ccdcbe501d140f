"""A relaxation that bounds graphs of thousands of operations in seconds: merged stages, memory checked only where each stage ends.

For every real schedule, let R say whether an operation is recomputed at all within a run of first computations, S what is carried over the
ends of runs, and Z whether an operation is recomputed from a run on. That satisfies the rows below, costs no more, and what is carried over
an end is in memory while the operation before that end runs. So the LP value is a proven lower bound on the cost of any schedule that makes
first computations in the given order.

Values below `free_below` bytes are taken to need no memory: they are kept for good, nothing recomputes them, and most of a training graph
(statistics, weight gradients tap by tap) drops out of the model. That relaxes further, never wrongly.

Where everything an operation makes is read by one other only, which reads nothing else and makes nothing larger, nobody keeps it once the
other has run: keeping the other's output instead takes no more memory and saves the recomputation. From then on the two are recomputed
together, as one. That is exact, and makes the model much smaller.

A run may be a zone (core/zones). It then has two stages: what is recomputed up to the moment at which large values take most, and what
after it, with no first computation of its own. At that moment there is room for what the large values leave, and no more.

The matrix is put together with numpy, not Pyomo: it is no model of schedules, only of a bound, it is solved again and again with other
stages, and Pyomo would take longer to build it than HiGHS takes to solve it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..model.problem import Problem
from ..schedule.sequence import first_computations
from ..zones.labels import Way, Zone
from .matrix import Matrix
from .scale import Scale
from .standard_form import StandardForm
from .zone_rows import ZoneColumns, add_zone, worst_moment, zone_columns, zone_makers, zone_start

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Reduced:
    """A problem as arrays, without the values that are free: what every relaxation of it shares."""

    problem: Problem
    scale: Scale
    size: NDArray[np.float64]
    producer: Ints
    counted: Bools
    """Values that take memory."""
    again: Bools
    """Operations that may be worth recomputing: not pinned, and a counted value depends on it."""
    last: Ints
    """The last first computation that may need each operation again."""
    until: Ints
    """The last first computation that can find a use for each value."""
    last_read: Ints
    """The last first computation that reads each value itself; the number of operations for graph outputs."""
    joined_to: Ints
    """The operation each one is recomputed together with, once that has run for the first time; itself if none."""
    edge_reader: Ints
    edge_value: Ints
    """Which operation reads which counted value, sorted by value."""


@dataclass(frozen=True, slots=True, eq=False)
class Relaxation:
    """An LP whose value is a bound, and where its columns are: -1 where there is none."""

    form: StandardForm
    runs: tuple[range, ...]
    unit: float
    """What one unit of the objective is in cost."""
    compute: Ints
    """The column of R[stage, operation]."""
    once: Ints
    """The column of Z[stage, operation]."""
    keep: Ints
    """The column of S[stage, value]; one row more than there are stages."""
    problem: Problem
    zones: Mapping[int, ZoneColumns]
    """Columns of the stages that are zones; each is followed by a stage without first computations."""

    @property
    def described(self) -> str:
        return f"{len(self.runs)} stages" + (f", {len(self.zones)} zones" if self.zones else "")

    @property
    def open_runs(self) -> tuple[range, ...]:
        """Stages that are no zones, and could be cut."""
        return tuple(run for stage, run in enumerate(self.runs) if stage not in self.zones)

    def way(self, stage: int, values: NDArray[np.float64]) -> Way:
        """The way through a zone that a solution goes, or goes most."""
        columns = self.zones[stage]
        return columns.zone.ways[int(np.argmax(values[columns.ways]))]

    def closed(self, levels: Mapping[int, Set[int]]) -> StandardForm:
        """The same for schedules that take their ways through zones at none of these levels, by stage."""
        upper = self.form.column_upper.copy()
        for stage, shut in levels.items():
            upper[self.zones[stage].closed(shut)] = 0.0
        return replace(self.form, column_upper=upper)

    def as_integers(self, form: StandardForm | None = None) -> StandardForm:
        """The same, or a form of it, with whole R and S: still a relaxation, and a tighter one."""
        integer = np.zeros(self.form.columns, dtype=np.bool_)
        integer[self.compute[self.compute >= 0]] = True
        integer[self.keep[self.keep >= 0]] = True
        for columns in self.zones.values():
            integer[columns.ways] = True
        return replace(form or self.form, integer=integer)

    def start(self, sequence: Sequence[int]) -> dict[int, float]:
        """What a schedule that fits is here; it satisfies every row."""
        problem = self.problem
        values = np.zeros(self.form.columns + 1)
        firsts = first_computations(problem.count, sequence)
        at, peaks = self._stages(sequence, firsts)
        awaited = [bool(kept) for kept in problem.kept]
        stage = len(self.runs) - 1
        again: list[tuple[int, int]] = []
        for position in reversed(range(len(sequence))):
            operation = sequence[position]
            while stage > at[position]:
                values[self.keep[stage, np.flatnonzero(awaited)]] = 1.0
                stage -= 1
            if firsts[operation] != position:
                values[self.compute[stage, operation]] = 1.0
                values[self.once[: stage + 1, operation]] = 1.0
                again.append((stage, operation))
            for value in problem.outputs[operation]:
                awaited[value] = False
            for value in problem.inputs[operation]:
                awaited[value] = True
        for stage, columns in self.zones.items():
            made_within = [value for operation in columns.zone.run for value in problem.outputs[operation]]
            values[self.keep[stage + 1, made_within]] = 1.0
        for stage, operation in again:
            told_apart = self.zones[stage].zone.values if stage in self.zones else frozenset()
            values[self.keep[stage, [value for value in problem.outputs[operation] if value not in told_apart]]] = 0.0
        values[-1] = 0.0
        for stage, columns in self.zones.items():
            makers = zone_makers(problem, columns.zone)
            spent = (values[self.compute[stage : stage + 2, makers]] * np.array(problem.cost)[makers]).sum()
            begun_with = {value for value in columns.zone.values if self.keep[stage, value] < 0 or values[self.keep[stage, value]] > 0}
            values[[columns.outlay, *columns.ways]] = zone_start(columns.zone, begun_with, peaks[stage], float(spent))
        return dict(enumerate(values[:-1].tolist()))

    def _stages(self, sequence: Sequence[int], firsts: Sequence[int]) -> tuple[list[int], dict[int, int]]:
        """The stage of each position of a sequence, and the most that large values take in each zone."""
        problem = self.problem
        stage_of = np.zeros(problem.count + 1, dtype=np.int64)
        for stage, run in enumerate(self.runs):
            stage_of[run.start : run.stop] = stage
        stage_of[problem.count] = len(self.runs) - 1
        upcoming = problem.count
        at = [0] * len(sequence)
        for position in reversed(range(len(sequence))):
            if firsts[sequence[position]] == position:
                upcoming = sequence[position]
            at[position] = int(stage_of[upcoming])
        peaks: dict[int, int] = {}
        for stage, columns in self.zones.items():
            inside = [position for position, where in enumerate(at) if where == stage]
            worst, peaks[stage] = worst_moment(problem, columns.zone, sequence, inside)
            for position in inside:
                at[position] += position > worst
        return at, peaks


def reduce_problem(problem: Problem, free_below: float = 0.0) -> Reduced:
    """Take values of no size, and those smaller than `free_below` bytes, out of the account."""
    count = problem.count
    size = np.array(problem.size, dtype=np.float64)
    producer = np.array(problem.producer, dtype=np.int64)
    counted = (size > 0) & (size >= free_below)
    last = np.arange(count, dtype=np.int64)
    until = np.full(len(size), -1, dtype=np.int64)
    last_read = np.full(len(size), -1, dtype=np.int64)
    again = np.zeros(count, dtype=np.bool_)
    for operation in reversed(range(count)):
        for value in problem.outputs[operation]:
            if not counted[value]:
                continue
            again[operation] = not problem.pinned[operation]
            users = problem.consumers[value]
            last_read[value] = count if problem.kept[value] else users[-1] if users else -1
            until[value] = max(last_read[value], max((int(last[user]) for user in users if again[user]), default=-1))
            last[operation] = max(last[operation], until[value])
    joined_to = _joined(problem, size, counted, again)
    until = np.where(joined_to[producer] != producer, np.minimum(until, joined_to[producer]), until)
    pairs = [(value, user) for value, users in enumerate(problem.consumers) if counted[value] for user in users]
    edges = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return Reduced(
        problem=problem,
        scale=Scale.of(problem),
        size=np.array(Scale.of(problem).size),
        producer=producer,
        counted=counted,
        again=again,
        last=last,
        until=until,
        last_read=last_read,
        joined_to=joined_to,
        edge_reader=edges[:, 1],
        edge_value=edges[:, 0],
    )


def _joined(problem: Problem, size: NDArray[np.float64], counted: Bools, again: Bools) -> Ints:
    joined = np.arange(problem.count, dtype=np.int64)
    for operation in np.flatnonzero(again).tolist():
        made = [value for value in problem.outputs[operation] if counted[value]]
        readers = {reader for value in made for reader in problem.consumers[value]}
        if len(readers) != 1 or any(problem.kept[value] or len(problem.consumers[value]) != 1 for value in problem.outputs[operation]):
            continue
        (reader,) = readers
        if not again[reader] or any(counted[value] and problem.producer[value] != operation for value in problem.inputs[reader]):
            continue
        if size[made].sum() >= size[[value for value in problem.outputs[reader] if counted[value]]].sum():
            joined[operation] = reader
    return joined


def build_relaxation(reduced: Reduced, runs: Sequence[range], zones: Mapping[int, Zone] | None = None) -> Relaxation:
    """Build the LP for these stages. Those that are zones are given by number; an empty run must follow each."""
    problem, scale = reduced.problem, reduced.scale
    count, values = problem.count, len(problem.size)
    stages = len(runs)
    zones = zones or {}
    compute = np.full((stages + 1, count + 1), -1, dtype=np.int64)
    once = compute.copy()
    keep = np.full((stages + 1, values), -1, dtype=np.int64)
    used = 0

    def number(row: Ints, chosen: Ints) -> None:
        nonlocal used
        row[chosen] = np.arange(used, used + len(chosen))
        used += len(chosen)

    operations = np.arange(count)
    joined = reduced.joined_to != operations
    begins = [zones[t - 1].run.start if t - 1 in zones else run.start for t, run in enumerate(runs)]
    """What a stage may find a use for, it may from here on: in a zone, first computations may come before or after its worst moment."""
    for t, run in enumerate(runs):
        together = joined & (reduced.joined_to < begins[t])
        candidates = np.flatnonzero((operations < run.start) & reduced.again & (reduced.last >= begins[t]) & ~together)
        number(compute[t], candidates)
        number(keep[t], np.flatnonzero(reduced.counted & (reduced.producer < run.start) & (reduced.until >= begins[t])))
        if t:
            number(once[t], candidates)
        for operation in reversed(np.flatnonzero(together).tolist()):
            compute[t, operation] = compute[t, reduced.joined_to[operation]]
            once[t, operation] = once[t, reduced.joined_to[operation]]
    columns = zone_columns(zones, used)
    cost = np.array(scale.cost)
    objective = np.zeros(used + sum(1 + len(each.ways) for each in columns.values()))
    for t in range(stages):
        chosen = np.flatnonzero(compute[t] >= 0)
        np.add.at(objective, compute[t, chosen], cost[chosen])
    matrix = Matrix()
    maker = reduced.producer[reduced.edge_value]
    for t, run in enumerate(runs):
        _inputs_1b(matrix, reduced, run, begins[t], compute[t], keep[t], maker, compute[t + 1] if t in zones else None, t + 1 == stages)
        _not_both(matrix, reduced, compute[t], keep[t], zones[t].values if t in zones else frozenset())
        if t:
            _kept_1c(matrix, reduced, runs[t - 1], t, compute, keep)
            _once(matrix, reduced, run, begins[t], t, compute, keep, once, maker)
        if t in zones:
            exempt = _joined_on(reduced, zones[t].values)
            again = compute[t], compute[t + 1]
            add_zone(matrix, objective, problem, scale, columns[t], exempt, again, reduced.counted, keep[t], keep[t + 1])
        else:
            _memory(matrix, reduced, runs[t - 1] if t - 1 in zones else run, keep[t + 1], t + 1 == stages)
    form = matrix.form(objective, sum(scale.cost))
    return Relaxation(form, tuple(runs), scale.cost_unit, compute[:, :count], once[:, :count], keep, problem, columns)


def _joined_on(reduced: Reduced, values: Set[int]) -> Bools:
    """These values, and whatever is recomputed together with them right after."""
    found = np.zeros(len(reduced.size), dtype=np.bool_)
    found[list(values)] = True
    for operation in range(reduced.problem.count):
        reader = reduced.joined_to[operation]
        if reader != operation and found[list(reduced.problem.outputs[operation])].any():
            found[list(reduced.problem.outputs[reader])] = True
    return found


def _inputs_1b(
    matrix: Matrix, reduced: Reduced, run: range, begin: int, compute: Ints, keep: Ints, maker: Ints, later: Ints | None, is_last: bool
) -> None:
    """What is computed finds its inputs kept or recomputed; once for all readers, where a first computation is among them.

    In a zone, what a first computation reads may also be recomputed in the second of its stages.
    """
    before = maker < begin
    first = before & (reduced.edge_reader >= run.start) & (reduced.edge_reader < run.stop)
    needed = np.zeros(len(keep), dtype=np.bool_)
    needed[reduced.edge_value[first]] = True
    if not run and is_last:
        needed |= np.array(reduced.problem.kept) & reduced.counted
    values = np.flatnonzero(needed)
    late = [] if later is None else [(1.0, later[reduced.producer[values]])]
    matrix.add([(1.0, compute[reduced.producer[values]]), (1.0, keep[values]), *late], 1.0)
    if later is not None:
        needed[:] = False
    again = before & (compute[reduced.edge_reader] >= 0) & ~needed[reduced.edge_value] & (compute[reduced.edge_reader] != compute[maker])
    value, reader = reduced.edge_value[again], reduced.edge_reader[again]
    matrix.add([(-1.0, compute[reader]), (1.0, compute[maker[again]]), (1.0, keep[value])], 0.0)


def _not_both(matrix: Matrix, reduced: Reduced, compute: Ints, keep: Ints, told_apart: Set[int]) -> None:
    """What a stage makes again need not have been carried into it: where a schedule does both, let S be 0, and no other row minds.

    But for values that are told apart in a zone: what it costs depends on what was carried into it.
    """
    both = (keep >= 0) & (compute[reduced.producer] >= 0)
    both[list(told_apart)] = False
    values = np.flatnonzero(both)
    matrix.add([(-1.0, keep[values]), (-1.0, compute[reduced.producer[values]])], -1.0)


def _kept_1c(matrix: Matrix, reduced: Reduced, previous: range, t: int, compute: Ints, keep: Ints) -> None:
    """What is kept was kept before or made in the stage before."""
    values = np.flatnonzero((keep[t] >= 0) & ~((reduced.producer >= previous.start) & (reduced.producer < previous.stop)))
    matrix.add([(-1.0, keep[t, values]), (1.0, compute[t - 1, reduced.producer[values]]), (1.0, keep[t - 1, values])], 0.0)


def _once(matrix: Matrix, reduced: Reduced, run: range, begin: int, t: int, compute: Ints, keep: Ints, once: Ints, maker: Ints) -> None:
    """Z[t,i], "i is recomputed at least once from stage t on", closes the hole of recomputing in fractions.

    A tenth of a recomputation per stage would ask for a tenth of the inputs each time. Z is no more than all recomputations from there on;
    it is 1 if a first computation from there on reads what i made and that was not carried over; and it needs every input of i carried over
    or recomputed from there on as well.
    """
    _, chosen = np.unique(once[t], return_index=True)
    chosen = chosen[once[t, chosen] >= 0]
    matrix.add([(-1.0, once[t, chosen]), (1.0, compute[t, chosen]), (1.0, once[t + 1, chosen])], 0.0)
    matrix.add([(1.0, once[t, chosen]), (-1.0, once[t + 1, chosen])], 0.0)
    carried = np.flatnonzero((keep[t] >= 0) & (reduced.last_read >= run.start))
    matrix.add([(1.0, once[t, reduced.producer[carried]]), (1.0, keep[t, carried])], 1.0)
    again = (once[t, reduced.edge_reader] >= 0) & (maker < begin) & (once[t, reduced.edge_reader] != once[t, maker])
    value, reader = reduced.edge_value[again], reduced.edge_reader[again]
    matrix.add([(-1.0, once[t, reader]), (1.0, once[t, maker[again]]), (1.0, keep[t, value])], 0.0)


def _memory(matrix: Matrix, reduced: Reduced, run: range, carried: Ints, is_last: bool) -> None:
    """While the last operation of a run runs: what it reads and makes, and everything carried over the end."""
    problem, scale = reduced.problem, reduced.scale
    there = {*problem.inputs[run.stop - 1], *problem.outputs[run.stop - 1]} if run else set()
    taken = sum(scale.size[value] for value in there) + (scale.workspace[run.stop - 1] if run else 0.0)
    beside = np.ones(len(carried), dtype=np.bool_)
    beside[list(there)] = False
    if is_last:
        taken += float(reduced.size[np.array(problem.kept) & beside].sum())
        matrix.add_long(np.zeros(0, dtype=np.int64), np.zeros(0), taken - scale.available)
        return
    chosen = np.flatnonzero((carried >= 0) & beside)
    matrix.add_long(carried[chosen], -reduced.size[chosen], taken - scale.available)
