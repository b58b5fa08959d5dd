"""The embedded server starts, is shared, survives crashes, and ends with its last user."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import asyncpg
import psutil
import pytest

from penstock.errors import Conflict, ConnectionFailed
from penstock.service import embedded
from penstock.service.embedded import postmaster
from tests.servers.process import new_folder, remove

USER = """
import sys
from pathlib import Path
from penstock.service import embedded
server = embedded.start(Path(sys.argv[1]))
print(server.dsn, flush=True)
sys.stdin.read()
"""

FORKING_USER = USER.replace(
    "sys.stdin.read()",
    """
import os, time
child = os.fork()
if child == 0:
    for descriptor in range(3):
        os.close(descriptor)
    time.sleep(600)
print(child, flush=True)
sys.stdin.read()
""",
)


@pytest.fixture(scope="module")
def used_folder() -> Iterator[Path]:
    path = new_folder("embedded")
    yield path
    remove(path)


@pytest.fixture
def folder(used_folder: Path) -> Iterator[Path]:
    """A folder that has data from the tests before, and no server."""
    yield used_folder
    embedded.stop(used_folder)
    (used_folder / "data" / "postgresql.auto.conf").write_text("")


class Another:
    """Another process that uses the server of a folder."""

    def __init__(self, folder: Path, code: str = USER) -> None:
        command = [sys.executable, "-c", code, str(folder)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def says(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def end(self, number: int = signal.SIGTERM) -> None:
        self._process.send_signal(number)
        self._process.communicate(timeout=60)


def pid_of(folder: Path) -> int:
    pid = postmaster.pid_of(folder / "data")
    assert pid is not None
    return pid


def guard_of(folder: Path) -> psutil.Process:
    parent = psutil.Process(pid_of(folder)).parent()
    assert parent is not None
    assert any(part.endswith("guard.py") for part in parent.cmdline())
    return parent


def wait_until_stopped(folder: Path) -> None:
    wait_until(lambda: postmaster.pid_of(folder / "data") is None)


def wait_until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.02)


async def ask(dsn: str, query: str = "SELECT 1") -> object:
    connection = await asyncpg.connect(dsn)
    try:
        return await connection.fetchval(query)
    finally:
        await connection.close()


async def test_data_survives_until_a_fresh_start_throws_it_away(folder: Path) -> None:
    server = embedded.start(folder)
    await ask(server.dsn, "CREATE TABLE IF NOT EXISTS kept AS SELECT 7 AS seven")
    server.release()
    assert postmaster.pid_of(folder / "data") is None
    server = embedded.start(folder)
    assert await ask(server.dsn, "SELECT seven FROM kept") == 7
    server.release()
    server = embedded.start(folder, fresh=True)
    assert await ask(server.dsn, "SELECT to_regclass('kept')") is None
    server.release()


async def test_commits_are_durable(folder: Path) -> None:
    server = embedded.start(folder)
    settings = {
        name: await ask(server.dsn, f"SHOW {name}") for name in ("fsync", "synchronous_commit", "jit")
    }
    assert settings == {"fsync": "on", "synchronous_commit": "on", "jit": "off"}
    server.release()


async def test_two_users_share_one_server_and_the_last_one_stops_it(folder: Path) -> None:
    first = embedded.start(folder)
    pid = pid_of(folder)
    second = embedded.start(folder)
    assert pid_of(folder) == pid
    assert first.alone_at is not None, "nothing else used the folder"
    assert second.alone_at is None
    first.release()
    first.release()
    assert await ask(second.dsn) == 1
    second.release()
    assert postmaster.pid_of(folder / "data") is None
    other = Another(folder)
    assert other.says()
    third = embedded.start(folder)
    assert third.alone_at is None, "a process that lives may have work"
    other.end(signal.SIGKILL)
    third.release()
    wait_until_stopped(folder)


async def test_data_in_use_is_not_thrown_away(folder: Path) -> None:
    server = embedded.start(folder)
    with pytest.raises(Conflict):
        embedded.start(folder, fresh=True)
    assert await ask(server.dsn) == 1
    server.release()


async def test_processes_that_start_at_once_share_one_server() -> None:
    folder = new_folder("embedded")
    others = [Another(folder) for _ in range(3)]
    dsns = {other.says() for other in others}
    assert len(dsns) == 1
    assert await ask(dsns.pop()) == 1
    for other in others:
        other.end()
    wait_until_stopped(folder)
    remove(folder)


def test_a_killed_user_does_not_keep_the_server_alive(folder: Path) -> None:
    other = Another(folder)
    assert other.says()
    guard = guard_of(folder)
    other.end(signal.SIGKILL)
    wait_until_stopped(folder)
    wait_until(lambda: not guard.is_running())


async def test_a_killed_user_does_not_stop_the_server_under_another(folder: Path) -> None:
    other = Another(folder)
    server = embedded.start(folder)
    assert other.says() == server.dsn
    pid = pid_of(folder)
    other.end(signal.SIGKILL)
    assert await ask(server.dsn, "SELECT pg_sleep(0.5)::text") == ""
    assert pid_of(folder) == pid
    server.release()


def test_a_forked_child_does_not_keep_the_server_alive(folder: Path) -> None:
    other = Another(folder, FORKING_USER)
    assert other.says()
    child = psutil.Process(int(other.says()))
    other.end(signal.SIGKILL)
    try:
        wait_until_stopped(folder)
        assert child.is_running()
    finally:
        child.kill()


async def test_a_killed_server_is_started_again_with_its_commits(folder: Path) -> None:
    server = embedded.start(folder)
    await ask(server.dsn, "CREATE TABLE before_the_kill ()")
    # A busy backend does not notice that its postmaster is dead, and would stand in the next one's way.
    busy = await asyncpg.connect(server.dsn)
    sleeping = asyncio.create_task(busy.execute("SELECT count(*) FROM generate_series(1, 100000000000)"))
    await asyncio.sleep(0.2)
    os.kill(pid_of(folder), signal.SIGKILL)
    again = embedded.start(folder)
    assert await ask(again.dsn, "SELECT to_regclass('before_the_kill')") is not None
    with pytest.raises((asyncpg.PostgresError, asyncpg.InterfaceError, OSError)):
        await sleeping
    server.release()
    assert await ask(again.dsn, "DROP TABLE before_the_kill") is None
    again.release()
    assert postmaster.pid_of(folder / "data") is None


async def test_everything_killed_at_once_is_recovered(folder: Path) -> None:
    other = Another(folder)
    other.says()
    guard, pid = guard_of(folder), pid_of(folder)
    guard.kill()
    os.kill(pid, signal.SIGKILL)
    other.end(signal.SIGKILL)
    server = embedded.start(folder)
    assert await ask(server.dsn) == 1
    server.release()


async def test_a_server_whose_guard_was_killed_gets_a_new_one(folder: Path) -> None:
    other = Another(folder)
    dsn, pid = other.says(), pid_of(folder)
    guard_of(folder).kill()
    joined = Another(folder)
    assert joined.says() == dsn
    assert pid_of(folder) == pid
    other.end(signal.SIGKILL)
    joined.end(signal.SIGKILL)
    wait_until_stopped(folder)


async def test_a_pid_file_whose_pid_is_now_another_process_is_seen_through(folder: Path) -> None:
    server = embedded.start(folder)
    pid_file = folder / "data" / "postmaster.pid"
    lines = pid_file.read_text().splitlines()
    embedded.stop(folder)
    pid_file.write_text("\n".join([str(os.getpid()), *lines[1:]]) + "\n")
    again = embedded.start(folder)
    assert await ask(again.dsn) == 1
    again.release()
    server.release()


async def test_a_server_whose_socket_was_cleaned_away_is_started_again(folder: Path) -> None:
    server = embedded.start(folder)
    (folder / "socket" / ".s.PGSQL.5432").unlink()
    again = embedded.start(folder)
    assert await ask(again.dsn) == 1
    server.release()
    again.release()


async def test_a_failed_start_shows_the_log_and_leaves_nothing_running(folder: Path) -> None:
    embedded.start(folder).release()
    (folder / "data" / "postgresql.auto.conf").write_text("no_such_setting = 1\n")
    with pytest.raises(ConnectionFailed, match="no_such_setting"):
        embedded.start(folder)
    assert postmaster.pid_of(folder / "data") is None
    (folder / "data" / "postgresql.auto.conf").write_text("")
    server = embedded.start(folder)
    assert await ask(server.dsn) == 1
    server.release()


async def test_stop_ends_the_server_whichever_process_uses_it(folder: Path) -> None:
    server = embedded.start(folder)
    assert embedded.stop(folder)
    assert not embedded.stop(folder)
    with pytest.raises((OSError, asyncpg.PostgresError)):
        await ask(server.dsn)
    server.release()


async def test_a_path_too_long_for_a_socket_is_served_by_tcp_with_a_password() -> None:
    short = new_folder("embedded")
    folder = short / ("long" * 25)
    server = embedded.start(folder)
    assert "@127.0.0.1:" in server.dsn
    assert await ask(server.dsn) == 1
    password = (server.folder / "password").read_text()
    with pytest.raises(asyncpg.InvalidPasswordError):
        await ask(server.dsn.replace(password, "guessed"))
    assert (server.folder / "password").stat().st_mode & 0o077 == 0
    again = embedded.start(folder)
    assert again.dsn == server.dsn
    server.release()
    again.release()
    remove(short)
