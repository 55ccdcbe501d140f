"""The `checkmate` command: finds the subcommand, runs it, and turns whatever happens into an exit code.

Starts fast: subcommands are imported when used, and they import what is heavy (onnx, pyomo, rich, yaml) only when they run.
"""

from __future__ import annotations

import atexit
import os
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from typing import NoReturn

import click

from .. import __version__
from .command import HELP_NAMES, Command
from .exit_codes import ExitCode
from .failures import report
from .parameters import nearest
from .session import Session

COMMANDS: Mapping[str, str] = {
    "solve": "solve:solve",
    "inspect": "inspect:inspect",
    "verify": "verify:verify",
    "profile": "profile:profile",
    "min-budget": "min_budget:min_budget",
    "compare": "compare:compare",
    "sweep": "sweep:sweep",
    "max-batch": "max_batch:max_batch",
    "batch": "batch.command:batch",
    "cache": "cache:cache",
    "check": "check:check",
    "differentiate": "differentiate:differentiate",
    "report": "report:report",
    "explain": "explain:explain",
    "diff": "diff:diff",
    "convert": "convert:convert",
    "completion": "completion:completion",
}
"""Name -> module:function. One line to add a command."""

PROGRAM = "checkmate"
COMPLETION_VARIABLE = "_CHECKMATE_COMPLETE"


def load_command(name: str) -> Command:
    module, function = COMMANDS[name].split(":")
    command = getattr(import_module(f".{module}", __package__), function)
    assert isinstance(command, Command)
    return command


def all_commands() -> dict[str, Command]:
    return {name: load_command(name) for name in COMMANDS}


class Checkmate(click.Group):
    """The group of all commands, each imported when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return load_command(cmd_name) if cmd_name in COMMANDS else None

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in COMMANDS and not name.startswith("-"):
            near = nearest(name, list(COMMANDS))
            if near is None and os.path.exists(name):
                raise click.UsageError(f"no command {name!r}; did you mean '{PROGRAM} solve {name} --budget ...'?", ctx)
            raise click.UsageError(
                f"no command {name!r}; " + (f"did you mean {near!r}?" if near else f"there are {', '.join(COMMANDS)}"), ctx
            )
        return super().resolve_command(ctx, args)


@click.group(cls=Checkmate, context_settings={"help_option_names": list(HELP_NAMES)}, no_args_is_help=False, invoke_without_command=True)
@click.version_option(__version__, message="%(prog)s %(version)s")
@click.pass_context
def checkmate(context: click.Context) -> None:
    """Make neural-network training fit into memory.

    Checkmate finds which values of a computation to keep and which to compute again, at the least cost within a memory budget. It reads
    ONNX models and JSON graphs, proves every schedule before writing it, and compiles it back to ONNX.

    \b
    Begin with:
      checkmate inspect model.onnx                 what takes the memory
      checkmate solve model.onnx --budget 8GB      a schedule that fits
    """
    if context.invoked_subcommand is None:
        raise click.UsageError(f"a command is missing; there are {', '.join(COMMANDS)}", context)


def run() -> NoReturn:
    """Entry point of the `checkmate` script and of `python -m checkmate`.

    Leaves without taking memory apart piece by piece, which takes seconds after a large model and would count against the time limit.
    """
    code = main(sys.argv[1:])
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


def main(arguments: Sequence[str]) -> int:
    """Run one command line. Never raises and never exits: it returns the exit code."""
    begun = time.monotonic()
    session = Session(arguments=tuple(arguments))
    _forgive_odd_characters()
    code = _exit_code(arguments, session)
    if session.is_logged:
        from .log import close_logs

        close_logs(code, time.monotonic() - begun)
    return code


def _exit_code(arguments: Sequence[str], session: Session) -> int:
    try:
        code = _invoke(arguments, session)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        _discard_output()
        return ExitCode.BROKEN_PIPE
    except BaseException as error:
        if isinstance(error, OSError) and error.filename is None:
            _discard_output()
        code = report(error, session, arguments)
    try:
        sys.stdout.flush()
    except OSError:
        _discard_output()
    return code


def _invoke(arguments: Sequence[str], session: Session) -> int:
    if instruction := os.environ.get(COMPLETION_VARIABLE):
        from click.shell_completion import shell_complete

        return shell_complete(checkmate, {}, PROGRAM, COMPLETION_VARIABLE, instruction)
    try:
        with checkmate.make_context(PROGRAM, list(arguments), obj=session) as context:
            result = checkmate.invoke(context)
            return int(result) if isinstance(result, int) else ExitCode.OK
    except click.exceptions.Exit as leave:
        return leave.exit_code


def _forgive_odd_characters() -> None:
    """A terminal that knows only ASCII still shows names it cannot spell, and never fails over them."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def _discard_output() -> None:
    """Python flushes stdout once more at exit: give it somewhere to go."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
