"""Outputs appear whole or not at all."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest

from checkmate.core.errors import InputError
from checkmate.io.formats.atomic import atomic_write, check_writable


def test_writes_and_replaces_and_leaves_nothing_else(tmp_path: Path) -> None:
    target = tmp_path / "out.json"
    atomic_write(target, b"one")
    atomic_write(target, b"two")
    assert target.read_bytes() == b"two"
    assert list(tmp_path.iterdir()) == [target]


def test_mode_follows_the_umask_and_an_old_file_keeps_its_own(tmp_path: Path) -> None:
    target = tmp_path / "out.json"
    previous = os.umask(0o027)
    try:
        atomic_write(target, b"")
        assert stat.S_IMODE(target.stat().st_mode) == 0o640
        target.chmod(0o604)
        atomic_write(target, b"")
        assert stat.S_IMODE(target.stat().st_mode) == 0o604
    finally:
        os.umask(previous)


def test_a_link_keeps_pointing_and_its_target_is_written(tmp_path: Path) -> None:
    target, link = tmp_path / "real.json", tmp_path / "link.json"
    link.symlink_to(target)
    atomic_write(link, b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"


def test_a_link_out_of_the_folder_is_refused_or_replaced_and_never_followed(tmp_path: Path) -> None:
    """As in a folder that somebody else has prepared: `model.schedule.json -> ~/.bashrc`."""
    (tmp_path / "home").mkdir()
    (tmp_path / "work").mkdir()
    precious, link = tmp_path / "home" / "precious", tmp_path / "work" / "out.json"
    precious.write_bytes(b"old")
    link.symlink_to(precious)
    for write in (check_writable, lambda path: atomic_write(path, b"new")):
        with pytest.raises(InputError, match=r"it is a link to .*precious, in another folder; delete the link"):
            write(link)
    atomic_write(link, b"new", follow_links=False)
    assert not link.is_symlink()
    assert (link.read_bytes(), precious.read_bytes()) == (b"new", b"old")


def test_a_folder_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "results").symlink_to(tmp_path / "disk")
    atomic_write(tmp_path / "results" / "out.json", b"new")
    assert (tmp_path / "disk" / "out.json").read_bytes() == b"new"


def test_a_pipe_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    received: list[bytes] = []
    reader = threading.Thread(target=lambda: received.append(pipe.read_bytes()))
    reader.start()
    check_writable(pipe)
    atomic_write(pipe, b"through")
    reader.join(10)
    assert received == [b"through"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_failure_leaves_the_old_file_and_no_temporary_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "out.json"
    target.write_bytes(b"old")

    def full_disk(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(InputError, match=r"^cannot write .*out\.json: no space left on device$"):
        atomic_write(target, b"new")
    assert target.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [target]


def test_interruption_leaves_no_temporary_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(descriptor: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        atomic_write(tmp_path / "out.json", b"new")
    assert list(tmp_path.iterdir()) == []


def test_places_that_cannot_be_written_are_refused_in_advance_and_when_writing(tmp_path: Path) -> None:
    for place, reason in ((tmp_path, "directory|folder"), (tmp_path / "none" / "out.json", "no such file|does not exist")):
        for attempt in (check_writable, lambda path: atomic_write(path, b"")):
            with pytest.raises(InputError, match=f"cannot write {place}: .*({reason})"):
                attempt(place)
    check_writable(tmp_path / "out.json")
