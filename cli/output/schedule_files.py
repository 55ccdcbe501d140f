"""Write a solved schedule and the model compiled from it. If the model cannot be made, neither is written."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from ...api.graph import LoadedGraph
from ...api.result import Result
from ...api.training import save_training
from ..options.destinations import Destinations, make_folders


def check_model_can_be_written(loaded: LoadedGraph, destinations: Destinations) -> None:
    """External weights of the model may have to be copied: report anything that prevents it before the long work starts."""
    if destinations.model is None or loaded.onnx is None:
        return
    from ...io.onnx.proto.external import external_copies

    external_copies(loaded.onnx.proto, destinations.model, loaded.onnx.path)


def write_results(
    result: Result, destinations: Destinations, *, anchor: str = "full", report: Path | None = None, training: Sequence[Path] = ()
) -> list[Path]:
    """Write all files that were asked for and return their paths; `training` are the paths for a training graph and its initial values."""
    schedule = result.schedule
    reports: list[Path] = []
    if report is not None:
        make_folders([report])
        reports.append(schedule.report(report))
    if destinations.to_stdout:
        sys.stdout.flush()
        sys.stdout.buffer.write(schedule.text())
        return reports
    make_folders(destinations.paths)
    models = [] if destinations.model is None else result.save_model(destinations.model, anchor)
    assert destinations.schedule is not None
    schedule.save(destinations.schedule)
    written = [destinations.schedule, *models, *reports]
    return written + (save_training(result.priced.loaded, *training) if training else [])
