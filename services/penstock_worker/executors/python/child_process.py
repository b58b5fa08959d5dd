"""A child process from the worker's side. It is started, gets jobs one at a time, and is retired or ended."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence

from penstock.errors import OutsideRun, PenstockError
from penstock.run.outgoing import Outgoing, Request, answer_document, error_document
from penstock.run.task_executors import Outcome, Run, RunLog, TaskError
from penstock.service.process_secrecy import without_secrets
from penstock_worker.executors.processes.child_output import PipeReader, Text
from penstock_worker.executors.processes.process_group import ProcessGroup
from penstock_worker.executors.processes.program_result import failure
from penstock_worker.executors.python import frames

_BOOT = """\
import json, sys
sys.path[:] = json.loads(sys.argv[1])
from penstock_worker.executors.python.child_main import main
main(int(sys.argv[2]), int(sys.argv[3]))
"""
_FRAME_SLACK = 1024 * 1024
"""The bytes that a frame may have beyond the limit on results, for an error, its traceback, or a log line."""
_REMINDERS = (0.1, 1.0)
"""The seconds after which a child that was asked to stop is asked again, twice, as it may not have run meanwhile."""


class Child:
    """A child process; create it with `start`. `jobs` is the number of its jobs so far."""

    def __init__(
        self, group: ProcessGroup, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._group = group
        self._reader = reader
        self._writer = writer
        self._log: RunLog | None = None
        self._hearing: asyncio.Future[Outcome | None] | None = None
        self._outgoing: Outgoing | None = None
        self._items: Sequence[Run] = ()
        self._requests: set[asyncio.Task[None]] = set()
        self.jobs = 0
        self.is_spoiled = False
        """True if a thread of an ended attempt still waits for an answer. It could read the next job from the socket."""
        out, err = group.take_output()
        # Output of Python code arrives in frames, in order. The pipes carry only the output of C code, of subprocesses
        # and of the interpreter, such as the traceback of a segmentation fault.
        self._said = Text(lambda text: self._keep("stderr", text))
        self._pipes = (
            PipeReader(out, Text(lambda text: self._keep("stdout", text))),
            PipeReader(err, self._said),
        )

    @classmethod
    async def start(cls, environment: Mapping[str, str] | None = None) -> Child:
        """Start a child with these additions to its environment, and return it. Raises OSError if no process can be
        created.

        A job can be sent at once. The child reads it when it has started.
        """
        ours, theirs = socket.socketpair()
        with theirs:
            arguments = [json.dumps(sys.path), str(theirs.fileno()), str(os.getpid())]
            try:
                group = ProcessGroup(
                    [sys.executable, "-c", _BOOT, *arguments],
                    stdin=subprocess.DEVNULL,
                    env={**without_secrets(os.environ), **(environment or {})},
                    pass_fds=[theirs.fileno()],
                )
            except OSError:
                ours.close()
                raise
        try:
            return cls(group, *await asyncio.open_unix_connection(sock=ours))
        except BaseException:  # cancelled at this moment
            group.kill()
            ours.close()
            raise

    @property
    def alive(self) -> bool:
        return not self._reader.at_eof()

    async def perform(
        self,
        job: bytes,
        log: RunLog,
        result_limit: int,
        outgoing: Outgoing | None = None,
        items: Sequence[Run] = (),
    ) -> Outcome:
        """Send a job frame to the child, and return its outcome, with at most `result_limit` bytes of result. If the
        child dies, that is the outcome. The child's requests go to `outgoing`, and the requests of an item in a batch
        go to that item. When this is cancelled, call `end`."""
        self.jobs += 1
        self._log, self._outgoing, self._items = log, outgoing, items
        self._writer.write(job)
        # A separate task reads the frames, so that a cancellation never interrupts it in the middle of a frame. It also
        # reads the output while cancelled work is being ended.
        limit = (result_limit + _FRAME_SLACK) * max(1, len(items))
        self._hearing = asyncio.ensure_future(self._hear(limit))
        outcome = await asyncio.shield(self._hearing) or await self._died()
        self._hush()
        return outcome

    async def retire(self) -> None:
        """Retire an idle child. The child ends when it finds the connection closed, or is killed otherwise."""
        self._writer.close()
        await self._group.end_by_itself(2.0)
        self._close()

    async def end(self, grace: float) -> None:
        """End the child's work: SIGTERM, `grace` seconds, SIGKILL."""
        reminding = asyncio.ensure_future(self._remind())
        try:
            await self._group.end(grace)
            if self._hearing is not None:
                await asyncio.wait([self._hearing], timeout=1.0)
        finally:
            reminding.cancel()
            self._hush()
            self._close()

    async def _remind(self) -> None:
        """Repeat the signal to stop. If a signal arrives just before Python makes a blocking call (a sleep, a read),
        Python handles it only after that call."""
        for pause in _REMINDERS:
            await asyncio.sleep(pause)
            self._group.signal_leader(signal.SIGTERM)

    async def _hear(self, limit: int) -> Outcome | None:
        """Read frames until the outcome. Return None if the child dies first, or sends an invalid frame."""
        while (frame := await frames.read(self._reader, limit)) is not None:
            kind, body = frame
            try:
                if kind == frames.REQUEST:
                    task = asyncio.ensure_future(self._answer(*frames.numbered_request(body)))
                    self._requests.add(task)
                    task.add_done_callback(self._requests.discard)
                    continue
                if kind != frames.LOG:
                    outcome = frames.outcome_of(kind, body)
                    return outcome if len(outcome.items or self._items) == len(self._items) else None
                self._keep_text(*frames.text_of(body))
            except (ValueError, KeyError, TypeError, IndexError, PenstockError):
                break
        return None

    def _keep_text(self, stream: str, text: str, item: int | None) -> None:
        log = self._log if item is None or self._log is None else self._items[item].log
        if log is not None:
            log.write(stream, text)

    async def _answer(self, number: int, request: Request, item: int | None) -> None:
        """Carry out a request of the child's code, and send the answer."""
        try:
            outgoing = self._outgoing if item is None else self._items[item].outgoing
            if outgoing is None:
                raise OutsideRun(
                    "this code has no worker that could publish or start for it",
                    hint="On the machines of a cluster call the API with PENSTOCK_API_ADDRESS and PENSTOCK_TOKEN.",
                )
            document = answer_document(await outgoing.send(request))
            frame = frames.answer_frame(number, document)
        except Exception as error:
            frame = frames.answer_frame(number, error_document(error))
        self._writer.write(frame)

    def _hush(self) -> None:
        """Read the pipes for the last time. Later output is dropped."""
        for pipe in self._pipes:
            pipe.drain()
        self._log = self._outgoing = None
        self._items = ()
        if self._requests:
            self.is_spoiled = True
            for request in self._requests:
                request.cancel()

    def _close(self) -> None:
        if self._hearing is not None:
            self._hearing.cancel()
        self._writer.close()
        for pipe in self._pipes:
            pipe.close()

    async def _died(self) -> Outcome:
        # The child is dying, or has closed its end of the connection and cannot be used any more.
        status = await self._group.end_by_itself(1.0)
        for pipe in self._pipes:
            pipe.drain()
        fate = failure(status, self._said.last).error
        assert fate is not None
        message = f"the process of this attempt ended: {fate.message}"
        if status == -9:
            message += " (perhaps the kernel was out of memory)"
        return Outcome.failed(TaskError("ProcessDied", message, fate.traceback))

    def _keep(self, stream: str, text: str) -> None:
        if self._log is not None:
            self._log.write(stream, text)
