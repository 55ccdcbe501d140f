"""Atomic writes: a reader of the file sees the old content or the new, never a part of it."""

from __future__ import annotations

import logging
import os
import secrets
import stat
import time
from contextlib import suppress
from pathlib import Path

from ...core.errors import InputError

_LOG = logging.getLogger("checkmate.files")


def check_writable(path: Path) -> None:
    """Raise an error if a file cannot be written; called before the long work starts."""
    try:
        if path.is_dir():
            raise InputError(f"cannot write {path}: it is a folder; name a file in it")
        if _is_special(path):
            if not os.access(path, os.W_OK):
                raise InputError(f"cannot write {path}: permission denied")
            return
        folder = _target(path).parent
        if not folder.is_dir():
            raise InputError(f"cannot write {path}: the folder {folder} does not exist; create it")
        if not os.access(folder, os.W_OK | os.X_OK):
            raise InputError(f"cannot write {path}: the folder {folder} is not writable")
        _try_to_make_a_file(folder)
    except OSError as error:
        raise _unwritable(path, error) from None


def _try_to_make_a_file(folder: Path) -> None:
    """Permissions are not enough to know: a file system may be full, a folder immutable."""
    trial = folder / f".checkmate-{secrets.token_hex(8)}.tmp"
    os.close(os.open(trial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
    trial.unlink()


def atomic_write(path: Path, data: bytes, *, follow_links: bool = True) -> None:
    """Write to a temporary file beside the target, then rename it over the target. The mode of an old file is kept.

    A link to a file in the same folder is followed; one that leads out of it is refused, because somebody else may have put it there.
    Without `follow_links`, a link is replaced. Devices and pipes (`/dev/null`, `>(...)`) are written to directly: renaming would replace
    them.
    """
    begun = time.perf_counter()
    _write(path, data, follow_links)
    _LOG.info("wrote %s: %d bytes in %.3f s", path, len(data), time.perf_counter() - begun)


def _write(path: Path, data: bytes, follow_links: bool) -> None:
    try:
        if follow_links and _is_special(path):
            path.write_bytes(data)
            return
        target = _target(path) if follow_links else path
        temporary = target.with_name(f".checkmate-{secrets.token_hex(8)}.tmp")
        try:
            with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666), "wb") as file:
                if target.exists() and not target.is_symlink():
                    os.fchmod(file.fileno(), stat.S_IMODE(target.stat().st_mode))
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, target)
        except BaseException:
            with suppress(OSError):
                temporary.unlink()
            raise
    except OSError as error:
        raise _unwritable(path, error) from None


def _target(path: Path) -> Path:
    """The file that is written: the path itself, or what it links to."""
    target = Path(os.path.realpath(path))
    if path.is_symlink() and target.parent != Path(os.path.realpath(path.parent)) and not _is_descriptor(path):
        raise InputError(f"cannot write {path}: it is a link to {target}, in another folder; delete the link, or name the file it leads to")
    return target


def _is_descriptor(path: Path) -> bool:
    """True for `/dev/stdout` and `/dev/fd/3`, which may lead to a file."""
    return os.path.abspath(path).startswith(("/dev/", "/proc/"))


def _is_special(path: Path) -> bool:
    """True for a device, a pipe or a socket."""
    return path.exists() and not path.is_file() and not path.is_dir()


def _unwritable(path: Path, error: OSError) -> InputError:
    return InputError(f"cannot write {path}: {(error.strerror or str(error)).lower()}")
