"""What the user wants to hear, known as soon as the options are read, so that even errors are told in the right way."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TextIO


@dataclass(slots=True)
class Session:
    """Set by the eager options of every command; the only mutable thing that travels through the command line."""

    json: bool = False
    quiet: bool = False
    verbose: bool = False
    config_path: str | None = None
    arguments: tuple[str, ...] = ()
    """The command line, for the log."""
    is_logged: bool = False
    """Something listens to the log: a file, or stderr with --verbose."""
    json_was_written: bool = False
    """One object is all that `--json` promises: an error after the result does not add another."""

    def emit_json(self, fields: Mapping[str, Any]) -> None:
        """The one object of `--json`, on stdout."""
        sys.stdout.write(json.dumps(fields, indent=2, allow_nan=False) + "\n")
        self.json_was_written = True

    def note(self, text: str) -> None:
        """Something worth knowing that is not a result: stderr, unless the user wants silence."""
        self.log(text, "warning" if text.startswith("warning: ") else "info")
        if not self.quiet:
            print(text, file=sys.stderr)

    def log(self, text: str, level: Literal["info", "warning", "error"] = "info") -> None:
        """Into the log file, if there is one."""
        if self.is_logged:
            from .log import LOG

            getattr(LOG, level)("%s", text)

    def detail(self, text: str) -> None:
        """Only with --verbose."""
        if self.verbose:
            print(text, file=sys.stderr)


def wants_colour(stream: TextIO) -> bool:
    """On a terminal that can, unless the user said no (no-color.org)."""
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or (stream.isatty() and os.environ.get("TERM") != "dumb")


def speaks_unicode(stream: TextIO) -> bool:
    """Can the stream show block characters and box lines?"""
    return (stream.encoding or "").lower().replace("-", "").startswith("utf")
