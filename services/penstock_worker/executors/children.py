"""A child process as the worker sees it: started, given jobs one at a time, retired or killed."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys

import orjson

from penstock.task_executors import Outcome, Run, RunLog, TaskError
from penstock_worker.executors import frames
from penstock_worker.executors.pipes import PipeReader, Text
from penstock_worker.executors.process_group import ProcessGroup
from penstock_worker.executors.program_result import failure

_BOOT = """\
import json, sys
sys.path[:] = json.loads(sys.argv[1])
from penstock_worker.executors.child import main
main(int(sys.argv[2]), int(sys.argv[3]))
"""
_FRAME_SLACK = 1024 * 1024
"""Bytes that a frame may have over the limit on results: an error, its traceback, a line of log."""


class Child:
    """Use `start`. `jobs` counts what it was given."""

    def __init__(
        self, group: ProcessGroup, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._group = group
        self._reader = reader
        self._writer = writer
        self._log: RunLog | None = None
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
    async def start(cls) -> Child:
        """Raises OSError if there can be no more processes. The child is ready for a job at once: it reads it
        when it has started."""
        ours, theirs = socket.socketpair()
        with theirs:
            arguments = [json.dumps(sys.path), str(theirs.fileno()), str(os.getpid())]
            try:
                group = ProcessGroup(
                    [sys.executable, "-c", _BOOT, *arguments],
                    stdin=subprocess.DEVNULL,
                    pass_fds=[theirs.fileno()],
                )
            except OSError:
                ours.close()
                raise
        return cls(group, *await asyncio.open_unix_connection(sock=ours))

    @property
    def alive(self) -> bool:
        return not self._reader.at_eof()

    async def perform(self, job: bytes, run: Run) -> Outcome:
        """Give it a job frame and wait for the outcome. If it dies over it, that is the outcome."""
        self.jobs += 1
        self._log = run.log
        try:
            self._writer.write(job)
            limit = run.result_limit + _FRAME_SLACK
            while (frame := await frames.read(self._reader, limit)) is not None:
                kind, body = frame
                if kind != frames.LOG:
                    return frames.outcome_of(kind, body)
                run.log(*orjson.loads(body))
            return await self._died()
        finally:
            for pipe in self._pipes:
                pipe.drain()
            self._log = None

    async def end(self, grace: float) -> None:
        """Stop what it does: SIGTERM, `grace` seconds, SIGKILL. An idle child stops at once."""
        self._writer.close()
        try:
            await self._group.end(grace)
        finally:
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
