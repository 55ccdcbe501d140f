"""The output files: names derived from the input and `-o`, checked before the long work starts; the input is never overwritten."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path

from ...api.graph import LoadedGraph
from ...core.errors import InputError

SCHEDULE_SUFFIX = ".schedule.json"
MODEL_SUFFIX = ".remat.onnx"
TORCH_SUFFIX = ".remat.pt2"
REPORT_SUFFIX = ".report.html"


@dataclass(frozen=True, slots=True)
class Destinations:
    """The files to write; what is None is not written. A schedule for stdout has `to_stdout` and no path."""

    schedule: Path | None
    model: Path | None
    to_stdout: bool = False

    @property
    def paths(self) -> list[Path]:
        return [path for path in (self.schedule, self.model) if path is not None]

    def without_model(self) -> Destinations:
        return replace(self, model=None)

    def for_model(self, loaded: LoadedGraph) -> Destinations:
        """The same for the kind of model that was loaded: a PyTorch program is compiled to one, a JSON graph to none."""
        if self.model is None or not loaded.can_be_compiled:
            return self.without_model()
        if loaded.torch is None:
            if self.model.suffix == ".pt2":
                raise InputError(f"{str(self.model)!r}: an ONNX model is compiled to an ONNX model; choose a name that ends in .onnx")
            return self
        if not self.model.name.endswith((MODEL_SUFFIX, ".pt2")):
            raise InputError(f"{str(self.model)!r}: a PyTorch program is compiled to one; choose a name that ends in .pt2")
        return replace(self, model=Path(str(self.model).removesuffix(MODEL_SUFFIX).removesuffix(".pt2") + _kept(self.model)))


def _kept(model: Path) -> str:
    """The suffix of a compiled program: as the user wrote it, or ours."""
    return TORCH_SUFFIX if model.name.endswith(MODEL_SUFFIX) else ".pt2"


def choose_destinations(source: str, output: str | None) -> Destinations:
    """`-o` is a folder, a schedule.json, a model.onnx or .pt2, a prefix or `-`. By default, outputs are named after the input."""
    if output == "-":
        return Destinations(None, None, to_stdout=True)
    stem = stem_of(source)
    if output is None:
        schedule, model = Path(stem + SCHEDULE_SUFFIX), Path(stem + MODEL_SUFFIX)
    elif output.endswith(("/", os.sep)) or Path(output).is_dir():
        schedule, model = Path(output) / (stem + SCHEDULE_SUFFIX), Path(output) / (stem + MODEL_SUFFIX)
    elif _is_device(Path(output)):
        return Destinations(Path(output), None)
    elif output.endswith(".json"):
        schedule, model = Path(output), Path(_without(output, (SCHEDULE_SUFFIX, ".json")) + MODEL_SUFFIX)
    elif output.endswith((".onnx", ".pt2")):
        schedule, model = Path(_without(output, (MODEL_SUFFIX, TORCH_SUFFIX, ".onnx", ".pt2")) + SCHEDULE_SUFFIX), Path(output)
    else:
        schedule, model = Path(output + SCHEDULE_SUFFIX), Path(output + MODEL_SUFFIX)
    return Destinations(schedule, model)


def stem_of(source: str) -> str:
    """The start of the names of outputs."""
    return "graph" if source == "-" else _without(Path(source).name, (".onnx", ".json", ".pb", ".pt2"))


def report_path(schedule: str, output: str | None) -> Path:
    """The path of the page about a schedule: named after the schedule, in the current folder or the folder of `-o`."""
    name = ("schedule" if schedule == "-" else _without(Path(schedule).name, (SCHEDULE_SUFFIX, ".json"))) + REPORT_SUFFIX
    if output is None:
        return Path(name)
    if output.endswith(("/", os.sep)) or Path(output).is_dir():
        return Path(output) / name
    if Path(output).suffix.lower() not in (".html", ".htm") and not _is_device(Path(output)):
        raise InputError(f"a report is an HTML page: {output!r} must end in .html, or in a slash if it is a folder")
    return Path(output)


def check_destinations(paths: list[Path], source: str) -> None:
    """Check that every file can be written and that none is the input. A missing folder is fine if it can be created."""
    from ...io.formats.atomic import check_writable

    for path in paths:
        if source != "-" and _same_file(path, Path(source)):
            raise InputError(f"the output {str(path)!r} would overwrite the input; choose another name with -o")
        nearest_folder = _nearest_folder(path.parent)
        check_writable(path if nearest_folder == path.parent else nearest_folder / path.name)


def make_folders(paths: list[Path]) -> None:
    for path in paths:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"cannot create the folder {str(path.parent)!r}: {error.strerror}") from None


def _without(name: str, suffixes: tuple[str, ...]) -> str:
    for suffix in suffixes:
        if name.endswith(suffix) and name != suffix:
            return name.removesuffix(suffix)
    return name


def _is_device(path: Path) -> bool:
    """`/dev/null`, `/dev/stdout` or a named pipe: takes the schedule, and no other file can be written next to it."""
    return path.exists() and not path.is_file()


def _same_file(path: Path, other: Path) -> bool:
    try:
        return path.samefile(other)
    except OSError:
        return False


def _nearest_folder(folder: Path) -> Path:
    """The folder itself, or the nearest one above it that exists."""
    try:
        while not folder.exists() and folder != folder.parent:
            folder = folder.parent
    except OSError as error:  # a name that is too long
        raise InputError(f"cannot write into the folder {str(folder)[:80]!r}: {(error.strerror or str(error)).lower()}") from None
    return folder
