"""The registry of commands. A command is imported when it is used. To add one: a file in `commands`, and one line here."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from .options.command import Command

COMMANDS: Mapping[str, str] = {
    "solve": "Find the cheapest schedule that fits a budget.",
    "inspect": "Show the operations of a graph and what takes the memory.",
    "verify": "Verify a schedule file or a compiled model.",
    "profile": "Measure the time and the workspace of every operation.",
    "min-budget": "Find the smallest budget that works.",
    "compare": "Run strategies at several budgets and compare them.",
    "sweep": "Plot cost against memory budget.",
    "max-batch": "Find the largest batch that fits a budget.",
    "batch": "Solve many graphs and budgets from one YAML file.",
    "cache": "Manage the cache of 'checkmate batch'.",
    "check": "Compare schedules with a baseline, for CI.",
    "differentiate": "Make a training graph from a forward model.",
    "report": "Write an HTML page about a schedule.",
    "explain": "Explain a schedule in words.",
    "diff": "Show the differences between two schedules.",
    "convert": "Write any graph as checkmate JSON.",
    "completion": "Print a shell's completion script.",
}
"""Name -> what `checkmate --help` says about it. The command is the function of that name in the module of that name."""

PROGRAM = "checkmate"
COMPLETION_VARIABLE = "_CHECKMATE_COMPLETE"


def load_command(name: str) -> Command:
    word = name.replace("-", "_")
    return cast("Command", getattr(import_module(f".commands.{word}", __package__), word))


def all_commands() -> dict[str, Command]:
    return {name: load_command(name) for name in COMMANDS}
