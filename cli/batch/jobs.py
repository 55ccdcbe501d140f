"""From the entries of a jobs file to jobs: each one graph, one budget, one strategy, one name, with the options `solve` knows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from ...core.errors import InputError
from ...core.strategies import STRATEGIES
from ...core.units import Budget
from ...io.jobs_yaml import OWN_KEYS, JobEntry, parse_jobs
from ...io.onnx.anchoring import Anchor
from ..command import Command, Option, option
from ..config import option_value
from ..options import OUTPUT, PROBLEM, SOLVING, GraphRequest, SolvingRequest, graph_options, solving_options
from ..outputs import MODEL_SUFFIX, SCHEDULE_SUFFIX, Destinations
from ..parameters import BUDGET, Name, suggestion
from ..pipeline import COST_MODELS
from ..training import TrainingRequest, training_options

DEFAULT_OUTPUT = "schedules"
MOST_JOBS = 100_000
_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
_PLACEHOLDERS = ("graph", "folder", "budget", "strategy")


@dataclass(frozen=True, slots=True)
class Wishes:
    """What the options of a job say, before it has a name and a place."""

    request: GraphRequest
    solving: SolvingRequest
    training: TrainingRequest
    budget: Budget
    strategy: str
    no_onnx: bool
    anchor: Anchor


@dataclass(frozen=True, slots=True)
class Job:
    """One run of `solve`, and where its results go."""

    name: str
    folder: Path
    wishes: Wishes

    @property
    def source(self) -> str:
        return self.wishes.request.source

    def destinations(self, *, with_model: bool) -> Destinations:
        model = self.folder / (self.name + MODEL_SUFFIX) if with_model and not self.wishes.no_onnx else None
        return Destinations(self.folder / (self.name + SCHEDULE_SUFFIX), model)


@click.command(cls=Command)
@option("--budget", group=PROBLEM, type=BUDGET, required=True)
@graph_options()
@option("--strategy", group=SOLVING, type=Name("STRATEGY", tuple(STRATEGIES)), default="auto")
@solving_options
@training_options
@option("--no-onnx", group=OUTPUT, is_flag=True)
@option("--anchor", group=OUTPUT, type=Name("ANCHOR", tuple(anchor.value for anchor in Anchor)), default=Anchor.FULL.value)
def job_command(anchor: str, **wishes: Any) -> Wishes:
    """Never run from a shell: reads the options of one job as `solve` would."""
    return Wishes(anchor=Anchor(anchor), **wishes)


for _parameter in job_command.params:
    _parameter.envvar = None  # a jobs file says the same wherever it is read


def job_options() -> dict[str, Option]:
    """What a job may set besides its own keys, by long name."""
    return {found.long_name: found for found in job_command.own_options if found.long_name not in OWN_KEYS}


def jobs_of(document: object, where: str, folder: Path) -> list[Job]:
    """Every job of a jobs file, in its order. No two write the same file."""
    jobs: list[Job] = []
    taken: dict[Path, str] = {}
    for entry in parse_jobs(document, where, folder, job_options()):
        for job in _expanded(entry, folder):
            path = job.destinations(with_model=False).paths[0]
            if path in taken:
                raise InputError(
                    f"{entry.where}: two jobs would be called {job.name!r} (of {taken[path]} and {job.source}); tell them apart with "
                    f"'name: \"{{folder}}-{{graph}}-{{budget}}\"' or 'output'"
                )
            taken[path] = job.source
            jobs.append(job)
            if len(jobs) > MOST_JOBS:
                raise InputError(f"{where}: more than {MOST_JOBS} jobs")
    return jobs


def _expanded(entry: JobEntry, folder: Path) -> Iterator[Job]:
    output = folder / (entry.output or DEFAULT_OUTPUT)
    template = entry.name or ("{graph}-{budget}-{strategy}" if entry.several_strategies else "{graph}-{budget}")
    values = _option_values(entry, folder)
    prototypes = [
        _wishes(entry, values | {"budget": budget} | ({} if strategy is None else {"strategy": strategy}))
        for budget in entry.budgets
        for strategy in entry.strategies or (None,)
    ]
    for graph in entry.graphs:
        for wishes in prototypes:
            yield Job(_name(entry, template, Path(graph), wishes), output, replace(wishes, request=replace(wishes.request, source=graph)))


def _option_values(entry: JobEntry, folder: Path) -> dict[str, Any]:
    """Values as click wants them; files among them are relative to the jobs file."""
    known = job_options()
    values = {"threads": "1"} | {key: option_value(entry.where, key, known[key], found) for key, found in entry.options.items()}
    costs, device = values.get("costs"), values.get("device")
    if costs is not None and costs not in COST_MODELS and (folder / costs).is_file():
        values["costs"] = str(folder / costs)
    if device is not None and (folder / device).is_file():
        values["device"] = str(folder / device)
    return {str(known[key].name): value for key, value in values.items()}


def _wishes(entry: JobEntry, values: dict[str, Any]) -> Wishes:
    try:
        with job_command.make_context("job", ["--", "graph"], default_map=values) as context:
            wishes = job_command.invoke(context)
    except click.BadParameter as error:
        name = error.param.long_name if isinstance(error.param, Option) else "graph"
        raise InputError(f"{entry.where}: {name}: {error.message}") from None
    except InputError as error:
        raise InputError(f"{entry.where}: {error}") from None
    assert isinstance(wishes, Wishes)
    return wishes


def _name(entry: JobEntry, template: str, graph: Path, wishes: Wishes) -> str:
    stem = graph.name
    for suffix in (".onnx", ".json", ".pb"):
        stem = stem.removesuffix(suffix) or stem
    parts = {
        "graph": stem,
        "folder": graph.resolve().parent.name,
        "budget": wishes.budget.text.replace("%", "pct").replace(" ", ""),
        "strategy": wishes.strategy,
    }
    for placeholder in _PLACEHOLDER.findall(template):
        if placeholder not in parts:
            hint = suggestion(placeholder, _PLACEHOLDERS) or f"; there are {', '.join(f'{{{part}}}' for part in _PLACEHOLDERS)}"
            raise InputError(f"{entry.where}: name: no placeholder {{{placeholder}}}{hint}")
    name = _PLACEHOLDER.sub(lambda found: parts[found.group(1)], template)
    if name.startswith(".") or not name.isprintable() or any(character in name for character in '/\\:*?"<>|'):
        raise InputError(f"{entry.where}: name: {name!r} is no name for a file; folders go into 'output'")
    return name
