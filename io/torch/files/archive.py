"""The archive of a PyTorch program, a `.pt2` file as `torch.export.save` writes it: a zip file of JSON and raw tensors.

Nothing in it is unpickled. `torch.export.load` would unpickle the sample inputs, tensors of subclasses and objects of the user, and would
evaluate expressions; here the program is read as plain JSON, tensors as plain bytes, and files that need more are refused. Needs no torch.
"""

from __future__ import annotations

import struct
import zipfile
import zlib
from dataclasses import dataclass, field
from functools import cached_property
from io import BytesIO
from pathlib import Path

from ....core.errors import InputError
from ...formats.content import Content
from ...formats.strict_json import Fields, parse_json
from .program_json import Program, TensorMeta, parse_program, parse_tensor_meta

MAGIC = b"PK\x03\x04"
LARGEST_JSON = 2**28
"""Bytes. The program of a transformer of 48 layers takes 20 MB."""
MODEL = "models/model.json"
WEIGHTS, CONSTANTS = "data/weights/", "data/constants/"
NOTES = "extra/checkmate.json"
"""What checkmate writes into compiled programs: budget, peak and overhead."""
_DAMAGES = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, ValueError, KeyError, RuntimeError)
"""The exceptions of zipfile for damaged files; NotImplementedError (unknown compression) is a RuntimeError."""


@dataclass(frozen=True, slots=True)
class Payload:
    """A tensor in the archive: the entry with its bytes, and where in them it lies."""

    entry: str
    meta: TensorMeta
    is_parameter: bool


@dataclass(frozen=True)
class ProgramArchive:
    """A `.pt2` file, read only as far as needed."""

    where: str
    path: Path | None
    received: bytes | None = field(default=None, repr=False)

    @cached_property
    def program(self) -> Program:
        """The program in the file."""
        return parse_program(parse_json(self.read(MODEL, LARGEST_JSON), f"{self.where}: {MODEL}"), f"{self.where}: {MODEL}")

    @cached_property
    def payloads(self) -> dict[str, Payload]:
        """Parameters, buffers and constants by name. A tensor that is stored as a pickle is refused."""
        found: dict[str, Payload] = {}
        for folder, config in ((WEIGHTS, "model_weights_config.json"), (CONSTANTS, "model_constants_config.json")):
            name = folder + config
            if name not in self._entries:
                raise InputError(f"{self.where}: {name} is missing; save the program again with torch.export.save of torch 2.9 or newer")
            table = Fields(parse_json(self.read(name, LARGEST_JSON), f"{self.where}: {name}"), f"{self.where}: {name}").child("config")
            for key in table.content:
                found[key] = self._payload(table.child(key), folder)
        return found

    def _payload(self, fields: Fields, folder: str) -> Payload:
        entry = fields.text("path_name")
        if fields.flag("use_pickle") or not entry.startswith(("weight_", "tensor_")):
            fields.fail(
                "", "this is stored as a pickled object, which is never loaded; use plain tensors for parameters, buffers and constants"
            )
        if "/" in entry or "\\" in entry:
            fields.fail("path_name", "a name of an entry cannot be a path")
        return Payload(folder + entry, parse_tensor_meta(fields.child("tensor_meta")), fields.flag("is_param"))

    @property
    def notes(self) -> dict[str, object]:
        """What checkmate wrote into the file; nothing if it did not write it."""
        if NOTES not in self._entries:
            return {}
        return Fields(parse_json(self.read(NOTES, LARGEST_JSON), f"{self.where}: {NOTES}"), f"{self.where}: {NOTES}").content

    def read(self, name: str, most: int) -> bytes:
        """The bytes of an entry, at most so many."""
        if name not in self._entries:
            raise InputError(f"{self.where}: {name} is missing: this is not a program that torch.export.save wrote")
        try:
            with self._open() as archive, archive.open(self._entries[name]) as entry:
                data = entry.read(most + 1)
        except OSError as error:
            raise InputError(f"{self.where}: cannot be read: {(error.strerror or str(error)).lower()}") from None
        except _DAMAGES as error:
            raise InputError(f"{self.where}: {name} is damaged: {_one_line(error)}") from None
        if len(data) > most:
            raise InputError(f"{self.where}: {name} has more than {most} bytes")
        return data

    @cached_property
    def _entries(self) -> dict[str, str]:
        """Names without the folder that contains everything."""
        try:
            with self._open() as archive:
                names = archive.namelist()
        except OSError as error:
            raise InputError(f"{self.where}: cannot be read: {(error.strerror or str(error)).lower()}") from None
        except _DAMAGES as error:
            raise InputError(f"{self.where}: a damaged zip file: {_one_line(error)}") from None
        root = names[0].split("/")[0] if names else ""
        entries = {name.removeprefix(f"{root}/"): name for name in names}
        if "serialized_exported_program.json" in names:
            raise InputError(f"{self.where}: a program of an old torch; load it there and save it with torch 2.9 or newer")
        if "archive_format" not in entries:
            raise InputError(f"{self.where}: a zip file, but not a PyTorch program (.pt2); torch.export.save writes one")
        return entries

    def check(self) -> None:
        """Check that the archive contains one program."""
        if self.read("archive_format", 16) != b"pt2":
            raise InputError(f"{self.where}: not a PyTorch program: its archive_format is not pt2")
        if self.read("archive_version", 16).strip() != b"0":
            raise InputError(f"{self.where}: this version of the .pt2 format is not known; update checkmate")
        others = [name for name in self._entries if name.startswith("models/") and name != MODEL]
        if MODEL not in self._entries or others:
            raise InputError(f"{self.where}: expected one program called 'model', found {', '.join(sorted(others)[:3]) or 'none'}")

    def _open(self) -> zipfile.ZipFile:
        return zipfile.ZipFile(self.path if self.path is not None else BytesIO(self.received or b""))


def is_archive(content: Content) -> bool:
    return content.head.startswith(MAGIC)


def open_archive(content: Content) -> ProgramArchive:
    """The archive of a file, checked to contain one program."""
    archive = ProgramArchive(content.where, content.path, content.received)
    archive.check()
    return archive


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__
