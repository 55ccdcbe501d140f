"""The curves of a sweep as JSON and as CSV; docs/formats.md describes them, io/schemas/sweep.schema.json defines the JSON."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields

FORMAT = "checkmate-sweep"
VERSION = 1
ORIGINS = ("solved", "stored", "implied", "open")
"""Where the figures of a row come from."""


@dataclass(frozen=True, slots=True)
class SweepRow:
    """One strategy at one budget. Figures that are not known are None, also if no schedule fits."""

    strategy: str
    budget: str
    budget_bytes: int
    status: str
    fits: bool
    cost: float | None
    overhead: float | None
    bound: float | None
    gap: float | None
    bound_scope: str | None
    peak_bytes: int | None
    recomputed: int | None
    found_by: str
    found_at_bytes: int | None
    """The budget of the run that made the schedule."""
    origin: str
    """`solved` in this run, `stored` from an earlier one, `implied` by other budgets, or `open`: not known yet."""
    seconds: float
    note: str


@dataclass(frozen=True, slots=True)
class Baseline:
    """A strategy whose schedule does not depend on the budget."""

    strategy: str
    peak_bytes: int
    cost: float
    overhead: float
    recomputed: int


@dataclass(frozen=True, slots=True)
class Sweep:
    """Everything a sweep found."""

    status: str
    name: str
    source: str
    graph_format: str
    digest: str
    operations: int
    cost_model: str
    cost_unit: str
    ideal_cost: float
    keep_all_peak_bytes: int
    smallest_budget_bytes: int
    strategies: tuple[str, ...]
    rows: tuple[SweepRow, ...]
    baselines: tuple[Baseline, ...]
    outputs: tuple[str, ...] = ()

    def count(self, origin: str) -> int:
        return sum(row.origin == origin for row in self.rows)

    def rows_of(self, strategy: str) -> list[SweepRow]:
        """By budget, ascending."""
        return [row for row in self.rows if row.strategy == strategy]


def render_sweep(sweep: Sweep) -> dict[str, object]:
    """The document."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "status": sweep.status,
        "graph": {
            "name": sweep.name,
            "source": sweep.source,
            "format": sweep.graph_format,
            "digest": sweep.digest,
            "operations": sweep.operations,
        },
        "cost_model": sweep.cost_model,
        "cost_unit": sweep.cost_unit,
        "ideal_cost": sweep.ideal_cost,
        "keep_all_peak_bytes": sweep.keep_all_peak_bytes,
        "smallest_budget_bytes": sweep.smallest_budget_bytes,
        "strategies": list(sweep.strategies),
        "points": {origin: sweep.count(origin) for origin in ORIGINS},
        "rows": [asdict(row) for row in sweep.rows],
        "baselines": [asdict(baseline) for baseline in sweep.baselines],
        "outputs": list(sweep.outputs),
    }


def sweep_csv(rows: Sequence[SweepRow]) -> str:
    """One line per strategy and budget; unknown figures are empty."""
    text = io.StringIO()
    writer = csv.DictWriter(text, [field.name for field in fields(SweepRow)], lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({key: str(value).lower() if isinstance(value, bool) else value for key, value in asdict(row).items()})
    return text.getvalue()
