"""Gurobi through gurobipy. Gurobi is commercial; the licence in the wheel covers models of up to 2,000 variables and 2,000 constraints."""

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


class Gurobi:
    """Calls gurobipy with the matrix, a start and a callback."""

    name = "gurobi"

    def require(self) -> None:
        try:
            import gurobipy  # noqa: F401
        except ImportError:
            raise UnavailableError("the solver Gurobi is missing: pip install 'checkmate-remat[gurobi]' (or gurobipy)") from None

    def version(self) -> str:
        import gurobipy

        return ".".join(map(str, gurobipy.gurobi.version()))

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
        import gurobipy as gp

        try:
            with gp.Env(empty=True) as env:
                env.setParam("OutputFlag", 0)
                env.start()
                with gp.Model(env=env) as model:
                    return self._solve(gp, model, form, settings, watch, start, on_progress)
        except gp.GurobiError as error:
            if error.errno == gp.GRB.Error.SIZE_LIMIT_EXCEEDED:
                size = f"{form.columns} variables and {len(form.row_lower)} constraints"
                raise UnavailableError(
                    f"Gurobi's licence is too small for this model ({size}; the free one covers 2000 of each): use --solver highs"
                ) from None
            raise UnavailableError(f"Gurobi cannot be used: {error}; use --solver highs") from None

    def _solve(
        self,
        gp: Any,
        model: Any,
        form: StandardForm,
        settings: Settings,
        watch: Watch,
        start: Mapping[int, float] | None,
        on_progress: Progress,
    ) -> SolverResult:
        grb = gp.GRB
        model.Params.TimeLimit = max(watch.remaining, 0.01)
        model.Params.MIPGap = settings.gap
        model.Params.MIPGapAbs = 1e-9
        if settings.nodes is not None:
            model.Params.NodeLimit = settings.nodes
        if settings.good_enough is not None:
            model.Params.BestObjStop = settings.good_enough
        model.Params.Seed = settings.seed % 2_000_000_000
        model.Params.Threads = settings.threads or 0
        kinds = np.where(form.integer, grb.INTEGER, grb.CONTINUOUS)
        x = model.addMVar(form.columns, lb=form.column_lower, ub=form.column_upper, vtype=kinds, obj=form.objective)
        model.ObjCon = form.offset
        from scipy.sparse import csc_array

        shape = (form.matrix.rows, form.matrix.columns)
        matrix = csc_array((form.matrix.data, form.matrix.indices, form.matrix.indptr), shape=shape).tocsr()
        equal = form.row_lower == form.row_upper
        upper = ~equal & np.isfinite(form.row_upper)
        lower = ~equal & ~upper
        for rows, sense, side in ((equal, "=", form.row_upper), (upper, "<", form.row_upper), (lower, ">", form.row_lower)):
            if rows.any():
                model.addMConstr(matrix[rows], x, sense, side[rows])
        if start:
            for column, value in start.items():
                x[column].Start = value

        def callback(_: Any, where: int) -> None:
            if watch.interrupted():
                model.terminate()
            if where == grb.Callback.MIP:
                best, bound = model.cbGet(grb.Callback.MIP_OBJBST), model.cbGet(grb.Callback.MIP_OBJBND)
                on_progress(best if best < 1e99 else None, bound if bound > -1e99 else None)

        model.optimize(callback)
        return _result(model, grb, bool(form.integer.any()))


def _result(model: Any, grb: Any, is_mip: bool) -> SolverResult:
    stops = {
        grb.OPTIMAL: Stop.FINISHED,
        grb.NODE_LIMIT: Stop.FINISHED,
        grb.USER_OBJ_LIMIT: Stop.FINISHED,
        grb.TIME_LIMIT: Stop.TIME_LIMIT,
        grb.INTERRUPTED: Stop.INTERRUPTED,
    }
    if model.Status in (grb.INFEASIBLE, grb.INF_OR_UNBD):
        return SolverResult(Status.INFEASIBLE, Stop.FINISHED, bound=np.inf)
    if model.Status not in stops:
        raise UnavailableError(f"Gurobi stopped with status {model.Status}; try another --solver or --formulation")
    values = np.array(model.getAttr("X", model.getVars())) if model.SolCount else None
    if model.Status == grb.OPTIMAL:
        return SolverResult(Status.OPTIMAL, Stop.FINISHED, values, float(model.ObjBound if is_mip else model.ObjVal))
    bound = float(model.ObjBound) if is_mip else -np.inf
    found = values is not None and is_mip
    return SolverResult(Status.FEASIBLE if found else Status.UNKNOWN, stops[model.Status], values if is_mip else None, bound)
