"""The batch itself: read, look into the cache, hand out, take back, verify, write. All files are read and written here; workers see text.

A job is done when its result is in the cache and its files are written, in this order: a batch that is killed finds its finished jobs in
the cache when it is run again, and writes the same files from there.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from ... import __version__
from ...core.certify import Certified
from ...core.errors import CheckmateError, LimitError
from ...core.problem import Problem
from ...core.result import Status
from ...io.cache import Cache, CorruptEntryError, Entry, cache_key
from ...io.task_json import Answer, Task, parse_answer, render_answer, render_task
from ..conditions import Condition
from ..exit_codes import ExitCode
from ..failures import explain, one_line
from ..local_crew import BROKEN
from ..options import GraphRequest
from ..outputs import Destinations, check_destinations
from ..pipeline import Prepared, prepare, require_above_floor
from ..schedule_files import check_model_can_be_written, write_results
from ..solved import require_fitting, solved_fields
from ..training import TrainingRequest, training_files, write_training_files
from .crews import Crew
from .jobs import Job
from .rows import Finished, not_run
from .work import answer_task, answer_text, certified_answer, read_reply

MOST_ATTEMPTS = 3
"""How often a job is tried whose worker dies."""
_WORTH_KEEPING = (Status.OPTIMAL, Status.FEASIBLE, Status.INFEASIBLE)
"""What found nothing is tried again next time."""


@dataclass(slots=True)
class Ready:
    """A job whose graph is read and whose task is set."""

    number: int
    job: Job
    prepared: Prepared
    problem: Problem
    destinations: Destinations
    task: Task
    key: str
    attempts: int = 0


@dataclass(slots=True)
class Listener:
    """What is told while the batch runs."""

    on_done: Callable[[Finished, int], None] = lambda row, done: None
    on_note: Callable[[str], None] = lambda text: None


@dataclass(slots=True)
class Batch:
    """State of a run. `stop` is a future that whoever wants the batch to end fulfils."""

    jobs: Sequence[Job]
    crew: Crew
    cache: Cache | None
    conditions: Sequence[Condition] = ()
    fail_fast: bool = False
    stop: Future[Any] = field(default_factory=Future)
    listener: Listener = field(default_factory=Listener)
    _rows: dict[int, Finished] = field(default_factory=dict)
    _running: dict[Future[Any], Ready] = field(default_factory=dict)
    _suspects: deque[Ready] = field(default_factory=deque)
    """Jobs during which a worker died: tried one at a time, so that whichever kills workers takes no other job along."""
    _last_read: tuple[tuple[GraphRequest, TrainingRequest, int], Prepared] | None = None
    _cache_works: bool = True

    def run(self) -> list[Finished]:
        """All rows in the order of the jobs; those not run say so."""
        waiting = deque(enumerate(self.jobs))
        try:
            while not self._over():
                self._hand_out(waiting)
                if not self._running or self._over():
                    break
                done, _ = wait([*self._running, self.stop], return_when=FIRST_COMPLETED)
                self._take_back(future for future in done if future is not self.stop)
        finally:
            self.crew.close()
        return [self._rows.get(number) or not_run(job) for number, job in enumerate(self.jobs)]

    def _over(self) -> bool:
        return self.stop.done() or (self.fail_fast and any(row.code is not ExitCode.OK for row in self._rows.values()))

    def _hand_out(self, waiting: deque[tuple[int, Job]]) -> None:
        """Keep everyone busy, and one task at hand for whoever is done first; suspects alone."""
        while not self._over():
            if self._suspects:
                if self._running:
                    return
                ready = self._suspects.popleft()
                self._attempt(ready.number, ready.job, partial(self._submit, ready))
                continue
            if not waiting or len(self._running) > self.crew.slots():
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
                self._fail(ready.number, ready.job, self.crew.explain(error))
                continue
            self._attempt(ready.number, ready.job, partial(self._accept, ready, text))
        if broken:
            for ready in self._running.values():
                self._lost(ready)
            self._running.clear()
            self.crew.renew()

    def _attempt(self, number: int, job: Job, work: Callable[[], None]) -> None:
        """Whatever goes wrong with one job is that job's row."""
        try:
            work()
        except Exception as error:
            self._fail(number, job, error)

    def _begin(self, number: int, job: Job) -> None:
        """Read the graph; take the result from the cache, or hand out the task."""
        prepared = self._prepared(job)
        wishes = job.wishes
        problem = prepared.at(wishes.budget)
        destinations = job.destinations(with_model=prepared.loaded.onnx is not None)
        check_destinations([*destinations.paths, *_beside(prepared, destinations)], job.source)
        check_model_can_be_written(prepared, destinations)
        require_above_floor(prepared, problem)
        task = Task(problem, wishes.strategy, wishes.solving.settings_for(wishes.strategy), wishes.solving.time_limit)
        ready = Ready(number, job, prepared, problem, destinations, task, cache_key(task, __version__))
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
            future = self.crew.submit(answer_text, text)
        except BROKEN:
            self.crew.renew()
            future = self.crew.submit(answer_text, text)
        self._running[future] = ready

    def _lost(self, ready: Ready) -> None:
        if ready.attempts < MOST_ATTEMPTS:
            self.listener.on_note(f"a worker died during {ready.job.name}; it runs again")
            self._suspects.append(ready)
        else:
            message = f"the worker died each of {ready.attempts} times it was tried, perhaps for want of memory"
            self._fail(ready.number, ready.job, LimitError(message))

    def _accept(self, ready: Ready, text: str) -> None:
        answer = read_reply(text, ready.problem)
        for warning in answer.warnings:
            self.listener.on_note(f"{ready.job.name}: {warning}")
        certified = certified_answer(ready.task, answer)
        self._remember(ready, answer)
        self._conclude(ready, answer, certified, from_cache=False)

    def _conclude(self, ready: Ready, answer: Answer, certified: Certified, *, from_cache: bool) -> None:
        """Write what `solve` writes."""
        prepared, wishes = ready.prepared, ready.job.wishes
        outcome = require_fitting(certified, prepared, ready.problem, wishes.solving)
        written = write_results(
            prepared, ready.problem, wishes.solving, certified, outcome, ready.destinations, wishes.anchor, answer=answer
        )
        beside = _beside(prepared, ready.destinations)
        if beside and prepared.training:
            written += write_training_files(prepared.training, *beside)
        violated = tuple(condition.text for condition in self.conditions if condition.met(outcome))
        row = Finished(
            job=ready.job,
            status=outcome.status.value,
            code=ExitCode.WORSE if violated else ExitCode.OK,
            outcome=outcome,
            unit=prepared.costs.unit,
            from_cache=from_cache,
            violated=violated,
            solved=solved_fields(prepared, wishes.budget, outcome, written),
        )
        self._done(ready.number, row)

    def _fail(self, number: int, job: Job, error: BaseException) -> None:
        code, status, message = explain(error)
        details: dict[str, Any] = getattr(error, "details", {})
        self._done(number, Finished(job, status, code, note=one_line(message), solved=details))

    def _done(self, number: int, row: Finished) -> None:
        self._rows[number] = row
        self.listener.on_done(row, len(self._rows))

    def _prepared(self, job: Job) -> Prepared:
        """Jobs of one graph follow one another: read it once."""
        wishes = job.wishes
        key = (wishes.request, wishes.training, wishes.solving.settings.seed)
        if self._last_read is None or self._last_read[0] != key:
            self._last_read = None
            self._last_read = key, prepare(wishes.request, wishes.training if wishes.training.wanted else None, key[2])
        return self._last_read[1]

    def _look_up(self, ready: Ready) -> tuple[Answer, Certified] | None:
        """A result that is there, whole, and passes the verifier; anything else is computed anew."""
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
            self.listener.on_note(f"a damaged entry of the cache is computed anew: {problem}")
            return None
        return (answer, certified) if certified.fits or answer.solution.status is Status.INFEASIBLE else None

    def _remember(self, ready: Ready, answer: Answer) -> None:
        if self.cache is None or answer.solution.status not in _WORTH_KEEPING or answer.warnings or not self._cache_works:
            return
        about = {
            "checkmate": __version__,
            "graph": ready.prepared.graph.name,
            "operations": len(ready.prepared.graph.operations),
            "cost_model": ready.prepared.costs.model,
            "cost_unit": ready.prepared.costs.unit,
            "budget_bytes": ready.problem.budget,
            **ready.task.options,
        }
        try:
            self.cache.put(Entry(ready.key, about, render_answer(answer)))
        except CheckmateError as error:
            self._cache_works = False
            self.listener.on_note(f"results are not cached: {error}")


def _beside(prepared: Prepared, destinations: Destinations) -> Sequence[Any]:
    return training_files(destinations.model) if prepared.training and destinations.model else ()


def quietly_fulfil(stop: Future[None]) -> None:
    """Ask a batch to end; more than once is once."""
    with suppress(Exception):
        stop.set_result(None)
