"""`checkmate cache`: list and delete the results that batches cache."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from ... import __version__
from ...core.errors import InputError
from ...core.model.units import count, exact_bytes, format_bytes
from ..console import Console
from ..exit_codes import ExitCode
from ..options.cache_folder import cache_folder_of, cache_option
from ..options.command import Command, option
from ..options.shared import general_options
from ..options.values import DURATION, SIZE, Name
from ..output.amounts import format_cost, format_elapsed, format_seconds, shown
from ..output.render import Column, Fact, Row, show_facts, show_table

if TYPE_CHECKING:
    from ...io.formats.result_cache import Cache, Entry, Stored

PRUNING = "What to prune"
KEY_SHOWN = 12
"""Digits of a key in tables. On the command line, any unique prefix of a key is enough."""


@dataclass(frozen=True, slots=True)
class Looked:
    """A file of the cache and its entry, which is None if the file is damaged."""

    stored: Stored
    entry: Entry | None
    problem: str = ""

    @property
    def about(self) -> dict[str, Any]:
        return {} if self.entry is None else dict(self.entry.about)

    @property
    def answer(self) -> dict[str, Any]:
        return {} if self.entry is None else dict(self.entry.answer)

    @property
    def outdated(self) -> bool:
        """Written by another version of checkmate, so that this one never uses it."""
        return self.entry is not None and self.about.get("checkmate") != __version__

    @property
    def status(self) -> str:
        return "corrupt" if self.entry is None else str(self.answer.get("status"))

    def fields(self) -> dict[str, Any]:
        return self.about | {
            "key": self.stored.key,
            "path": str(self.stored.path),
            "bytes": self.stored.bytes,
            "age_seconds": round(max(0.0, time.time() - self.stored.modified), 3),
            "status": self.status,
            "problem": self.problem or None,
        }


@click.command(
    cls=Command,
    examples=[
        ("checkmate cache list", "all entries"),
        ("checkmate cache show 3fa9", "one entry, by a unique prefix of its key"),
        ("checkmate cache prune --older-than 30d --max-size 1GB", "delete entries that are old or damaged, and the oldest ones above 1 GB"),
        ("checkmate cache clear", "everything"),
        ('du -sh "$(checkmate cache path)"', "the size of the folder"),
    ],
)
@click.argument("action", type=Name("ACTION", ("list", "show", "prune", "clear", "path")))
@click.argument("key", required=False)
@option("--older-than", group=PRUNING, type=DURATION, help="Delete entries older than this: 12h, 30d.")
@option("--max-size", group=PRUNING, type=SIZE, help="Delete the oldest entries until the rest is no larger than this.")
@cache_option
@general_options
def cache(
    console: Console, action: str, key: str | None, older_than: float | None, max_size: int | None, cache_folder: str | None
) -> ExitCode:
    """Manage the cache of 'checkmate batch'.

    ACTION is list, show (the entry KEY), prune (delete entries that are damaged or from another version of checkmate, and those that
    --older-than and --max-size select), clear (delete all entries) or path (print the folder).
    """
    from ...io.formats.result_cache import Cache

    if (key is not None) != (action == "show"):
        raise InputError("show needs a KEY, as 'checkmate cache list' prints it" if key is None else f"{action} takes no KEY")
    if action != "prune" and (older_than is not None or max_size is not None):
        raise InputError(f"--older-than and --max-size are for prune, not for {action}")
    chosen = Cache(cache_folder_of(cache_folder))
    match action:
        case "path":
            _tell(console, {"path": str(chosen.folder)}, lambda: click.echo(str(chosen.folder)))
        case "list":
            _list(console, chosen)
        case "show":
            _show(console, chosen, str(key))
        case "clear":
            _remove(console, chosen, chosen.entries())
        case _:
            _remove(console, chosen, _superfluous(chosen, older_than, max_size))
    return ExitCode.OK


def _tell(console: Console, fields: dict[str, Any], show: Callable[[], None]) -> None:
    if console.json:
        console.emit_json({"format": "checkmate-cache-listing", "version": 1, "status": "ok", **fields})
    elif not console.quiet:
        show()


def _look(stored: Stored) -> Looked:
    from ...io.formats.result_cache import CorruptEntryError, read_entry

    try:
        return Looked(stored, read_entry(stored.path))
    except CorruptEntryError as error:
        return Looked(stored, None, str(error))


def _list(console: Console, chosen: Cache) -> None:
    looked = [_look(stored) for stored in chosen.entries()]
    total = sum(found.stored.bytes for found in looked)
    columns = [
        *(Column("key"), Column("graph"), Column("strategy"), Column("budget", right=True), Column("status")),
        *(Column("size", right=True), Column("age", right=True)),
    ]
    title = f"{count(len(looked), 'entry').replace('entrys', 'entries')}, {format_bytes(total)}, in {shown(str(chosen.folder))}"
    fields = {"path": str(chosen.folder), "bytes": total, "entries": [found.fields() for found in looked]}
    _tell(console, fields, lambda: show_table(title, columns, [_row(found) for found in looked]))


def _row(found: Looked) -> Row:
    fields = found.fields()
    budget = fields.get("budget_bytes")
    cells = (
        found.stored.key[:KEY_SHOWN],
        shown(str(fields.get("graph", "-"))),
        shown(str(fields.get("strategy", "-"))),
        format_bytes(budget) if isinstance(budget, int) else "-",
        shown(f"{found.status}, of checkmate {found.about.get('checkmate')}" if found.outdated else found.status),
        format_bytes(found.stored.bytes),
        format_seconds(fields["age_seconds"]),
    )
    return Row(cells, "red" if found.entry is None else "dim" if found.outdated else "")


def _show(console: Console, chosen: Cache, key: str) -> None:
    matching = [stored for stored in chosen.entries() if stored.key.startswith(key.lower())]
    if len(matching) != 1:
        what = f"{len(matching)} entries have" if matching else "no entry has"
        raise InputError(f"{what} a key that begins with {key[:64]!r}; 'checkmate cache list' shows all")
    found = _look(matching[0])
    answer = found.answer
    shown_answer = {name: value for name, value in answer.items() if name != "sequence"}
    _tell(console, found.fields() | {"answer": shown_answer or None}, lambda: show_facts(found.stored.key[:KEY_SHOWN], _facts(found)))


def _facts(found: Looked) -> list[Fact]:
    about, answer = found.about, found.answer
    head = [
        Fact("status", shown(found.status), shown(found.problem), "bold red" if found.entry is None else "bold"),
        Fact("file", shown(str(found.stored.path)), "", "cyan"),
        Fact("size", exact_bytes(found.stored.bytes), f"{format_seconds(found.fields()['age_seconds'])} old"),
    ]
    if found.entry is None:
        return head
    shown_apart = ("checkmate", "graph", "operations", "budget_bytes", "strategy", "cost_model", "cost_unit")
    options = {name: value for name, value in about.items() if name not in shown_apart and value is not None}
    budget, bound, run = about.get("budget_bytes"), answer.get("bound"), answer.get("run")
    seconds = run.get("seconds") if isinstance(run, dict) else None
    return [
        *head,
        Fact("graph", shown(str(about.get("graph"))), shown(f"{about.get('operations')} operations")),
        Fact("budget", exact_bytes(budget) if isinstance(budget, int) else shown(str(budget))),
        Fact("strategy", shown(str(about.get("strategy"))), shown(str(about.get("cost_model")))),
        Fact("options", shown(", ".join(f"{name.replace('_', '-')} {value}" for name, value in options.items()))),
        Fact("bound", format_cost(bound, str(about.get("cost_unit"))) if isinstance(bound, (int, float)) else "none"),
        Fact("time", format_elapsed(seconds) if isinstance(seconds, (int, float)) else "-"),
        Fact(
            "made by",
            f"checkmate {shown(str(about.get('checkmate')))}",
            shown(str(run.get("created", ""))) if isinstance(run, dict) else "",
        ),
    ]


def _superfluous(chosen: Cache, older_than: float | None, max_size: int | None) -> list[Stored]:
    """Damaged entries, those of another version, those that are too old; then the oldest until the rest is small enough."""
    chosen.sweep()
    looked = [_look(stored) for stored in chosen.entries()]
    limit = None if older_than is None else time.time() - older_than
    goes = [found for found in looked if found.entry is None or found.outdated or (limit is not None and found.stored.modified < limit)]
    gone = {found.stored.key for found in goes}
    room = max_size
    for found in looked:
        if room is None or found.stored.key in gone:
            continue
        room -= found.stored.bytes
        if room < 0:
            goes.append(found)
    return [found.stored for found in goes]


def _remove(console: Console, chosen: Cache, entries: Sequence[Stored]) -> None:
    for stored in entries:
        chosen.remove(stored)
    freed, kept = sum(stored.bytes for stored in entries), len(chosen.entries())
    fields = {"path": str(chosen.folder), "removed": [stored.key for stored in entries], "removed_bytes": freed, "kept": kept}
    line = f"removed {len(entries)}, {format_bytes(freed)}; {kept} left in {shown(str(chosen.folder))}"
    _tell(console, fields, lambda: click.echo(line))
