"""`checkmate completion`: the script that lets a shell complete commands, options and names."""

from __future__ import annotations

import click
from click.shell_completion import ShellComplete, get_completion_class

from .command import Command
from .parameters import Name

SHELLS = ("bash", "zsh", "fish")


@click.command(
    cls=Command,
    examples=[
        ('eval "$(checkmate completion bash)"', "now, and in ~/.bashrc for good"),
        ('eval "$(checkmate completion zsh)"', "zsh: in ~/.zshrc, after compinit"),
        ("checkmate completion fish > ~/.config/fish/completions/checkmate.fish", "fish"),
    ],
)
@click.argument("shell", type=Name("SHELL", SHELLS), metavar="{" + "|".join(SHELLS) + "}")
def completion(shell: str) -> None:
    """Print a shell's completion script."""
    from .main import COMPLETION_VARIABLE, PROGRAM, checkmate

    kind = get_completion_class(shell)
    assert kind is not None
    # Not kind.source(): bash's looks for a bash to ask its version, which is none of our business when the script is only printed.
    click.echo(ShellComplete.source(kind(checkmate, {}, PROGRAM, COMPLETION_VARIABLE)))
