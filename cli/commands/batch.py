"""`checkmate batch`: solve many graphs at many budgets with many strategies from one file, on many processes or machines; resumable."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

import click

from ...core.errors import InputError
from ..console import Console
from ..exit_codes import ExitCode
from ..jobs.interruption import Interruption
from ..options.cache_folder import cache_folder_of, cache_option
from ..options.command import Command, option
from ..options.conditions import CONDITION, Condition
from ..options.destinations import check_destinations, make_folders
from ..options.shared import GENERAL, OUTPUT, general_options
from ..options.values import COUNT, Name
from ..output.progress import Progress

RUNNING = "Running"
EXECUTORS = ("processes", "dask")


@click.command(
    cls=Command,
    examples=[
        ("checkmate batch jobs.yaml", "all jobs of the file, on all cores"),
        (
            "checkmate batch jobs.yaml --workers 2 --fail-if 'gap > 1%' --fail-if 'peak > 8GB'",
            "for CI: exit with 7 if a schedule is worse than this",
        ),
        ("checkmate batch jobs.yaml --json | jq -r '.jobs[] | [.name, .cost, .gap] | @tsv'", "print your own table"),
        ("checkmate batch jobs.yaml --executor dask --scheduler tcp://head:8786", "on a Dask cluster"),
    ],
)
@click.argument("jobs", type=click.Path(allow_dash=True))
@option("--workers", group=RUNNING, type=COUNT, help="Local processes.  [default: one per core]")
@option("--executor", group=RUNNING, type=Name("EXECUTOR", EXECUTORS), help="processes or dask.  [default: processes]")
@option("--scheduler", group=RUNNING, metavar="ADDRESS", help="The Dask scheduler, such as tcp://head:8786.")
@option("--keep-going", group=RUNNING, is_flag=True, help="Run all jobs, even if some fail; the default.")
@option("--fail-fast", group=RUNNING, is_flag=True, help="Stop at the first job that fails.")
@option(
    "--fail-if",
    group=RUNNING,
    multiple=True,
    type=CONDITION,
    help="Count schedules that meet this as failed: 'gap > 1%', 'peak > 8GB'; also cost, overhead, seconds; repeatable.",
)
@option("-o", "--results", group=OUTPUT, metavar="FILE", help="Write the results of all jobs as one JSON file; - is stdout.")
@option("--no-cache", group=GENERAL, is_flag=True, help="Neither read nor write the cache.")
@cache_option
@general_options
def batch(
    console: Console,
    jobs: str,
    workers: int | None,
    executor: str | None,
    scheduler: str | None,
    keep_going: bool,
    fail_fast: bool,
    fail_if: tuple[Condition, ...],
    results: str | None,
    no_cache: bool,
    cache_folder: str | None,
) -> ExitCode:
    """Solve every job of JOBS, a YAML file of graphs, budgets and options.

    Writes a schedule for each job and, for ONNX input, a compiled model, as 'solve' does. Finished jobs are kept in a cache: to continue
    a batch that was stopped or killed, run the same command again. Exits with the worst exit code of all jobs.
    JOBS may be - for stdin; paths in it are relative to the file.
    """
    _check_executor(executor, workers, scheduler)
    if results == "-" and console.json:
        results = None
    listed = _read_jobs(jobs)
    for job in listed:
        check_destinations(job.destinations(with_model=False).paths, job.source)
    if results not in (None, "-"):
        check_destinations([Path(str(results))], jobs)

    from ...io.formats.result_cache import Cache
    from ..jobs.batch_run import Batch, Listener, quietly_fulfil

    began = time.monotonic()
    progress = Progress(console)
    with progress:
        progress.begin(f"{len(listed)} jobs")
        executor_ = _executor(scheduler, min(workers or _cores(), len(listed)))
        work = Batch(
            jobs=listed,
            executor=executor_,
            cache=None if no_cache else Cache(cache_folder_of(cache_folder)),
            conditions=fail_if,
            fail_fast=fail_fast and not keep_going,
        )

        def on_done(row: Any, done: int) -> None:
            progress.share(done, len(listed))
            console.detail(f"{row.job.name}: {row.status}{' (cached)' if row.from_cache else ''}{f': {row.note}' if row.note else ''}")

        work.listener = Listener(on_done, lambda text: progress.announce(f"note: {text}"))

        def stop() -> None:
            progress.announce("stopping; finished jobs are kept; press Ctrl-C again to exit at once")
            quietly_fulfil(work.stop)

        interruption = Interruption(console, stop)
        interruption.consequence = "finished jobs are written; run the same command again to continue"
        with interruption:
            rows = work.run()
    return _deliver(console, rows, time.monotonic() - began, results, interrupted=interruption.requested)


def _check_executor(executor: str | None, workers: int | None, scheduler: str | None) -> None:
    if executor == "dask" and scheduler is None:
        raise InputError("--executor dask needs --scheduler, the address of a Dask scheduler such as tcp://head:8786")
    if scheduler is not None and executor != "dask":
        raise InputError("--scheduler needs --executor dask; add it, or leave out --scheduler")
    if scheduler is not None and workers is not None:
        raise InputError("--workers is for local processes, and a Dask cluster has its own workers; leave out --workers")


def _read_jobs(source: str) -> list[Any]:
    from ...io.formats.strict_yaml import parse_yaml_stream, read_yaml
    from ..jobs.job_list import jobs_of

    if source == "-":
        return jobs_of(parse_yaml_stream(sys.stdin.buffer, "stdin"), "stdin", Path())
    return jobs_of(read_yaml(Path(source)), source, Path(source).parent)


def _executor(scheduler: str | None, workers: int) -> Any:
    from ..jobs.executors import DaskExecutor
    from ..jobs.worker_pool import WorkerPool

    return WorkerPool(workers) if scheduler is None else DaskExecutor(scheduler)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _deliver(console: Console, rows: list[Any], seconds: float, results: str | None, *, interrupted: bool) -> ExitCode:
    from ...io.formats.atomic import atomic_write
    from ...io.formats.json_text import json_text
    from ..jobs.rows import batch_fields, show_rows, worst

    code = ExitCode.INTERRUPTED if interrupted else worst(rows)
    fields = batch_fields(rows, code, seconds)
    if results == "-":
        sys.stdout.write(json_text(fields))
    elif results is not None:
        make_folders([Path(results)])
        atomic_write(Path(results), json_text(fields).encode("utf-8", "backslashreplace"))
    if console.json:
        console.emit_json(fields)
    elif not console.quiet:
        show_rows(rows, seconds, sys.stderr if results == "-" else sys.stdout)
    if interrupted:
        console.note("interrupted: finished jobs are written; run the same command again to continue")
    return code
