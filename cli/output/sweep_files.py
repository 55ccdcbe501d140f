"""The output files of a sweep: JSON, CSV and a plot, chosen by their suffix, and the file of finished points next to them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ...core.errors import InputError
from ...io.formats.atomic import atomic_write
from ...io.formats.json_text import json_text
from ...io.formats.sweep_json import Sweep, render_sweep, sweep_csv
from ...io.report.sweep_plot import PICTURES, can_plot, plot_sweep, require_plotting
from ..options.destinations import make_folders, stem_of

SUFFIX = ".sweep"
POINTS_SUFFIX = ".points.json"
TEXTS = (".json", ".csv")


@dataclass(frozen=True, slots=True)
class SweepFiles:
    """Files to write at the end, and the file of points that is written during the sweep."""

    outputs: tuple[Path, ...]
    points: Path

    @property
    def all(self) -> list[Path]:
        return [*self.outputs, self.points]


def choose_files(source: str, wanted: Sequence[str]) -> SweepFiles:
    """Each `-o` is a file, a folder or a prefix; the last two mean one file of each kind (a plot only if matplotlib is installed)."""
    stem = stem_of(source) + SUFFIX
    outputs: list[Path] = []
    for name in wanted or ("",):
        if name == "-":
            raise InputError("-o - is not supported: a sweep writes several files; --json prints the curves on stdout")
        if name and Path(name).suffix.lower() in (*TEXTS, *PICTURES) and not Path(name).is_dir():
            outputs.append(Path(name))
            continue
        folder = not name or name.endswith(("/", os.sep)) or Path(name).is_dir()
        prefix = str(Path(name) / stem) if folder else name
        outputs += [Path(prefix + ending) for ending in (*TEXTS, *([PICTURES[0]] if can_plot() else []))]
    if any(path.suffix.lower() in PICTURES for path in outputs):
        require_plotting()
    unique = tuple(dict.fromkeys(outputs))
    points = unique[0].with_suffix(POINTS_SUFFIX)
    if points in unique:
        raise InputError(f"-o {points}: names that end like this are reserved for the finished points of a sweep; choose another name")
    return SweepFiles(unique, points)


def write_files(sweep: Sweep, files: SweepFiles) -> None:
    make_folders(files.all)
    for path in files.outputs:
        match path.suffix.lower():
            case ".json":
                data = json_text(render_sweep(sweep)).encode("utf-8", "backslashreplace")
            case ".csv":
                data = sweep_csv(sweep.rows).encode("utf-8", "backslashreplace")
            case _:
                data = plot_sweep(sweep, path)
        atomic_write(path, data)
