"""Makes docs/reference.md from the commands themselves: `python docs/reference.py`."""

from __future__ import annotations

import re
from inspect import cleandoc
from pathlib import Path

import click

from checkmate.cli.exit_codes import ExitCode
from checkmate.cli.options.command import Command, Option
from checkmate.cli.registry import PROGRAM, all_commands

PATH = Path(__file__).parent / "reference.md"


def page() -> str:
    """The whole reference."""
    commands = all_commands()
    contents = " · ".join(f"[{name}](#{name})" for name in commands)
    parts = [
        "# Reference",
        "Every command and option, generated from the program by `python docs/reference.py`. [cli.md](cli.md) explains them.",
        contents,
        *(section(name, command) for name, command in commands.items()),
        exit_codes(),
    ]
    return "\n\n".join(parts) + "\n"


def section(name: str, command: Command) -> str:
    context = click.Context(command, info_name=f"{PROGRAM} {name}", **command.context_settings)
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    paragraphs = cleandoc(command.help or "").split("\n\n")
    parts = [f"## {name}", f"```\n{usage}\n```", *(" ".join(paragraph.split()) for paragraph in paragraphs)]
    groups: dict[str, list[Option]] = {}
    for option in command.own_options:
        groups.setdefault(option.group, []).append(option)
    for group, options in groups.items():
        rows = "\n".join(f"| {spelling(option)} | `{option.variable}` | {meaning(option)} |" for option in options)
        parts.append(f"**{group}**\n\n| option | variable | meaning |\n|---|---|---|\n{rows}")
    examples = "\n".join(f"# {remark}\n{line}" for line, remark in command.examples)
    if examples:
        parts.append(f"```sh\n{examples}\n```")
    return "\n\n".join(parts)


def spelling(option: Option) -> str:
    """As it is typed, with what follows it; what can be given again has dots."""
    words = ", ".join(option.opts)
    if not option.is_flag:
        words += f" {option.make_metavar(click.Context(click.Command('')))}"
    return f"`{words}`".replace("|", "\\|") + (" ..." if option.multiple else "")


def meaning(option: Option) -> str:
    text = " ".join((option.help or "").split())
    stated = [f"default: `{option.default}`"] if option.show_default and option.default is not None else []
    stated += ["required"] if option.required else []
    return (text + (f" ({', '.join(stated)})" if stated else "")).replace("|", "\\|").replace("*", "\\*")


def exit_codes() -> str:
    """With the words of the code that defines them."""
    source = (Path(__file__).parent.parent / "cli" / "exit_codes.py").read_text("utf-8")
    words = dict(re.findall(r'^    ([A-Z_]+) = \d+\n    """(.*?)"""', source, re.MULTILINE))
    rows = "\n".join(f"| {int(code)} | {words[code.name]} |" for code in ExitCode)
    return f"## Exit codes\n\n| exit | meaning |\n|---|---|\n{rows}"


if __name__ == "__main__":
    PATH.write_text(page(), encoding="utf-8")
