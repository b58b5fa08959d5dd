"""A child process as the worker sees it: started, given jobs one at a time, retired or ended."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping

from penstock.errors import PenstockError
from penstock.run.task_executors import Outcome, RunLog, TaskError
from penstock.service.process_secrecy import without_secrets
from penstock_worker.executors.processes.pipes import PipeReader, Text
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
"""Bytes that a frame may have over the limit on results: an error, its traceback, a line of log."""
_REMINDERS = (0.1, 1.0)
"""Seconds after which a child that was told to stop is told again: once, and once more where it did not get to run meanwhile."""


class Child:
    """Use `start`. `jobs` counts what it was given."""

    def __init__(
        self, group: ProcessGroup, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._group = group
        self._reader = reader
        self._writer = writer
        self._log: RunLog | None = None
        self._hearing: asyncio.Future[Outcome | None] | None = None
        self.jobs = 0
        out, err = group.take_output()
        # What Python code prints comes in frames, in order. These carry what C code, subprocesses and the
        # interpreter itself write, such as the traceback of a segmentation fault.
        self._said = Text(lambda text: self._keep("stderr", text))
        self._pipes = (
            PipeReader(out, Text(lambda text: self._keep("stdout", text))),
            PipeReader(err, self._said),
        )

    @classmethod
    async def start(cls, environment: Mapping[str, str] | None = None) -> Child:
        """Start a child with these additions to its environment. Raises OSError if there can be no more processes.
        The child is ready for a job at once: it reads it when it has started."""
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
        except BaseException:  # cancelled just now
            group.kill()
            ours.close()
            raise

    @property
    def alive(self) -> bool:
        return not self._reader.at_eof()

    async def perform(self, job: bytes, log: RunLog, result_limit: int) -> Outcome:
        """Give the child a job frame and wait for the outcome, with at most `result_limit` bytes of result. If it
        dies over it, that is the outcome. When this is cancelled, `end` it."""
        self.jobs += 1
        self._log = log
        self._writer.write(job)
        # In a task of its own, so that a cancellation never stops it in the middle of a frame: what the work says
        # while it is being ended is still heard.
        self._hearing = asyncio.ensure_future(self._hear(result_limit + _FRAME_SLACK))
        outcome = await asyncio.shield(self._hearing) or await self._died()
        self._hush()
        return outcome

    async def retire(self) -> None:
        """Let an idle child go: it ends when it finds the connection closed, or else is killed."""
        self._writer.close()
        await self._group.end_by_itself(2.0)
        self._close()

    async def end(self, grace: float) -> None:
        """End what it does: SIGTERM, `grace` seconds, SIGKILL."""
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
        """A signal that comes just before Python calls what waits (a sleep, a read) is not looked at until that has ended."""
        for pause in _REMINDERS:
            await asyncio.sleep(pause)
            self._group.signal_leader(signal.SIGTERM)

    async def _hear(self, limit: int) -> Outcome | None:
        """Read until the outcome; None if the child dies first, or says what no child of ours would."""
        while (frame := await frames.read(self._reader, limit)) is not None:
            kind, body = frame
            try:
                if kind != frames.LOG:
                    return frames.outcome_of(kind, body)
                if self._log is not None:
                    self._log(*frames.line_of(body))
            except (ValueError, KeyError, TypeError, PenstockError):
                break
        return None

    def _hush(self) -> None:
        """Read the pipes for the last time. Output that comes later is dropped."""
        for pipe in self._pipes:
            pipe.drain()
        self._log = None

    def _close(self) -> None:
        if self._hearing is not None:
            self._hearing.cancel()
        self._writer.close()
        for pipe in self._pipes:
            pipe.close()

    async def _died(self) -> Outcome:
        # It is dying, or has closed its side and is of no more use.
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
