"""Report every failure of a command: one line on stderr, and under `--json` one object on stdout."""

from __future__ import annotations

import errno
import os
import sys
import traceback
from collections.abc import Sequence
from typing import Any

import click

from ..core.errors import CheckmateError, InterruptedWorkError
from .console import Console, wants_colour
from .exit_codes import ExitCode, meaning_of
from .next_step import next_step
from .options.command import HELP_NAMES, Option


def report(error: BaseException, console: Console, arguments: Sequence[str]) -> ExitCode:
    """Print what went wrong, and return the exit code."""
    code, status, message = explain(error)
    if code is ExitCode.BUG:
        _show_traceback(error, console)
    label = "\x1b[1;31merror:\x1b[0m" if wants_colour(sys.stderr) else "error:"
    message += next_step(error, arguments)
    print(label, one_line(message), file=sys.stderr)
    where = "".join(traceback.format_exception(error)) if code is ExitCode.BUG else ""
    console.log("\n".join((one_line(message), where)) if where else one_line(message), "error")
    if _wants_json(console, arguments) and not console.json_was_written:
        details: dict[str, Any] = getattr(error, "details", {})
        fields = {"format": "checkmate-error", "version": 1, "status": status, "error": one_line(message), "exit_code": int(code)}
        console.emit_json(fields | details)
    return code


def one_line(text: str) -> str:
    """File and operation names may contain any characters; a message is one line of printable ones."""
    joined = " ".join(line.strip() for line in text.splitlines())
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in joined)


def explain(error: BaseException) -> tuple[ExitCode, str, str]:
    """The exit code of an error, its `status` under `--json`, and the message for the user."""
    match error:
        case CheckmateError():
            code, status = meaning_of(error)
            return code, status, str(error)
        case click.UsageError():
            return ExitCode.INPUT, "error", f"{_usage_message(error)}{_where_to_look(error)}"
        case click.ClickException():
            return ExitCode.INPUT, "error", error.format_message()
        case KeyboardInterrupt() | click.Abort():
            return *meaning_of(InterruptedWorkError()), "interrupted; nothing was written"
        case _ if _is_lack_of_memory(error):
            return ExitCode.LIMIT, "unknown", "the machine has too little memory for this graph; nothing was written"
        case FileNotFoundError() if error.filename is None:
            return ExitCode.INPUT, "error", f"{_lowered(str(error.strerror or error))}; set the environment variable TMPDIR to a folder"
        case OSError() if error.strerror:
            # Errors on files have a file name; one without is a write to stdout.
            place = f"{error.filename}: " if error.filename else "cannot write to stdout: "
            return ExitCode.INPUT, "error", f"{place}{error.strerror}"
        case _:
            what = f"{type(error).__name__}: {error}".rstrip(": ")
            return ExitCode.BUG, "bug", f"this is a bug in checkmate: {what} (please report it; CHECKMATE_DEBUG=1 shows the traceback)"


_OUT_OF_MEMORY = (
    *("can't start new thread", "failed to map segment", "Cannot allocate memory", "bad_alloc", "Unable to allocate"),
    *("Arena alloc failed", "without exception set", "without setting an exception"),
)
"""The last two: an extension module failed to make the object that says so."""


def _is_lack_of_memory(error: BaseException | None) -> bool:
    """Libraries report a lack of memory in many ways, and some wrap it in an error of their own."""
    while error is not None:
        if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == errno.ENOMEM):
            return True
        if isinstance(error, Exception) and any(words in str(error) for words in _OUT_OF_MEMORY):
            return True
        error = error.__cause__ or error.__context__
    return False


def _show_traceback(error: BaseException, console: Console) -> None:
    if console.verbose or os.environ.get("CHECKMATE_DEBUG"):
        traceback.print_exception(error, file=sys.stderr)


def _wants_json(console: Console, arguments: Sequence[str]) -> bool:
    """True if JSON was asked for, even on a command line that could not be parsed."""
    flags = arguments[: arguments.index("--")] if "--" in arguments else arguments
    return console.json or "--json" in flags


def _usage_message(error: click.UsageError) -> str:
    """Click's message in our style: lower case, no full stop, with a suggestion if there is one, and with the origin of the value."""
    match error:
        case click.NoSuchOption():
            near = f"; did you mean {error.possibilities[0]}?" if error.possibilities else ""
            return f"no such option: {error.option_name}{near}"
        case click.MissingParameter():
            return f"missing {_parameter_name(error)}{_what_it_is(error)}"
        case click.BadParameter():
            return f"{_parameter_name(error)}: {_lowered(error.message)}{_origin(error)}"
        case _:
            return _lowered(error.format_message())


def _parameter_name(error: click.BadParameter) -> str:
    if isinstance(error.param, Option):
        return f"--{error.param.long_name}"
    return (
        str(error.param.make_metavar(error.ctx))
        if error.param is not None and error.ctx is not None
        else str(error.param_hint or "argument")
    )


def _what_it_is(error: click.MissingParameter) -> str:
    help_text = getattr(error.param, "help", None)
    return f": {_lowered(help_text)}" if help_text else ""


def _origin(error: click.BadParameter) -> str:
    """A value that was not typed on the command line is hard to find: say where it came from."""
    if error.ctx is None or not isinstance(error.param, Option) or error.param.name is None:
        return ""
    source = error.ctx.get_parameter_source(error.param.name)
    if source is click.core.ParameterSource.ENVIRONMENT:
        return f" (from the variable {error.param.variable})"
    if source is click.core.ParameterSource.DEFAULT_MAP:
        console = error.ctx.find_object(Console)
        return f" (from {console.config_path})" if console else ""
    return ""


def _lowered(sentence: str) -> str:
    text = sentence.strip().removesuffix(".")
    return text[:1].lower() + text[1:] if text[1:2].islower() else text


def _where_to_look(error: click.UsageError) -> str:
    path = error.ctx.command_path if error.ctx is not None else "checkmate"
    return f" (see '{path} {HELP_NAMES[-1]}')"
