"""How much and in which form to print. Known as soon as the options are read, so that errors are printed in the right form too."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TextIO


@dataclass(slots=True)
class Console:
    """Set by the eager options of every command; the only mutable object that is passed through the command line."""

    json: bool = False
    quiet: bool = False
    verbose: bool = False
    config_path: str | None = None
    arguments: tuple[str, ...] = ()
    """The command line, for the log."""
    is_logged: bool = False
    """The log is written somewhere: to a file, or to stderr with --verbose."""
    json_was_written: bool = False
    """`--json` prints exactly one object: an error after the result does not print another."""

    def emit_json(self, fields: Mapping[str, Any]) -> None:
        """Print the object of `--json` on stdout."""
        sys.stdout.write(json.dumps(fields, indent=2, allow_nan=False) + "\n")
        self.json_was_written = True

    def note(self, text: str) -> None:
        """Print information that is not a result on stderr, unless --quiet is set."""
        self.log(text, "warning" if text.startswith("warning: ") else "info")
        if not self.quiet:
            print(text, file=sys.stderr)

    def log(self, text: str, level: Literal["info", "warning", "error"] = "info") -> None:
        """Write to the log file, if there is one."""
        if self.is_logged:
            from .log import LOG

            getattr(LOG, level)("%s", text)

    def detail(self, text: str) -> None:
        """Print on stderr, with --verbose only."""
        if self.verbose:
            print(text, file=sys.stderr)


def wants_colour(stream: TextIO) -> bool:
    """True on a terminal that supports colour, unless the user turned it off (no-color.org)."""
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or (stream.isatty() and os.environ.get("TERM") != "dumb")


def speaks_unicode(stream: TextIO) -> bool:
    """Can the stream show block characters and box lines?"""
    return (stream.encoding or "").lower().replace("-", "").startswith("utf")
