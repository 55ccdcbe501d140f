"""From the entries of a jobs file to jobs: each has one graph, budget, strategy and name, and options of `solve`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from ...api.pricing import COST_MODELS
from ...api.solving import SolvingOptions
from ...core.engine.strategies import STRATEGIES
from ...core.errors import InputError
from ...core.model.units import Budget
from ...core.spelling import suggestion
from ...io.formats.jobs_yaml import OWN_KEYS, JobEntry, parse_jobs
from ...io.onnx.compile.anchor_modes import Anchor
from ..options.command import Command, Option, option
from ..options.config import option_value
from ..options.destinations import MODEL_SUFFIX, SCHEDULE_SUFFIX, Destinations
from ..options.shared import OUTPUT, PROBLEM, SOLVING, GraphRequest, graph_options, solving_options
from ..options.training import TrainingRequest, training_options
from ..options.values import BUDGET, Name

DEFAULT_OUTPUT = "schedules"
MOST_JOBS = 100_000
_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
_PLACEHOLDERS = ("graph", "folder", "budget", "strategy")


@dataclass(frozen=True, slots=True)
class JobOptions:
    """The options of a job, before it has a name and a path."""

    request: GraphRequest
    solving: SolvingOptions
    training: TrainingRequest
    budget: Budget
    strategy: str
    no_onnx: bool
    anchor: str


@dataclass(frozen=True, slots=True)
class Job:
    """One run of `solve`, and the paths of its results."""

    name: str
    folder: Path
    options: JobOptions

    @property
    def source(self) -> str:
        return self.options.request.source

    def destinations(self, *, with_model: bool) -> Destinations:
        model = self.folder / (self.name + MODEL_SUFFIX) if with_model and not self.options.no_onnx else None
        return Destinations(self.folder / (self.name + SCHEDULE_SUFFIX), model)


@click.command(cls=Command)
@option("--budget", group=PROBLEM, type=BUDGET, required=True)
@graph_options()
@option("--strategy", group=SOLVING, type=Name("STRATEGY", tuple(STRATEGIES)), default="auto")
@solving_options
@training_options
@option("--no-onnx", group=OUTPUT, is_flag=True)
@option("--anchor", group=OUTPUT, type=Name("ANCHOR", tuple(anchor.value for anchor in Anchor)), default=Anchor.FULL.value)
def job_command(**options: Any) -> JobOptions:
    """Not a command for users: parses the options of one job as `solve` would."""
    return JobOptions(**options)


for _parameter in job_command.params:
    _parameter.envvar = None  # a jobs file must not depend on environment variables


def job_options() -> dict[str, Option]:
    """The options that a job may set besides its own keys, by long name."""
    return {found.long_name: found for found in job_command.own_options if found.long_name not in OWN_KEYS}


def jobs_of(document: object, where: str, folder: Path) -> list[Job]:
    """All jobs of a jobs file, in its order. No two write the same file."""
    jobs: list[Job] = []
    taken: dict[Path, str] = {}
    for entry in parse_jobs(document, where, folder, job_options()):
        for job in _expanded(entry, folder):
            path = job.destinations(with_model=False).paths[0]
            if path in taken:
                raise InputError(
                    f"{entry.where}: two jobs have the name {job.name!r} (of {taken[path]} and {job.source}); make the names differ with "
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
        _options(entry, values | {"budget": budget} | ({} if strategy is None else {"strategy": strategy}))
        for budget in entry.budgets
        for strategy in entry.strategies or (None,)
    ]
    for graph in entry.graphs:
        for options in prototypes:
            yield Job(
                _name(entry, template, Path(graph), options), output, replace(options, request=replace(options.request, source=graph))
            )


def _option_values(entry: JobEntry, folder: Path) -> dict[str, Any]:
    """Values in the form click takes; paths are relative to the jobs file."""
    known = job_options()
    values = {"threads": "1"} | {key: option_value(entry.where, key, known[key], found) for key, found in entry.options.items()}
    costs, device = values.get("costs"), values.get("device")
    if costs is not None and costs not in COST_MODELS and (folder / costs).is_file():
        values["costs"] = str(folder / costs)
    if device is not None and (folder / device).is_file():
        values["device"] = str(folder / device)
    return {str(known[key].name): value for key, value in values.items()}


def _options(entry: JobEntry, values: dict[str, Any]) -> JobOptions:
    try:
        with job_command.make_context("job", ["--", "graph"], default_map=values) as context:
            options = job_command.invoke(context)
    except click.BadParameter as error:
        name = error.param.long_name if isinstance(error.param, Option) else "graph"
        raise InputError(f"{entry.where}: {name}: {error.message}") from None
    except InputError as error:
        raise InputError(f"{entry.where}: {error}") from None
    assert isinstance(options, JobOptions)
    return options


def _name(entry: JobEntry, template: str, graph: Path, options: JobOptions) -> str:
    stem = graph.name
    for suffix in (".onnx", ".json", ".pb", ".pt2"):
        stem = stem.removesuffix(suffix) or stem
    parts = {
        "graph": stem,
        "folder": graph.resolve().parent.name,
        "budget": options.budget.text.replace("%", "pct").replace(" ", ""),
        "strategy": options.strategy,
    }
    for placeholder in _PLACEHOLDER.findall(template):
        if placeholder not in parts:
            hint = suggestion(placeholder, _PLACEHOLDERS) or f"; choose from {', '.join(f'{{{part}}}' for part in _PLACEHOLDERS)}"
            raise InputError(f"{entry.where}: name: no placeholder {{{placeholder}}}{hint}")
    name = _PLACEHOLDER.sub(lambda found: parts[found.group(1)], template)
    if name.startswith(".") or not name.isprintable() or any(character in name for character in '/\\:*?"<>|'):
        raise InputError(f"{entry.where}: name: {name!r} is not a valid file name; use 'output' for folders")
    return name
