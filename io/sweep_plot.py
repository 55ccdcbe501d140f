"""The curves of a sweep as a picture. matplotlib is imported only here, when a picture is asked for."""

from __future__ import annotations

import logging
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import Any

from ..core.errors import UnavailableError
from .sweep_json import Sweep, SweepRow

PICTURES = (".svg", ".png", ".pdf")
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
"""Told apart by the colour-blind too (Okabe and Ito)."""
_SHAPES = ("o", "s", "^", "D", "v", "P", "X")


def can_plot() -> bool:
    return find_spec("matplotlib") is not None


def require_plotting() -> None:
    """Said before the long work."""
    if not can_plot():
        raise UnavailableError("a picture needs matplotlib: pip install 'checkmate-remat[plot]', or leave out the picture")


def plot_sweep(sweep: Sweep, path: Path) -> bytes:
    """The picture in the format of the file's ending, the same bytes for the same sweep."""
    require_plotting()
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    import matplotlib

    matplotlib.use("agg")
    from matplotlib.figure import Figure

    unit, label = _unit(max(sweep.keep_all_peak_bytes, *(row.budget_bytes for row in sweep.rows)))
    with matplotlib.rc_context({"svg.hashsalt": "checkmate", "svg.fonttype": "none", "font.size": 10}):
        figure = Figure(figsize=(8, 4.8), layout="constrained")
        axes = figure.add_subplot()
        for number, strategy in enumerate(sweep.strategies):
            style = {"color": _COLOURS[number % len(_COLOURS)], "marker": _SHAPES[number % len(_SHAPES)]}
            _draw(axes, strategy, [row for row in sweep.rows_of(strategy) if row.fits], unit, style)
        _draw_baselines(axes, sweep, unit)
        impossible = [row.budget_bytes for row in sweep.rows if row.status == "infeasible"]
        if impossible:
            end = max(*impossible, sweep.smallest_budget_bytes)
            axes.axvspan(min(impossible) / unit, end / unit, color="#999999", alpha=0.25, lw=0, label="nothing fits")
        axes.axvline(sweep.keep_all_peak_bytes / unit, color="#999999", lw=0.8, ls="--", label="keeping everything")
        axes.set_xlabel(f"memory budget ({label})")
        axes.set_ylabel("cost over the ideal (%)")
        axes.set_title(f"{sweep.name}: what less memory costs")
        axes.grid(alpha=0.3, lw=0.5)
        axes.set_ylim(bottom=-0.02 * axes.get_ylim()[1])
        axes.legend(frameon=False)
        buffer = BytesIO()
        kind = path.suffix[1:].lower()
        metadata: dict[str, Any] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind, {})
        figure.savefig(buffer, format=kind, dpi=150, metadata=metadata)
    return buffer.getvalue()


def _draw(axes: Any, strategy: str, rows: list[SweepRow], unit: float, style: dict[str, str]) -> None:
    """A step: between two budgets only the schedule of the smaller one is known to fit."""
    budgets = [row.budget_bytes / unit for row in rows]
    costs = [100 * (row.overhead or 0.0) for row in rows]
    axes.plot(budgets, costs, drawstyle="steps-post", lw=1.4, ms=4, label=strategy, **style)
    bounds = [(row.budget_bytes / unit, 100 * ((row.overhead or 0.0) - _below(row))) for row in rows if (row.gap or 0.0) > 0.002]
    proven = [(budget, bound) for budget, bound in bounds if bound > 0.01]
    if proven:
        axes.plot(*zip(*proven, strict=True), ls="", marker="_", ms=9, color=style["color"], alpha=0.6, label=f"proven for {strategy}")


def _below(row: SweepRow) -> float:
    """How far below the cost the bound lies, as a share of the ideal."""
    assert row.cost is not None
    assert row.bound is not None
    assert row.overhead is not None
    return (row.cost - row.bound) / row.cost * (1 + row.overhead)


def _draw_baselines(axes: Any, sweep: Sweep, unit: float) -> None:
    """Those that would not squeeze the curves into the bottom of the picture."""
    most = 2 * max([row.overhead or 0.0 for row in sweep.rows if row.fits], default=0.0)
    for baseline in sweep.baselines:
        if 0 < baseline.overhead <= most and baseline.strategy not in sweep.strategies:
            place = (baseline.peak_bytes / unit, 100 * baseline.overhead)
            axes.plot(*place, marker="x", ms=6, color="#555555", ls="")
            axes.annotate(baseline.strategy, place, textcoords="offset points", xytext=(5, 4), fontsize=8, color="#555555")


def _unit(largest: int) -> tuple[float, str]:
    for factor, name in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if largest >= factor:
            return factor, name
    return 1.0, "bytes"
