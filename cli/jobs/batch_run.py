"""Run a batch: read graphs, look up the cache, send tasks to workers, verify their answers, write files. All files are read and written
here; workers receive and return text.

A job is done when its result is in the cache and its files are written, in this order: when a killed batch is run again, it finds its
finished jobs in the cache and writes the same files.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from ... import __version__
from ...api.pricing import PricedGraph
from ...api.result import Result
from ...api.solving import require_fitting
from ...core.errors import CheckmateError, LimitError
from ...core.model.problem import Problem
from ...core.result import Result as CoreResult
from ...core.result import Status
from ...io.formats.result_cache import Cache, CorruptEntryError, Entry, cache_key
from ...io.formats.task_json import Answer, Task, parse_answer, render_answer, render_task
from ..exit_codes import ExitCode
from ..failures import explain, one_line
from ..options.conditions import Condition
from ..options.destinations import Destinations, check_destinations
from ..options.shared import GraphRequest
from ..options.training import TrainingRequest, training_files
from ..output.schedule_files import check_model_can_be_written, write_results
from ..output.solved import solved_fields
from ..output.training_notes import training_notes
from .executors import Executor
from .job_list import Job
from .job_worker import answer_task, answer_text, certified_answer, read_reply
from .rows import Finished, not_run
from .worker_pool import BROKEN

MOST_ATTEMPTS = 3
"""How often a job is tried if its worker dies."""
_WORTH_KEEPING = (Status.OPTIMAL, Status.FEASIBLE, Status.INFEASIBLE)
"""Other results are not cached: such jobs are tried again next time."""


@dataclass(slots=True)
class Ready:
    """A job with its graph and its task."""

    number: int
    job: Job
    priced: PricedGraph
    problem: Problem
    destinations: Destinations
    task: Task
    key: str
    attempts: int = 0


@dataclass(slots=True)
class Listener:
    """Callbacks while the batch runs."""

    on_done: Callable[[Finished, int], None] = lambda row, done: None
    on_note: Callable[[str], None] = lambda text: None


@dataclass(slots=True)
class Batch:
    """State of a run. To end the batch, set the result of the future `stop`."""

    jobs: Sequence[Job]
    executor: Executor
    cache: Cache | None
    conditions: Sequence[Condition] = ()
    fail_fast: bool = False
    stop: Future[Any] = field(default_factory=Future)
    listener: Listener = field(default_factory=Listener)
    _rows: dict[int, Finished] = field(default_factory=dict)
    _running: dict[Future[Any], Ready] = field(default_factory=dict)
    _suspects: deque[Ready] = field(default_factory=deque)
    """Jobs during which a worker died: tried one at a time, so that a job that kills its worker affects no other job."""
    _last_read: tuple[tuple[GraphRequest, TrainingRequest, int], PricedGraph] | None = None
    _cache_works: bool = True

    def run(self) -> list[Finished]:
        """All rows in the order of the jobs, including those that were not run."""
        waiting = deque(enumerate(self.jobs))
        try:
            while not self._over():
                self._hand_out(waiting)
                if not self._running or self._over():
                    break
                done, _ = wait([*self._running, self.stop, self.executor.lost], return_when=FIRST_COMPLETED)
                if self.executor.lost in done:
                    self._give_up(self.executor.lost.result())
                    break
                self._take_back(future for future in done if future is not self.stop)
        finally:
            self.executor.close()
        return [self._rows.get(number) or not_run(job) for number, job in enumerate(self.jobs)]

    def _give_up(self, error: BaseException) -> None:
        """All jobs without a result fail; what is finished is kept."""
        self._take_back([future for future in self._running if future.done()])
        self._running.clear()
        for number, job in enumerate(self.jobs):
            if number not in self._rows:
                self._fail(number, job, error)

    def _over(self) -> bool:
        return self.stop.done() or (self.fail_fast and any(row.code is not ExitCode.OK for row in self._rows.values()))

    def _hand_out(self, waiting: deque[tuple[int, Job]]) -> None:
        """Keep all workers busy, with one more task ready for the first that is done; run suspects alone."""
        while not self._over():
            if self._suspects:
                if self._running:
                    return
                ready = self._suspects.popleft()
                self._attempt(ready.number, ready.job, partial(self._submit, ready))
                continue
            if not waiting or len(self._running) > self.executor.slots():
                return
            number, job = waiting.popleft()
            self._attempt(number, job, partial(self._begin, number, job))

    def _take_back(self, done: Iterable[Future[Any]]) -> None:
        broken = False
        for future in done:
            ready = self._running.pop(future)
            try:
                text = future.result()
            except BROKEN:
                broken = True
                self._lost(ready)
                continue
            except BaseException as error:
                self._fail(ready.number, ready.job, self.executor.explain(error))
                continue
            self._attempt(ready.number, ready.job, partial(self._accept, ready, text))
        if broken:
            for ready in self._running.values():
                self._lost(ready)
            self._running.clear()
            self.executor.renew()

    def _attempt(self, number: int, job: Job, work: Callable[[], None]) -> None:
        """An error in a job becomes the row of that job."""
        try:
            work()
        except Exception as error:
            self._fail(number, job, error)

    def _begin(self, number: int, job: Job) -> None:
        """Read the graph; take the result from the cache, or submit the task."""
        priced = self._priced(job)
        options = job.options
        problem = priced.at(options.budget)
        destinations = job.destinations(with_model=True).for_model(priced.loaded)
        check_destinations([*destinations.paths, *_beside(priced, destinations)], job.source)
        check_model_can_be_written(priced.loaded, destinations)
        priced.require_possible(problem)
        task = Task(problem, options.strategy, options.solving.settings_for(options.strategy), options.solving.time_limit)
        ready = Ready(number, job, priced, problem, destinations, task, cache_key(task, __version__))
        found = self._look_up(ready)
        if found is not None:
            self._conclude(ready, *found, from_cache=True)
        elif problem.count:
            self._submit(ready)
        else:
            answer = answer_task(task)
            self._conclude(ready, answer, certified_answer(task, answer), from_cache=False)

    def _submit(self, ready: Ready) -> None:
        ready.attempts += 1
        text = render_task(ready.task, __version__)
        try:
            future = self.executor.submit(answer_text, text)
        except BROKEN:
            self.executor.renew()
            future = self.executor.submit(answer_text, text)
        self._running[future] = ready

    def _lost(self, ready: Ready) -> None:
        if ready.attempts < MOST_ATTEMPTS:
            self.listener.on_note(f"the worker process of {ready.job.name} died; running the job again")
            self._suspects.append(ready)
        else:
            message = f"the worker process died in each of {ready.attempts} attempts, perhaps because memory ran out"
            self._fail(ready.number, ready.job, LimitError(message))

    def _accept(self, ready: Ready, text: str) -> None:
        answer = read_reply(text, ready.problem)
        for warning in answer.warnings:
            self.listener.on_note(f"{ready.job.name}: {warning}")
        result = certified_answer(ready.task, answer)
        self._remember(ready, answer)
        self._conclude(ready, answer, result, from_cache=False)

    def _conclude(self, ready: Ready, answer: Answer, certified: CoreResult, *, from_cache: bool) -> None:
        """Write what `solve` writes."""
        priced, options = ready.priced, ready.job.options
        fitting = require_fitting(certified, ready.problem, options.solving)
        result = Result(fitting, priced, options.budget, options.solving.settings.seed, run=answer.run, versions=answer.versions)
        written = write_results(result, ready.destinations, anchor=options.anchor, training=_beside(priced, ready.destinations))
        violated = tuple(condition.text for condition in self.conditions if condition.met(result))
        row = Finished(
            job=ready.job,
            status=result.status.value,
            code=ExitCode.WORSE if violated else ExitCode.OK,
            result=result,
            unit=priced.costs.unit,
            from_cache=from_cache,
            violated=violated,
            solved=solved_fields(result, written),
        )
        self._done(ready.number, row)

    def _fail(self, number: int, job: Job, error: BaseException) -> None:
        code, status, message = explain(error)
        details: dict[str, Any] = getattr(error, "details", {})
        self._done(number, Finished(job, status, code, note=one_line(message), solved=details))

    def _done(self, number: int, row: Finished) -> None:
        self._rows[number] = row
        self.listener.on_done(row, len(self._rows))

    def _priced(self, job: Job) -> PricedGraph:
        """Consecutive jobs often have the same graph: read it once."""
        options = job.options
        key = (options.request, options.training, options.solving.settings.seed)
        if self._last_read is None or self._last_read[0] != key:
            self._last_read = None
            loaded = options.training.load(options.request, key[2])
            for note in training_notes(loaded.training):
                self.listener.on_note(f"{job.name}: {note.partition(': ')[2]}")
            self._last_read = key, options.request.price(loaded)
        return self._last_read[1]

    def _look_up(self, ready: Ready) -> tuple[Answer, CoreResult] | None:
        """The cached result, if it is undamaged and passes the verifier; otherwise the job is solved again."""
        if self.cache is None:
            return None
        where = self.cache.path_of(ready.key)
        try:
            entry = self.cache.get(ready.key)
            if entry is None:
                return None
            answer = parse_answer(dict(entry.answer), ready.problem, str(where))
            certified = certified_answer(ready.task, answer)
        except CheckmateError as error:
            problem = str(error) if isinstance(error, CorruptEntryError) else f"{where}: {error}"
            self.listener.on_note(f"ignoring a damaged cache entry and solving again: {problem}")
            return None
        return (answer, certified) if certified.fits or answer.result.status is Status.INFEASIBLE else None

    def _remember(self, ready: Ready, answer: Answer) -> None:
        if self.cache is None or answer.result.status not in _WORTH_KEEPING or answer.warnings or not self._cache_works:
            return
        about = {
            "checkmate": __version__,
            "graph": ready.priced.graph.name,
            "operations": len(ready.priced.graph.operations),
            "cost_model": ready.priced.costs.model,
            "cost_unit": ready.priced.costs.unit,
            "budget_bytes": ready.problem.budget,
            **ready.task.options,
        }
        try:
            self.cache.put(Entry(ready.key, about, render_answer(answer)))
        except CheckmateError as error:
            self._cache_works = False
            self.listener.on_note(f"results are not cached: {error}")


def _beside(priced: PricedGraph, destinations: Destinations) -> Sequence[Path]:
    return training_files(destinations.model) if priced.loaded.training and destinations.model else ()


def quietly_fulfil(stop: Future[None]) -> None:
    """Ask a batch to end; calling it again has no effect."""
    with suppress(Exception):
        stop.set_result(None)
