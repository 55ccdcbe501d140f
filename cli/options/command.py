"""The base classes of all commands and options: grouped help, examples, one environment variable per option."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

VARIABLE_PREFIX = "CHECKMATE_"
HELP_NAMES = ("-h", "--help")

Function = TypeVar("Function", bound=Callable[..., Any])


class Option(click.Option):
    """An option that belongs to a group of the help page and can be set by the environment variable `CHECKMATE_<ITS NAME>`."""

    def __init__(self, declarations: Sequence[str] | None = None, *, group: str = "Options", **attributes: Any) -> None:
        super().__init__(declarations, **attributes)
        self.group = group
        self.envvar = VARIABLE_PREFIX + self.long_name.replace("-", "_").upper()

    @property
    def long_name(self) -> str:
        """The name after the two dashes, which is also the key in a config file."""
        return next(spelling[2:] for spelling in self.opts if spelling.startswith("--"))

    @property
    def variable(self) -> str:
        return str(self.envvar)


class Command(click.Command):
    """A command whose help lists its options by group and ends with examples."""

    def __init__(self, *arguments: Any, examples: Sequence[tuple[str, str]] = (), **attributes: Any) -> None:
        attributes.setdefault("context_settings", {"help_option_names": list(HELP_NAMES)})
        super().__init__(*arguments, **attributes)
        self.examples = examples

    @property
    def own_options(self) -> list[Option]:
        return [parameter for parameter in self.params if isinstance(parameter, Option)]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        groups: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None and not isinstance(parameter, click.Argument):
                groups.setdefault(getattr(parameter, "group", "General"), []).append(record)
        for group, records in groups.items():
            with formatter.section(group):
                formatter.write_dl(records, col_max=26)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if self.examples:
            with formatter.section("Examples"):
                for line, meaning in self.examples:
                    formatter.write(f"{'':{formatter.current_indent}}# {meaning}\n{'':{formatter.current_indent}}{line}\n")
        if self.own_options:
            formatter.write_paragraph()
            formatter.write_text(
                "Every option can also be set by an environment variable (--time-limit: CHECKMATE_TIME_LIMIT) or in a YAML file "
                "(--config). A flag overrides the variable, and the variable overrides the file."
            )


def option(*declarations: str, group: str, **attributes: Any) -> Callable[[Function], Function]:
    """`click.option` with our `Option` class."""
    return click.option(*declarations, cls=Option, group=group, **attributes)
