"""A child process with its own session and process group: its start, its wait, and its complete end."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import IO

from penstock.service.process_secrecy import without_secrets
from penstock_worker.executors.processes.orphan_registry import REGISTRY


class ProcessGroup:
    """A process group that ends as a whole. When the leader has ended, the rest is killed. When the worker dies, all
    of it is killed (see orphan_killer.py). Only a process with its own session escapes."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        stdin: IO[bytes] | int,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        pass_fds: Sequence[int] = (),
    ) -> None:
        """Start the command. With `env` None it gets the worker's environment without our credentials. Raises OSError
        if it cannot be started."""
        self._popen: subprocess.Popen[bytes] = subprocess.Popen(
            command,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**(without_secrets(os.environ) if env is None else env), **REGISTRY.mark()},
            cwd=cwd,
            pass_fds=pass_fds,
            start_new_session=True,  # setsid, which also keeps a terminal's Ctrl-C from it
        )
        self.pid = self._popen.pid
        REGISTRY.add(self.pid)
        self._ended = asyncio.ensure_future(self._wait())

    def take_output(self) -> tuple[int, int]:
        """Return the file descriptors of standard output and standard error, which the caller then owns."""
        assert self._popen.stdout is not None
        assert self._popen.stderr is not None
        out, err = os.dup(self._popen.stdout.fileno()), os.dup(self._popen.stderr.fileno())
        self._popen.stdout.close()
        self._popen.stderr.close()
        return out, err

    async def ended(self) -> int:
        """Wait until the leader has ended and the rest of the group is killed. Return the exit status, or minus a
        signal."""
        return await asyncio.shield(self._ended)

    async def end(self, grace: float) -> int:
        """End the group: SIGTERM, `grace` seconds, SIGKILL. A second cancellation meanwhile kills it at once. Return
        as `ended` does."""
        if grace > 0 and not self._ended.done():
            self.signal(signal.SIGTERM)
        return await self.end_by_itself(grace)

    async def end_by_itself(self, grace: float) -> int:
        """Wait `grace` seconds for the group to end by itself, then send SIGKILL. Return as `ended` does."""
        try:
            if grace > 0:
                await asyncio.wait([self._ended], timeout=grace)
        finally:
            self.kill()
        return await self.ended()

    def kill(self) -> None:
        if not self._ended.done():
            self.signal(signal.SIGKILL)

    def signal(self, number: int) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    def signal_leader(self, number: int) -> None:
        """Send a signal to the leader only."""
        if not self._ended.done():
            with suppress(ProcessLookupError, PermissionError):
                os.kill(self.pid, number)

    async def _wait(self) -> int:
        try:
            await _exited(self.pid)
        finally:  # this also runs when the event loop shuts down and cancels all tasks
            # Until the wait below, the ended leader is a zombie, so no other process group can have its number yet.
            self.signal(signal.SIGKILL)
            REGISTRY.remove(self.pid)
            status = self._popen.wait()
        return status


async def _exited(pid: int) -> None:
    """Wait until a child is a zombie, without reaping it."""
    loop = asyncio.get_running_loop()
    try:
        pidfd = os.pidfd_open(pid)
    except (AttributeError, OSError):  # not Linux, or not permitted in this sandbox
        while not _is_zombie(pid):
            await asyncio.sleep(0.02)
        return
    exited = asyncio.Event()
    loop.add_reader(pidfd, exited.set)
    try:
        await exited.wait()
    finally:
        loop.remove_reader(pidfd)
        os.close(pidfd)


def _is_zombie(pid: int) -> bool:
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
