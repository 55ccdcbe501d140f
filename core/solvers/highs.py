"""HiGHS through highspy: embedded, open source, the default."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..errors import UnavailableError
from ..events import Watch
from ..milp.standard_form import StandardForm
from ..result import Status, Stop
from ..settings import Settings
from .base import Progress, SolverResult, ignore, without_columns

STOPS = {"kOptimal": Stop.FINISHED, "kInfeasible": Stop.FINISHED, "kTimeLimit": Stop.TIME_LIMIT, "kInterrupt": Stop.INTERRUPTED}
"""HiGHS model status -> why it stopped."""


class Highs:
    """Drives highspy with the matrix, a start and callbacks."""

    name = "highs"

    def require(self) -> None:
        try:
            import highspy  # noqa: F401
        except ImportError:
            raise UnavailableError("the solver HiGHS is missing: pip install highspy") from None

    def version(self) -> str:
        import highspy

        return str(highspy.Highs().version())

    def solve(
        self,
        form: StandardForm,
        settings: Settings,
        watch: Watch,
        start: Mapping[int, float] | None = None,
        on_progress: Progress = ignore,
    ) -> SolverResult:
        if not form.columns:
            return without_columns(form)
        import highspy

        highs = highspy.Highs()
        options = {
            "output_flag": False,
            "time_limit": max(watch.remaining, 0.01),
            "mip_rel_gap": settings.gap,
            "mip_abs_gap": 1e-9,
            "random_seed": settings.seed,
            "threads": settings.threads or 0,
        }
        for option, value in options.items():
            highs.setOptionValue(option, value)
        highs.passModel(_lp(form))
        if start:
            columns = np.fromiter(start, np.int32, len(start))
            highs.setSolution(len(start), columns, np.fromiter(start.values(), np.float64, len(start)))
        is_mip = bool(form.integer.any())
        self._listen(highs, watch, on_progress, form.offset)
        highs.run()
        return _result(highs, is_mip)

    def _listen(self, highs: Any, watch: Watch, on_progress: Progress, offset: float) -> None:
        def stop_if_asked(event: Any) -> None:
            if watch.interrupted():
                event.interrupt()

        def tell(event: Any) -> None:
            incumbent, bound = event.data_out.mip_primal_bound, event.data_out.mip_dual_bound
            on_progress(incumbent if abs(incumbent) < 1e29 else None, bound if abs(bound) < 1e29 else None)

        highs.cbMipInterrupt += stop_if_asked
        highs.cbSimplexInterrupt += stop_if_asked
        highs.cbIpmInterrupt += stop_if_asked
        highs.cbMipImprovingSolution += tell
        highs.cbMipLogging += tell


def _lp(form: StandardForm) -> Any:
    import highspy

    lp = highspy.HighsLp()
    lp.num_col_ = form.columns
    lp.num_row_ = len(form.row_lower)
    lp.col_cost_ = form.objective
    lp.offset_ = form.offset
    lp.col_lower_ = form.column_lower
    lp.col_upper_ = form.column_upper
    lp.row_lower_ = form.row_lower
    lp.row_upper_ = form.row_upper
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.start_ = form.matrix.indptr
    lp.a_matrix_.index_ = form.matrix.indices
    lp.a_matrix_.value_ = form.matrix.data
    if form.integer.any():
        kinds = (highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger)
        lp.integrality_ = [kinds[int(whole)] for whole in form.integer]
    return lp


def _result(highs: Any, is_mip: bool) -> SolverResult:
    word = highs.getModelStatus().name
    if word == "kInfeasible":
        return SolverResult(Status.INFEASIBLE, Stop.FINISHED, bound=np.inf)
    stop = STOPS.get(word)
    if stop is None:
        raise UnavailableError(f"HiGHS stopped with {word[1:]}; try another --solver or --formulation")
    info = highs.getInfo()
    feasible = info.primal_solution_status == 2
    values = np.array(highs.getSolution().col_value) if feasible else None
    proven = info.mip_dual_bound if is_mip else info.objective_function_value if word == "kOptimal" else -np.inf
    bound = float(proven)
    if word == "kOptimal":
        return SolverResult(Status.OPTIMAL, stop, values, bound)
    return SolverResult(Status.FEASIBLE if feasible and is_mip else Status.UNKNOWN, stop, values if is_mip else None, bound)
