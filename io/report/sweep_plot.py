"""Plot the curves of a sweep. matplotlib is imported only here, and only if a plot is needed."""

from __future__ import annotations

import logging
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import Any

from ...core.errors import UnavailableError
from ..formats.sweep_json import Sweep, SweepRow
from .sweep_scale import scale_top

PICTURES = (".svg", ".png", ".pdf")
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
"""Distinguishable for colour-blind people too (Okabe and Ito)."""
_HEADROOM = 1.08
"""The axis ends at this many times the scale."""
_SHAPES = ("o", "s", "^", "D", "v", "P", "X")


def can_plot() -> bool:
    return find_spec("matplotlib") is not None


def require_plotting() -> None:
    """Raise an error before the long work starts if matplotlib is missing."""
    if not can_plot():
        raise UnavailableError("a plot needs matplotlib: pip install 'checkmate-remat[plot]', or write only .json and .csv files")


def plot_sweep(sweep: Sweep, path: Path) -> bytes:
    """The plot in the format of the file's suffix; the same sweep gives the same bytes."""
    require_plotting()
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    import matplotlib

    matplotlib.use("agg")
    from matplotlib.figure import Figure

    unit, label = _unit(max(sweep.keep_all_peak_bytes, *(row.budget_bytes for row in sweep.rows)))
    with matplotlib.rc_context({"svg.hashsalt": "checkmate", "svg.fonttype": "none", "font.size": 10}):
        figure = Figure(figsize=(8, 5), layout="constrained")
        axes = figure.add_subplot()
        top = scale_top([row.overhead or 0.0 for row in sweep.rows if row.fits] or [0.0])
        axes.set_ylim(-4 * top, 100 * _HEADROOM * top)
        axes.spines[["top", "right"]].set_visible(False)
        for number, strategy in enumerate(sweep.strategies):
            style = {"color": _COLOURS[number % len(_COLOURS)], "marker": _SHAPES[number % len(_SHAPES)]}
            layer = {"zorder": 4 - number / 100, "ms": min(5 + 1.5 * number, 10)}  # the first on top, with the others visible around it
            _draw(axes, strategy, [row for row in sweep.rows_of(strategy) if row.fits], unit, style | layer)
        _mark_above(axes, sweep, unit, top)
        _draw_baselines(axes, sweep, unit, top)
        impossible = [row.budget_bytes for row in sweep.rows if row.status == "infeasible"]
        if impossible:
            end = max(*impossible, sweep.smallest_budget_bytes)
            axes.axvspan(min(impossible) / unit, end / unit, color="#999999", alpha=0.25, lw=0, label="nothing fits")
        axes.axvline(sweep.keep_all_peak_bytes / unit, color="#999999", lw=0.8, ls="--", label="without recomputation")
        axes.set_xlabel(f"memory budget ({label})")
        axes.set_ylabel("cost over the ideal cost (%)")
        axes.set_title(f"{sweep.name}: cost against memory budget")
        axes.grid(alpha=0.3, lw=0.5)
        figure.legend(loc="outside lower center", ncols=4, frameon=False, fontsize=9)
        buffer = BytesIO()
        kind = path.suffix[1:].lower()
        metadata: dict[str, Any] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind, {})
        figure.savefig(buffer, format=kind, dpi=150, metadata=metadata)
    return buffer.getvalue()


def _draw(axes: Any, strategy: str, rows: list[SweepRow], unit: float, style: dict[str, Any]) -> None:
    """A step function: between two budgets, only the schedule of the smaller one is known to fit."""
    budgets = [row.budget_bytes / unit for row in rows]
    costs = [100 * (row.overhead or 0.0) for row in rows]
    axes.plot(budgets, costs, drawstyle="steps-post", lw=1.6, label=strategy, **style)
    bounds = [(row.budget_bytes / unit, 100 * ((row.overhead or 0.0) - _below(row))) for row in rows if (row.gap or 0.0) > 0.002]
    proven = [(budget, bound) for budget, bound in bounds if bound > 0.01]
    if proven:
        axes.plot(*zip(*proven, strict=True), ls="", marker="_", ms=9, color=style["color"], alpha=0.6, label=f"proven for {strategy}")


def _mark_above(axes: Any, sweep: Sweep, unit: float, top: float) -> None:
    """Points above the scale are marked at its end, with their figure; strategies that coincide there share a mark."""
    colours = {strategy: _COLOURS[number % len(_COLOURS)] for number, strategy in enumerate(sweep.strategies)}
    above = [row for row in sweep.rows if row.overhead is not None and row.overhead > _HEADROOM * top]
    for row in {(row.budget_bytes, round(row.overhead or 0.0, 2)): row for row in reversed(above)}.values():
        place = (row.budget_bytes / unit, 100 * (1 + _HEADROOM) / 2 * top)
        axes.plot(*place, marker="^", ms=6, ls="", color=colours[row.strategy], zorder=5)
        _write_beside(axes, place, f"{100 * (row.overhead or 0.0):,.0f} %", colours[row.strategy])


def _below(row: SweepRow) -> float:
    """How far the bound is below the cost, as a share of the ideal cost."""
    assert row.cost is not None
    assert row.bound is not None
    assert row.overhead is not None
    return (row.cost - row.bound) / row.cost * (1 + row.overhead)


def _draw_baselines(axes: Any, sweep: Sweep, unit: float, top: float) -> None:
    """The baselines that fit into the plot; baselines at the same point share a mark."""
    marks: dict[tuple[float, float], list[str]] = {}
    for baseline in sweep.baselines:
        if 0 < baseline.overhead <= top and baseline.strategy not in sweep.strategies:
            marks.setdefault((baseline.peak_bytes / unit, round(100 * baseline.overhead, 1)), []).append(baseline.strategy)
    for place, names in marks.items():
        axes.plot(*place, marker="x", ms=6, color="#555555", ls="", zorder=5)
        _write_beside(axes, place, ", ".join(names), "#555555")


def _write_beside(axes: Any, place: tuple[float, float], text: str, colour: str) -> None:
    """A label to the right of a mark, or to its left if there is no room; no line crosses it."""
    left, right = axes.get_xlim()
    turned = place[0] > left + 0.7 * (right - left)
    paper = {"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 0.5}
    offset, side = (-8, "right") if turned else (8, "left")
    axes.annotate(
        text, place, textcoords="offset points", xytext=(offset, 0), ha=side, va="center", fontsize=8, color=colour, bbox=paper, zorder=6
    )


def _unit(largest: int) -> tuple[float, str]:
    for factor, name in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if largest >= factor:
            return factor, name
    return 1.0, "bytes"
