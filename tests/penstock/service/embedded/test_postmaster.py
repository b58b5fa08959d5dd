"""The entries of the process table about a server are understood at any instant of its life."""

from __future__ import annotations

import asyncpg
import psutil
import pytest

from penstock.service import embedded
from tests.servers.process import new_folder, remove


async def test_a_server_is_not_given_up_before_its_exec_is_through(monkeypatch: pytest.MonkeyPatch) -> None:
    """The guard may tell the pid while the kernel has not written the new process's command line yet."""
    whole = psutil.Process.cmdline
    seen: set[int] = set()

    def cmdline(process: psutil.Process) -> list[str]:
        if process.pid in seen:
            return whole(process)
        seen.add(process.pid)
        return []

    folder = new_folder("postmaster")
    try:
        with monkeypatch.context() as patch:
            patch.setattr(psutil.Process, "cmdline", cmdline)
            server = embedded.start(folder)
        connection = await asyncpg.connect(server.dsn)
        assert await connection.fetchval("select 1") == 1
        await connection.close()
        server.release()
    finally:
        embedded.stop(folder)
        remove(folder)
