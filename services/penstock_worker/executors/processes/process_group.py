"""A child process with a session and process group of its own: started, awaited, and really ended."""

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
    """Leader, children and grandchildren end together: when the leader has ended, what it left behind is
    killed, and when the worker dies, all of it is (see orphan_killer.py). Only a session of its own escapes."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        stdin: IO[bytes] | int,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        pass_fds: Sequence[int] = (),
    ) -> None:
        """`env`: None for the worker's own, without our credentials. Raises OSError if the program cannot be started."""
        self._popen: subprocess.Popen[bytes] = subprocess.Popen(
            command,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**(without_secrets(os.environ) if env is None else env), **REGISTRY.mark()},
            cwd=cwd,
            pass_fds=pass_fds,
            start_new_session=True,  # setsid: also keeps a terminal's Ctrl-C from it
        )
        self.pid = self._popen.pid
        REGISTRY.add(self.pid)
        self._ended = asyncio.ensure_future(self._wait())

    def take_output(self) -> tuple[int, int]:
        """File descriptors of standard output and standard error, now owned by the caller."""
        assert self._popen.stdout is not None
        assert self._popen.stderr is not None
        out, err = os.dup(self._popen.stdout.fileno()), os.dup(self._popen.stderr.fileno())
        self._popen.stdout.close()
        self._popen.stderr.close()
        return out, err

    async def ended(self) -> int:
        """Wait until the leader has ended and what it left is killed: its exit status, or minus a signal."""
        return await asyncio.shield(self._ended)

    async def end(self, grace: float) -> int:
        """SIGTERM to the group, `grace` seconds, SIGKILL. A second cancellation meanwhile kills at once."""
        if grace > 0 and not self._ended.done():
            self.signal(signal.SIGTERM)
        return await self.end_by_itself(grace)

    async def end_by_itself(self, grace: float) -> int:
        """Give it `grace` seconds to end without being told to, then SIGKILL."""
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
        """Not those that it has started."""
        if not self._ended.done():
            with suppress(ProcessLookupError, PermissionError):
                os.kill(self.pid, number)

    async def _wait(self) -> int:
        try:
            await _exited(self.pid)
        finally:  # also when the event loop is shut down and cancels everything
            # An ended leader is a zombie until the wait below: its number has not gone to another group yet.
            self.signal(signal.SIGKILL)
            REGISTRY.remove(self.pid)
            status = self._popen.wait()
        return status


async def _exited(pid: int) -> None:
    """Wait for a child to become a zombie, without reaping it."""
    loop = asyncio.get_running_loop()
    try:
        pidfd = os.pidfd_open(pid)
    except (AttributeError, OSError):  # not Linux, or forbidden in this sandbox
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
