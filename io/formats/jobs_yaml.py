"""`jobs.yaml`: which graphs to solve at which budgets and how. docs/cli.md describes it, io/schemas/jobs.schema.json defines it.

version: 1
defaults:
  time-limit: 5m
jobs:
  - graph: models/*.onnx
    budget: [80%, 60%]
  - graph: big.onnx
    budget: 8GB
    time-limit: 1h
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from glob import has_magic
from pathlib import Path
from typing import NoReturn

from ...core.errors import InputError
from .file_patterns import matching_files
from .strict_json import Fields, check_version, describe, quote, suggestion

VERSION = 1
OWN_KEYS = ("graph", "exclude", "name", "output", "budget", "strategy")
"""The keys of a job besides options of `solve`; the last two may be lists."""
_NOT_DEFAULTS = ("graph", "exclude")
_TOP_KEYS = ("version", "comment", "defaults", "jobs")


@dataclass(frozen=True, slots=True)
class JobEntry:
    """One entry of the file with defaults filled in; it may have many graphs, budgets and strategies."""

    where: str
    graphs: tuple[str, ...]
    """Existing files, in the order of the patterns."""
    budgets: tuple[str, ...]
    strategies: tuple[str, ...] | None
    """None if the entry has no name."""
    several_strategies: bool
    """True if strategies are a list, so that names must contain the strategy."""
    name: str | None
    output: str | None
    options: Mapping[str, object]
    """All other options of `solve`, by name, with values as in the YAML file."""


def parse_jobs(document: object, where: str, folder: Path, options: Collection[str]) -> list[JobEntry]:
    """The entries of a jobs file; paths in it are relative to `folder`. `options` are the long names of the options that a job may set."""
    top = Fields(_with_text_keys(document, where), where)
    top.only(_TOP_KEYS)
    check_version(top, VERSION, VERSION)
    known = (*OWN_KEYS, *options)
    defaults = _Keys(top.content.get("defaults", {}), where, "defaults", tuple(key for key in known if key not in _NOT_DEFAULTS))
    listed = top.items("jobs")
    if not listed:
        top.fail("jobs", "it contains no jobs")
    return [_entry(_Keys(item, where, f"jobs[{number}]", known, defaults), folder) for number, item in enumerate(listed)]


def _entry(keys: _Keys, folder: Path) -> JobEntry:
    patterns, excluded = keys.texts("graph"), keys.texts("exclude")
    if not patterns:
        keys.fail("", "the key 'graph' is missing: a file, or a pattern such as models/*.onnx")
    budgets, strategies = keys.texts("budget"), keys.texts("strategy")
    if not budgets:
        keys.fail("", "the key 'budget' is missing: 8GB, 80%, or a list of budgets")
    dropped = {path for pattern in excluded for path in _files(keys, "exclude", pattern, folder)}
    graphs = [path for pattern in patterns for path in _matching(keys, pattern, folder) if path not in dropped]
    if not graphs:
        keys.fail("exclude", "excludes all graphs")
    return JobEntry(
        where=f"{keys.where}: {keys.path}",
        graphs=tuple(dict.fromkeys(graphs)),
        budgets=tuple(dict.fromkeys(budgets)),
        strategies=tuple(dict.fromkeys(strategies)) or None,
        several_strategies=isinstance(keys.content.get("strategy"), list),
        name=keys.text("name"),
        output=keys.text("output"),
        options={key: found for key, found in keys.content.items() if key not in OWN_KEYS},
    )


def _matching(keys: _Keys, pattern: str, folder: Path) -> list[str]:
    found = _files(keys, "graph", pattern, folder)
    if not found:
        keys.fail("graph", f"no file {'matches' if has_magic(pattern) else 'is called'} {quote(pattern)} in {str(folder)!r}")
    return found


def _files(keys: _Keys, key: str, pattern: str, folder: Path) -> list[str]:
    try:
        return matching_files(pattern, folder)
    except InputError as error:
        keys.fail(key, str(error))


class _Keys:
    """One mapping of the file, with defaults for missing keys; unknown keys are errors."""

    def __init__(self, item: object, where: str, path: str, known: Collection[str], defaults: _Keys | None = None) -> None:
        self.where, self.path = where, path
        if not isinstance(item, dict):
            self.fail("", f"expected lines of 'key: value', found {describe(item) if not isinstance(item, list) else 'a list'}")
        own = {str(key): found for key, found in item.items()}
        for key, found in own.items():
            if key not in known:
                self.fail("", f"unknown key {quote(key)}{suggestion(key, known) or '; keys are the long names of options of solve'}")
            if found is None:
                self.fail(key, "has no value")
        self.content: dict[str, object] = (defaults.content if defaults else {}) | own

    def fail(self, key: str, problem: str) -> NoReturn:
        place = ".".join(part for part in (self.path, key) if part)
        raise InputError(f"{self.where}: {place}: {problem}")

    def text(self, key: str) -> str | None:
        texts = self.texts(key)
        if isinstance(self.content.get(key), list):
            self.fail(key, "takes one value, not a list")
        return texts[0] if texts else None

    def texts(self, key: str) -> tuple[str, ...]:
        """One value or a list of them, as text; none if the key is absent."""
        if key not in self.content:
            return ()
        found = self.content[key]
        items = found if isinstance(found, list) else [found]
        if not items:
            self.fail(key, "the list is empty")
        for item in items:
            if isinstance(item, bool) or not isinstance(item, (str, int, float)) or item == "":
                self.fail(key, f"expected text or a number, found {_kind(item)}")
        return tuple(str(item) for item in items)


def _kind(item: object) -> str:
    if item == "":
        return "nothing"
    return "a mapping" if isinstance(item, dict) else describe(item) if isinstance(item, (bool, list, type(None))) else quote(str(item))


def _with_text_keys(document: object, where: str) -> object:
    if document is None:
        raise InputError(f"{where}: the file is empty; it needs a list of jobs, such as 'jobs: [{{graph: model.onnx, budget: 80%}}]'")
    return {str(key): found for key, found in document.items()} if isinstance(document, dict) else document
