"""`penstock dev` is killed with its embedded server: the next one takes its work back as from any worker that ended."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from pydantic import SecretStr

from penstock.client.client import Client
from penstock.service import embedded
from penstock.service.embedded import postmaster
from penstock.settings import Settings
from tests.servers.process import new_folder, remove

MODULE = """
from pathlib import Path
import time
from penstock import action

@action(pack="killed")
def hold(folder: str) -> str:
    (Path(folder) / "began").touch()
    while not (Path(folder) / "gate").exists():
        time.sleep(0.05)
    return "released"
"""


@asynccontextmanager
async def dev(home: Path, folder: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run `penstock dev` until the block ends, and kill it then. Enter the block once it is ready."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PENSTOCK_")}
    command = [sys.executable, "-m", "penstock", "dev", "--module", "killed.py", "--home", str(home)]
    process = await asyncio.create_subprocess_exec(
        *command, cwd=folder, env=environment, stderr=asyncio.subprocess.PIPE
    )
    assert process.stderr is not None
    drained = None
    try:
        async with asyncio.timeout(120):
            while b"ready" not in (line := await process.stderr.readline()):
                assert line, "it ended before it was ready"
        drained = asyncio.create_task(process.stderr.read())
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
        if drained is not None:
            await drained


@pytest.mark.parametrize("stops", [True, False], ids=["server_stopped", "joined_at_once"])
async def test_work_of_killed_dev_is_taken_back_by_the_next(tmp_path: Path, stops: bool) -> None:
    (tmp_path / "killed.py").write_text(MODULE)
    home = new_folder("embedded")
    try:
        async with dev(home, tmp_path) as first:
            server = await asyncio.to_thread(embedded.start, home)
            assert server.alone_at is None, "the first one uses it"
            async with Client.connect(_settings(server.dsn)) as client:
                id = await client.start("killed.hold", {"folder": str(tmp_path)})
            async with asyncio.timeout(60):
                while not (tmp_path / "began").exists():
                    await asyncio.sleep(0.05)
            server.release()
            first.send_signal(signal.SIGKILL)
        async with asyncio.timeout(60):
            while stops and postmaster.pid_of(home / "data") is not None:
                await asyncio.sleep(0.05)
        (tmp_path / "gate").touch()
        async with dev(home, tmp_path):
            server = await asyncio.to_thread(embedded.start, home)
            async with Client.connect(_settings(server.dsn)) as client:
                assert await client.result(id, timeout=150) == "released"
                reasons = [move.reason for move in await client.history(id) if move.reason]
            server.release()
        assert any("was lost (its session ended)" in reason for reason in reasons), reasons
    finally:
        embedded.stop(home)
        remove(home)


def _settings(dsn: str) -> Settings:
    return Settings(database_url=SecretStr(dsn))
