"""The public interface for task executors that send functions to another machine, such as those for Dask and Ray.

The worker seals the job of a run, and sends it. A process of the cluster performs the job in a child process, and
watches it until it ends or has to stop. The worker unseals the answer. Both sides import this module, so both need the
same version of Penstock. docs/task-executors.md shows how to use it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from penstock.attempts.executor_options import options_of
from penstock.errors import DefinitionError
from penstock.language.definitions.program_actions import OPTIONS
from penstock.run.task_executors import Outcome, Run, RunLog, TaskError
from penstock_worker.executors.processes import run_environment
from penstock_worker.executors.python import frames
from penstock_worker.executors.python.child_process import Child
from penstock_worker.executors.python.jobs import job_of

__all__ = ["END_MARGIN", "Answer", "SealedJob", "declared_options", "perform", "sealed", "unsealed"]

END_MARGIN = 10.0
"""The seconds that a cluster gets, beyond the grace, to report that stopped work has ended."""


@dataclass(frozen=True, slots=True)
class SealedJob:
    """A job as bytes, so that no log or page of a cluster shows its parameters. Its `repr` has only names."""

    ref: str
    frame: bytes = field(repr=False)
    grace: float
    log_limit: int
    result_limit: int
    api: Mapping[str, str] = field(repr=False, default_factory=dict)
    """The variables with which the action calls the API."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The outcome of an attempt and its output, as bytes for the same reason. Also, no object of the action is
    unpickled here."""

    outcome: bytes = field(repr=False)
    lines: bytes = field(repr=False)


def declared_options(run: Run, executor: str) -> dict[str, Any]:
    """Return the options of the run's action, with the defaults of this built-in task executor. Raises DefinitionError
    that names an unknown or invalid option."""
    return options_of(run, OPTIONS[executor]).model_dump()


def sealed(run: Run) -> SealedJob:
    """Return the job of a run. Raises DefinitionError if it cannot run on another machine, and the errors of `bind`."""
    job = job_of(run)
    if job.main is not None:
        raise DefinitionError(
            f"{run.action.ref} cannot run on another machine: it is defined in the script that this worker runs",
            hint="Define it in a module that the machines of the cluster have, too.",
        )
    return SealedJob(
        job.ref,
        frames.job_frame(job),
        run.grace,
        job.log_limit,
        job.result_limit,
        run_environment.of_api(run),
    )


def unsealed(answer: Answer, run: Run) -> Outcome:
    """Return the outcome, and write the output to the log of the run."""
    for stream, text in orjson.loads(answer.lines):
        run.log.write(str(stream), str(text))
    return frames.outcome_of(answer.outcome[:1], answer.outcome[1:])


async def perform(
    job: SealedJob, stopped: Coroutine[Any, Any, object], environment: Mapping[str, str] | None = None
) -> Answer:
    """Run the job in a child process, with `environment` added to its own. When `stopped` returns, the child is ended:
    SIGTERM, the grace of the job, SIGKILL."""
    lines: list[tuple[str, str]] = []

    def keep(stream: str, text: str) -> None:
        lines.append((stream, text))

    log = RunLog(lambda stream, line: keep(stream, f"{line}\n"), job.log_limit, pieces=keep)
    outcome = await _outcome(job, log, asyncio.ensure_future(stopped), environment)
    log.close()
    return Answer(frames.outcome_frame(outcome)[frames.HEADER :], orjson.dumps(lines))


async def _outcome(
    job: SealedJob, log: RunLog, stop: asyncio.Future[object], environment: Mapping[str, str] | None
) -> Outcome:
    try:
        child = await Child.start({**job.api, **(environment or {})})
    except OSError as error:
        stop.cancel()
        return Outcome.failed(TaskError("ProcessNotStarted", f"no process could be started: {error}"))
    work = asyncio.ensure_future(child.perform(job.frame, log, job.result_limit))
    try:
        await asyncio.wait((work, stop), return_when=asyncio.FIRST_COMPLETED)
    except BaseException:  # the cluster is ending this process
        await child.end(0)
        raise
    finally:
        stop.cancel()
    if work.done():
        await child.retire()
        return work.result()
    await child.end(job.grace)
    work.cancel()
    return Outcome.failed(TaskError("Stopped", "the attempt was told to stop"))
