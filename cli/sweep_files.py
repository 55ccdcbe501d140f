"""Where the curves of a sweep go: JSON, CSV and a picture, by the ending of their names, and the finished points beside them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..core.errors import InputError
from ..io.atomic import atomic_write
from ..io.json_text import json_text
from ..io.sweep_json import Sweep, render_sweep, sweep_csv
from ..io.sweep_plot import PICTURES, can_plot, plot_sweep, require_plotting
from .outputs import make_folders, stem_of

SUFFIX = ".sweep"
POINTS_SUFFIX = ".points.json"
TEXTS = (".json", ".csv")


@dataclass(frozen=True, slots=True)
class SweepFiles:
    """Files to write at the end, and the one that is written all along."""

    outputs: tuple[Path, ...]
    points: Path

    @property
    def all(self) -> list[Path]:
        return [*self.outputs, self.points]


def choose_files(source: str, wanted: Sequence[str]) -> SweepFiles:
    """Each `-o` is a file, a folder or a prefix; the last two stand for one file of each kind, a picture only if one can be drawn."""
    stem = stem_of(source) + SUFFIX
    outputs: list[Path] = []
    for name in wanted or ("",):
        if name == "-":
            raise InputError("-o -: a sweep writes files; for the curves on stdout use --json")
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
        raise InputError(f"-o {points}: files of this name keep the finished points of a sweep; choose another name")
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
