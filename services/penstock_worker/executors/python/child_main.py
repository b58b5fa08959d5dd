"""The program of a child process of the process executor. The child takes jobs, runs each, and answers, until the
worker closes the connection."""

from __future__ import annotations

import ctypes
import faulthandler
import importlib
import multiprocessing.spawn
import os
import pickle
import resource
import signal
import socket
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from penstock import tracing
from penstock.run import capture
from penstock.run.calls import call_plain, with_costs
from penstock.run.task_executors import Outcome, Run, RunLog
from penstock_worker.executors.python import frames
from penstock_worker.executors.python.child_outgoing import ChildOutgoing, ItemOutgoing

_PR_SET_PDEATHSIG = 1


class Stopped(BaseException):
    """The cancellation of an attempt, raised inside the action so that its `finally` blocks run."""


class _Here:
    """The action as the child process sees it: its function, and arguments that the worker has validated."""

    executor = "process"
    options: Mapping[str, Any] = {}

    def __init__(
        self, ref: str, function: Callable[..., Any], is_coroutine: bool, arguments: dict[str, Any]
    ) -> None:
        self.ref = ref
        self.function = function
        self.is_coroutine = is_coroutine
        self._arguments = arguments

    def bind(self, params: Mapping[str, Any], /) -> dict[str, Any]:
        return self._arguments


class _State:
    busy = False
    stopping = False


def main(fd: int, worker: int) -> None:
    _die_with(worker)
    faulthandler.enable()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _stop)
    os.set_inheritable(fd, False)  # not inherited by processes that the action forks
    channel = socket.socket(fileno=fd)
    capture.install()
    while not _State.stopping and (frame := frames.receive(channel)) is not None:
        if frames.is_answer(frame):  # the answer is for a thread that an ended attempt left behind
            continue
        job: frames.Job = pickle.loads(frame)
        outgoing = ChildOutgoing(channel, job.result_limit)
        log = _log(outgoing, job.log_limit)
        outcome = _perform(job, log, outgoing)
        log.close()
        outgoing.close()
        outgoing.send_frame(frames.outcome_frame(outcome))


def _log(outgoing: ChildOutgoing, limit: int, item: int | None = None) -> RunLog:
    """Return a log for the worker, which masks secrets. The log gets the pieces of an unfinished line as they are."""

    def send(stream: str, text: str) -> None:
        if outgoing.is_forked:
            os.write(
                1 if stream == "stdout" else 2, text.encode(errors="replace")
            )  # the worker reads these pipes
        else:
            outgoing.send_frame(frames.log_frame(stream, text, item))

    return RunLog(lambda stream, line: send(stream, f"{line}\n"), limit, pieces=send)


def _perform(job: frames.Job, log: RunLog, outgoing: ChildOutgoing) -> Outcome:
    try:
        function = _find(job)
        arguments = pickle.loads(job.arguments)
        action = _Here(job.ref, function, job.is_coroutine, {} if job.items is not None else arguments)
        items = None if job.items is None else _items(job, job.items, action, arguments, outgoing)
    except BaseException as error:
        return Outcome.raised(error)
    run = Run(
        job.event,
        job.params,
        action,
        log,
        carry=job.carry,
        context=job.context,
        result_limit=job.result_limit,
        trace=job.trace,
        outgoing=outgoing,
        items=items,
    )
    try:
        _State.busy = True
        with tracing.inside(tracing.trace_of(job.trace)), _memory(job.memory_limit):
            return with_costs(call_plain(run), run)
    except BaseException as error:  # no memory for the answer, or a stop between two lines of this function
        return with_costs(Outcome.raised(error), run)
    finally:
        _State.busy = False
        for item in items or ():
            item.log.close()


def _items(
    job: frames.Job,
    items: Sequence[frames.JobItem],
    action: _Here,
    inputs: Sequence[Any],
    outgoing: ChildOutgoing,
) -> list[Run]:
    return [
        Run(
            item.event,
            item.params,
            action,
            _log(outgoing, item.log_limit, place),
            carry=item.carry,
            context=item.context,
            result_limit=job.result_limit,
            outgoing=ItemOutgoing(outgoing, place),
            input=value,
        )
        for place, (item, value) in enumerate(zip(items, inputs, strict=True))
    ]


def _find(job: frames.Job) -> Callable[..., Any]:
    if job.main is not None:
        multiprocessing.spawn.prepare(dict(job.main))  # loads the main module once; later jobs have the same
    target: Any = importlib.import_module(job.module)
    for part in job.qualname.split("."):
        target = getattr(target, part)
    # If a decorator replaced the function by an action, the action has the function.
    function: Callable[..., Any] = getattr(target, "function", target)
    return function


@contextmanager
def _memory(limit: int | None) -> Iterator[None]:
    if limit is None:
        yield
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    mapped = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    ceiling = mapped + limit
    resource.setrlimit(resource.RLIMIT_AS, (ceiling if hard < 0 else min(ceiling, hard), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def _stop(number: int, frame: FrameType | None) -> None:
    if _State.stopping:  # the signal is sent more than once, see `Child.end`
        return
    _State.stopping = True
    if _State.busy:
        raise Stopped("the attempt was cancelled")
    os._exit(0)


def _die_with(worker: int) -> None:
    """Ask the kernel to kill this process when the worker dies (Linux only; elsewhere the orphan killer does it)."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != worker:  # the worker died before the request
        os._exit(1)
