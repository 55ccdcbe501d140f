"""`checkmate completion`: the script with which a shell completes commands, options and names."""

from __future__ import annotations

import click
from click.shell_completion import ShellComplete, get_completion_class

from ..options.command import Command
from ..options.values import Name
from ..registry import COMPLETION_VARIABLE, PROGRAM

SHELLS = ("bash", "zsh", "fish")


@click.command(
    cls=Command,
    examples=[
        ('eval "$(checkmate completion bash)"', "bash: in this shell; add it to ~/.bashrc to keep it"),
        ('eval "$(checkmate completion zsh)"', "zsh: add it to ~/.zshrc, after compinit"),
        ("checkmate completion fish > ~/.config/fish/completions/checkmate.fish", "fish"),
    ],
)
@click.argument("shell", type=Name("SHELL", SHELLS), metavar="{" + "|".join(SHELLS) + "}")
def completion(shell: str) -> None:
    """Print the completion script for a shell."""
    group = click.get_current_context().find_root().command
    kind = get_completion_class(shell)
    assert kind is not None
    # Not kind.source(): for bash it runs bash to check its version, which is not needed to print the script.
    click.echo(ShellComplete.source(kind(group, {}, PROGRAM, COMPLETION_VARIABLE)))
