"""The executor of programs in any language.

The program reads its parameters as JSON from standard input, and its result is the JSON that it prints last. Its
standard error is its log, line by line. program_result.py has the meaning of its exit status. The program runs in its
own process group. When the attempt is cancelled or times out, the group gets SIGTERM, and after the grace SIGKILL. When
the program has ended, or the worker dies, all processes left in the group are killed.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections.abc import Mapping
from typing import IO, Any

import orjson

from penstock.attempts.executor_options import program_of
from penstock.errors import DefinitionError, InvalidInput
from penstock.language.definitions.program_actions import CommandOptions
from penstock.run.task_executors import ExecutorMetrics, Outcome, Run, Tally, TaskError
from penstock_worker.executors.processes import program_result, run_environment
from penstock_worker.executors.processes.child_output import PipeReader, Tail, Text
from penstock_worker.executors.processes.process_group import ProcessGroup


class CommandExecutor:
    def __init__(self, *, capacity: int = 2 * (os.cpu_count() or 1)) -> None:
        """Create the executor. `capacity` is the number of programs at a time."""
        self.name = "command"
        self._tally = Tally(self.name, capacity)
        self.has_capacity = self._tally.has_capacity

    async def open(self) -> None:
        """Do nothing, since nothing has to be prepared."""

    async def execute(self, run: Run) -> Outcome:
        return await self._tally.counted(_run, run)

    def metrics(self) -> ExecutorMetrics:
        return self._tally.metrics()

    async def close(self, grace: float) -> None:
        """Do nothing. Programs end with the tasks that await them."""


async def _run(run: Run) -> Outcome:
    try:
        options, params = program_of(run, CommandOptions)
    except (DefinitionError, InvalidInput) as error:
        return Outcome.refused(error, retryable=False)
    env = {**run_environment.inherited(options.pass_env), **options.env, **run_environment.of_run(run)}
    try:
        with _input(params) as stdin:
            group = ProcessGroup(_resolved(options, env), stdin=stdin, env=env, cwd=options.cwd)
    except (OSError, ValueError) as error:  # ValueError: an argument contains NUL
        message = f"{options.command[0]} cannot be started on this worker: {error}"
        return Outcome.failed(TaskError("CommandNotStarted", message))
    out, err = group.take_output()
    tail, said_text = Tail(run.result_limit), Text(lambda text: run.log.write("stderr", text))
    readers = PipeReader(out, tail), PipeReader(err, said_text)
    try:
        try:
            status = await group.ended()
        except asyncio.CancelledError:
            run.cancelled = True
            await group.end(run.grace)
            raise
        finally:
            for reader in readers:
                reader.drain()
    finally:
        for reader in readers:
            reader.close()
    return _outcome(run, options, status, tail, said_text.last)


def _outcome(run: Run, options: CommandOptions, status: int, tail: Tail, stderr: str) -> Outcome:
    output = tail.read()
    if status != 0:
        outcome, remainder = program_result.failure(status, stderr), output
    elif options.output == "none":
        outcome, remainder = Outcome.returned(None), output
    elif options.output == "text":
        outcome, remainder = Outcome.returned(output.decode("utf-8", "replace"), run.result_limit), b""
    else:
        outcome, remainder = program_result.success(output, run.result_limit, cut=tail.cut)
    if remainder:
        run.log.write("stdout", remainder.decode("utf-8", "replace"))
    return outcome


def _resolved(options: CommandOptions, env: dict[str, str]) -> list[str]:
    """Return the command, with its program looked up on the PATH of its own environment."""
    program, *arguments = options.command
    return [shutil.which(program, path=env.get("PATH")) or program, *arguments]


def _input(params: Mapping[str, Any]) -> IO[bytes]:
    """Return the parameters in an unnamed file instead of a pipe, since a program need not read them."""
    file = tempfile.TemporaryFile()  # noqa: SIM115  # the caller closes it
    file.write(orjson.dumps(params))
    file.seek(0)
    return file
