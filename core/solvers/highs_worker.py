"""HiGHS in its own process, so that it can be killed when it ignores a request to stop: in presolve and between cuts.

Started by `highs.py`. It reads models from stdin, reports progress on stdout, and exits when stdin closes, so that it does not outlive the
process that started it. Solutions are sent as they are found, so that none is lost if it has to be killed.

A model may ask for pauses: after so many of the moments in which HiGHS looks whether it should stop, which come in the same places however
fast the machine is, the worker waits until it is told to go on. Other work can then be done in turn, and a run is the same every time.
"""

from __future__ import annotations

import os
import queue
import sys
import threading
from collections.abc import Mapping
from typing import IO, Any

import highspy
import numpy as np

from .wire import Array, receive, send

_HUGE = 1e29
"""HiGHS' value for no bound."""


class Worker:
    """Solves one model after another; a thread listens for requests to stop."""

    def __init__(self, incoming: IO[bytes], outgoing: IO[bytes]) -> None:
        self._incoming, self._outgoing = incoming, outgoing
        self._models: queue.SimpleQueue[tuple[dict[str, Any], dict[str, Array]]] = queue.SimpleQueue()
        self._stop_asked = threading.Event()
        self._may_go_on = threading.Event()
        self._one_at_a_time = threading.Lock()

    def run(self) -> None:
        threading.Thread(target=self._listen, daemon=True).start()
        while True:
            options, arrays = self._models.get()
            try:
                self._solve(options, arrays)
            except MemoryError:
                self._tell("failure", {"reason": "it ran out of memory"})
            except Exception as error:  # any exception of the binding: the other process reports it in one line
                self._tell("failure", {"reason": f"{type(error).__name__}: {error}"})

    def _listen(self) -> None:
        while (message := receive(self._incoming)) is not None:
            fields, arrays = message
            if fields["kind"] == "stop":
                self._stop_asked.set()
                self._may_go_on.set()
            elif fields["kind"] == "go on":
                self._may_go_on.set()
            else:
                self._stop_asked.clear()
                self._may_go_on.clear()
                self._models.put((fields, arrays))
        os._exit(0)

    def _solve(self, fields: Mapping[str, Any], arrays: Mapping[str, Array]) -> None:
        highs = highspy.Highs()
        for option, value in fields["options"].items():
            highs.setOptionValue(option, value)
        highs.passModel(_lp(arrays, fields["offset"]))
        if "start_columns" in arrays:
            columns = arrays["start_columns"]
            highs.setSolution(len(columns), columns, arrays["start_values"])
        is_mip = bool(arrays["integer"].any())
        self._call_back(highs, fields.get("pause_every"))
        highs.run()
        info = highs.getInfo()
        word = highs.getModelStatus().name
        feasible = info.primal_solution_status == 2
        proven = info.mip_dual_bound if is_mip else info.objective_function_value if word == "kOptimal" else -np.inf
        solution = highs.getSolution()
        found: dict[str, Array] = {"values": np.array(solution.col_value)} if feasible else {}
        if not is_mip and solution.dual_valid:
            found["prices"] = np.array(solution.row_dual)
        self._tell("result", {"status": word, "bound": float(proven)}, found)

    def _tell(self, kind: str, fields: Mapping[str, Any], arrays: Mapping[str, Array] | None = None) -> None:
        with self._one_at_a_time:
            send(self._outgoing, {"kind": kind, **fields}, arrays)

    def _call_back(self, highs: Any, pause_every: int | None) -> None:
        looks = 0

        def stop_if_asked(event: Any) -> None:
            if self._stop_asked.is_set():
                event.interrupt()

        def stop_or_pause(event: Any) -> None:
            nonlocal looks
            looks += 1
            if pause_every is not None and looks % pause_every == 0 and not self._stop_asked.is_set():
                self._tell("pause", _figures(event))
                self._may_go_on.wait()
                self._may_go_on.clear()
            stop_if_asked(event)

        def tell(event: Any) -> None:
            self._tell("progress", _figures(event))

        def tell_solution(event: Any) -> None:
            self._tell("progress", _figures(event), {"values": np.array(event.data_out.mip_solution)})

        highs.cbMipInterrupt += stop_or_pause
        highs.cbSimplexInterrupt += stop_if_asked
        highs.cbIpmInterrupt += stop_if_asked
        highs.cbMipImprovingSolution += tell_solution
        highs.cbMipLogging += tell


def _figures(event: Any) -> dict[str, float | None]:
    best, bound = event.data_out.mip_primal_bound, event.data_out.mip_dual_bound
    return {"best": best if abs(best) < _HUGE else None, "bound": bound if abs(bound) < _HUGE else None}


def _lp(arrays: Mapping[str, Array], offset: float) -> Any:
    lp = highspy.HighsLp()
    lp.num_col_ = len(arrays["objective"])
    lp.num_row_ = len(arrays["row_lower"])
    lp.col_cost_ = arrays["objective"]
    lp.offset_ = offset
    lp.col_lower_ = arrays["column_lower"]
    lp.col_upper_ = arrays["column_upper"]
    lp.row_lower_ = arrays["row_lower"]
    lp.row_upper_ = arrays["row_upper"]
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.start_ = arrays["starts"]
    lp.a_matrix_.index_ = arrays["indices"]
    lp.a_matrix_.value_ = arrays["entries"]
    if arrays["integer"].any():
        kinds = (highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger)
        lp.integrality_ = [kinds[int(whole)] for whole in arrays["integer"]]
    return lp


if __name__ == "__main__":
    # Output of a library must not mix with the messages.
    messages = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    Worker(sys.stdin.buffer, messages).run()
