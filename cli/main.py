"""The `checkmate` command: finds the subcommand, runs it, and turns every outcome into an exit code.

Starts fast: subcommands are imported when used, and they import heavy packages (onnx, pyomo, rich, yaml) only when they run.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import NoReturn

import click

from .. import __version__
from ..core.errors import LimitError
from ..core.spelling import nearest
from .console import Console
from .exit_codes import ExitCode
from .failures import report
from .options.command import HELP_NAMES
from .registry import COMMANDS, COMPLETION_VARIABLE, PROGRAM, load_command

LEAST_ADDRESS_SPACE = 240 * 2**20
"""Bytes. numpy, onnx and protobuf take 120 MB when they are imported; a worker process of `batch` was killed at 210 MB."""


class Checkmate(click.Group):
    """The group of all commands, each imported when it is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return load_command(cmd_name) if cmd_name in COMMANDS else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in COMMANDS and not name.startswith("-"):
            near = nearest(name, list(COMMANDS))
            if near is None and os.path.exists(name):
                raise click.UsageError(f"no command {name!r}; did you mean '{PROGRAM} solve {name} --budget ...'?", ctx)
            raise click.UsageError(
                f"no command {name!r}; " + (f"did you mean {near!r}?" if near else f"commands are {', '.join(COMMANDS)}"), ctx
            )
        return super().resolve_command(ctx, args)


@click.group(cls=Checkmate, context_settings={"help_option_names": list(HELP_NAMES)}, no_args_is_help=False, invoke_without_command=True)
@click.version_option(__version__, message="%(prog)s %(version)s")
@click.pass_context
def checkmate(context: click.Context) -> None:
    """Make neural-network training fit into memory.

    Checkmate decides which values to keep in memory and which to recompute, at the lowest cost within a memory budget. It reads
    ONNX models and JSON graphs, verifies every schedule before writing it, and compiles schedules to ONNX models.

    \b
    Start with:
      checkmate inspect model.onnx                 show what takes the memory
      checkmate solve model.onnx --budget 8GB      find a schedule that fits
    """
    if context.invoked_subcommand is None:
        raise click.UsageError(f"missing command; commands are {', '.join(COMMANDS)}", context)


def run() -> NoReturn:
    """Entry point of the `checkmate` script and of `python -m checkmate`.

    Exits without freeing every object, which takes seconds after a large model and would count against the time limit. OpenBLAS, which
    numpy and scipy load and checkmate hardly uses, gets one thread: it waits forever if there is too little memory to start more.
    """
    _open_closed_streams()
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if not os.environ.get("CHECKMATE_DEBUG"):
        sys.unraisablehook = id  # does nothing, and needs no memory: without any, objects that are freed would print "Exception ignored"
    try:
        code = main(sys.argv[1:])
        atexit._run_exitfuncs()
    except MemoryError:  # not even enough for the message
        os.write(2, b"error: the machine has too little memory for this graph; nothing was written\n")
        os._exit(ExitCode.LIMIT)
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


def _open_closed_streams() -> None:
    """Streams that are closed (`<&-`, `>&-`) would be given to the first files that are opened, and Python has None for them.

    Reading from stdin then gives nothing, and writing to stdout is an error, as it is for any command. Messages on stderr are lost.
    """
    for number, mode in ((0, os.O_RDONLY), (1, os.O_RDONLY), (2, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            opened = os.open(os.devnull, mode)
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)
    if sys.stdin is None:
        sys.stdin = open(0, closefd=False)  # noqa: SIM115
    if sys.stdout is None:
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115


def main(arguments: Sequence[str]) -> int:
    """Run one command line. Never raises and never exits: it returns the exit code."""
    begun = time.monotonic()
    console = Console(arguments=tuple(arguments))
    _replace_odd_characters()
    code = _exit_code(arguments, console)
    if console.is_logged:
        from .log import close_logs

        close_logs(code, time.monotonic() - begun)
    return code


def _exit_code(arguments: Sequence[str], console: Console) -> int:
    try:
        with _raising_on_ctrl_c():
            code = _invoke(arguments, console)
            sys.stdout.flush()
        return code
    except BrokenPipeError:
        _discard_output()
        return ExitCode.BROKEN_PIPE
    except BaseException as error:
        if isinstance(error, OSError) and error.filename is None:
            _discard_output()
        code = report(error, console, arguments)
    try:
        sys.stdout.flush()
    except OSError:
        _discard_output()
    return code


@contextmanager
def _raising_on_ctrl_c() -> Iterator[None]:
    """While a command runs, Ctrl-C raises KeyboardInterrupt; before and after, it ends the process (see `__main__`)."""
    is_ours = threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) is signal.SIG_DFL
    if is_ours:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        if is_ours:
            signal.signal(signal.SIGINT, signal.SIG_DFL)


def _invoke(arguments: Sequence[str], console: Console) -> int:
    if instruction := os.environ.get(COMPLETION_VARIABLE):
        from click.shell_completion import shell_complete

        return shell_complete(checkmate, {}, PROGRAM, COMPLETION_VARIABLE, instruction)
    if arguments and arguments[0] in COMMANDS:
        _require_address_space()
    try:
        with checkmate.make_context(PROGRAM, list(arguments), obj=console) as context:
            result = checkmate.invoke(context)
            return int(result) if isinstance(result, int) else ExitCode.OK
    except click.exceptions.Exit as leave:
        return leave.exit_code


def _require_address_space() -> None:
    """With less, libraries end the process in their own words before anything can be reported."""
    with suppress(ImportError):
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        if 0 <= limit < LEAST_ADDRESS_SPACE:
            raise LimitError(
                f"the process may use only {limit} bytes of memory (ulimit -v), which is too little memory to start: allow at least "
                f"{LEAST_ADDRESS_SPACE}"
            )


def _replace_odd_characters() -> None:
    """An ASCII terminal shows names with other characters escaped, instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def _discard_output() -> None:
    """Python flushes stdout again at exit: redirect it to the null device, so that this cannot fail."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
