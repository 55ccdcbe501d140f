"""Patterns of files: as `glob` has them, but never for long."""

from __future__ import annotations

import glob
import os
from pathlib import Path

import pytest

from checkmate.core.errors import InputError
from checkmate.io.formats import file_patterns
from checkmate.io.formats.file_patterns import matching_files

FILES = ("a.onnx", "b.json", "models/a.onnx", "models/deep/b.onnx", "models/deep/er/c.onnx", "models/.hidden/x.onnx", ".h.onnx")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "models" / "loop").symlink_to(tmp_path / "models")
    return tmp_path


@pytest.mark.parametrize(
    "pattern",
    [
        *("*.onnx", "models/*.onnx", "**/*.onnx", "models/**/b.onnx", "*/deep/*", "**", "**/**/c.onnx", "models/**", ".*.onnx"),
        *("a.onnx", "none", "[ab].*", "?.json", "./*.json", "models/../*.json", "**/deep/**/*.onnx", "models//deep/*.onnx"),
    ],
)
def test_as_glob_has_it(folder: Path, pattern: str) -> None:
    """Except that folders behind links are not searched by `**`."""
    names = (name for name in glob.iglob(pattern, root_dir=folder, recursive=True) if os.path.isfile(folder / name))
    expected = {os.path.normpath(folder / name) for name in names if "loop" not in name}
    assert {os.path.normpath(path) for path in matching_files(pattern, folder)} == expected
    assert matching_files(pattern, folder) == sorted(matching_files(pattern, folder))
    absolute = f"{glob.escape(str(folder))}/{pattern}"
    assert {os.path.normpath(path) for path in matching_files(absolute, Path("/elsewhere"))} == expected


def test_a_search_has_an_end(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also one of combinations: `**` before and after folders that match again and again."""
    monkeypatch.setattr(file_patterns, "MOST_ENTRIES", 200)
    assert len(matching_files("**/*.onnx", folder)) == 4
    for pattern in ("../../../../../../**/*.onnx", "/**/*.onnx", "**/*/**/*/**/*/**/*/**/*.none"):
        with pytest.raises(InputError, match="searches too many folders: begin it with the folder of the graphs"):
            matching_files(pattern, folder)


def test_names_that_no_file_can_have(folder: Path) -> None:
    assert matching_files("*\0*", folder) == []
    assert matching_files("**/a\0/*", folder) == []
