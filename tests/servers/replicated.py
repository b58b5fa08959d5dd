"""A PostgreSQL and its synchronous streaming standby, to fail over from one to the other, and back."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import signal
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import asyncpg
import psutil

from penstock.service.embedded import account, binaries, cluster, postmaster
from tests.servers.postgres import FAST, READY
from tests.servers.process import Process, free_port, new_folder, remove

STREAMING = {"wal_level": "replica", "max_wal_senders": "10", "hot_standby": "on", "wal_keep_size": "256MB"}
SYNCHRONOUS = "alter system set synchronous_standby_names = 'standby'"
ALONE = "alter system set synchronous_standby_names = ''"
IN_STEP = "select exists (select from pg_stat_replication where sync_state = 'sync')"


class _Node:
    def __init__(
        self, folder: Path, name: str, programs: binaries.Binaries, owner: account.Account, password: str
    ) -> None:
        self.log = folder / f"{name}.log"
        self.cluster = cluster.Cluster(folder / name, programs, owner)
        self.port = free_port()
        self.password = password
        self._process: Process | None = None

    def start(self, settings: Mapping[str, str]) -> None:
        address = cluster.Address(None, self.port, self.password)
        command = self.cluster.command(address, {**cluster.SETTINGS, **settings, **STREAMING})
        with (self.cluster.data / "penstock_hba.conf").open("a") as hba:
            hba.write("host replication all 127.0.0.1/32 scram-sha-256\n")
        owner = self.cluster.account
        self._process = Process(command, log=self.log, env=cluster.environment(), spawn=owner.spawn)
        postmaster.wait_until_ready(
            self.cluster.data, self.log, pid=self._process.pid, alive=self._process.alive, seconds=READY
        )

    def end(self, number: int) -> None:
        if self._process is not None:
            self._process.end(number, 30)

    def signal_all(self, number: int) -> None:
        """To every process of the server: each has a session of its own."""
        assert self._process is not None
        server = psutil.Process(self._process.pid)
        for process in (server, *server.children(recursive=True)):
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(number)

    def dsn(self, database: str = "postgres") -> str:
        return cluster.Address(None, self.port, self.password).dsn(database)

    async def run(self, *statements: str) -> Any:
        """The first value that the last of them gives."""
        connection = await asyncpg.connect(self.dsn())
        try:
            return [await connection.fetchval(statement) for statement in statements][-1]
        finally:
            await connection.close()


class ReplicatedPostgres:
    """Every commit waits for the standby, so that nothing is lost when it takes over. `settings`: of both. `way`: the port by
    which a standby gets to the port of its primary."""

    def __init__(self, settings: Mapping[str, str] = FAST, way: Callable[[int], int] = int) -> None:
        self._folder = new_folder("replicated")
        self._settings = settings
        self._way = way
        owner = account.for_server(self._folder / "one")
        programs = binaries.reachable(binaries.find(), owner, self._folder)
        password = cluster.new_password()
        self._nodes = [_Node(self._folder, name, programs, owner, password) for name in ("one", "other")]
        self._one, self._other = self._nodes
        self._one.cluster.create(password)
        # A folder that no server has opened yet is the same as a base backup.
        shutil.copytree(self._one.cluster.data, self._other.cluster.data, symlinks=True)
        self.start()
        self._follow()

    def dsn(self, database: str = "postgres") -> str:
        """The address of both: of whichever takes writes."""
        hosts = ",".join(f"127.0.0.1:{node.port}" for node in self._nodes)
        login = f"{cluster.SUPERUSER}:{self._one.password}"
        return f"postgresql://{login}@{hosts}/{database}?target_session_attrs=read-write"

    @property
    def primary_port(self) -> int:
        return self._one.port

    def primary_dsn(self, database: str = "postgres") -> str:
        return self._one.dsn(database)

    def standby_dsn(self, database: str = "postgres") -> str:
        return self._other.dsn(database)

    def start(self) -> None:
        self._one.start(self._settings)

    def stop(self) -> None:
        """The primary, fast."""
        self._one.end(signal.SIGINT)

    def kill(self) -> None:
        """The primary."""
        self._kill(self._one)

    def kill_standby(self) -> None:
        self._kill(self._other)

    def freeze(self) -> None:
        """Freeze the primary: it answers no client, and its connections stay, as on a machine that hangs."""
        self._one.signal_all(signal.SIGSTOP)

    def freeze_standby(self) -> None:
        """The standby is cut off: what commits waits for it."""
        self._other.signal_all(signal.SIGSTOP)

    def thaw_standby(self) -> None:
        self._other.signal_all(signal.SIGCONT)

    def take_out_standby(self) -> None:
        """Let commits wait for no standby any more, not even those that wait now."""
        asyncio.run(self._one.run(ALONE, "select pg_reload_conf()"))

    def follows(self) -> bool:
        """Return true if the standby is in step with the primary."""
        return bool(asyncio.run(self._one.run(IN_STEP)))

    def promote(self) -> None:
        """The standby is the primary, and alone."""
        asyncio.run(self._promote())
        self._one, self._other = self._other, self._one

    def fail_over(self) -> None:
        """Kill the primary, and let the standby take over."""
        self.kill()
        self.promote()

    def rejoin(self) -> None:
        """Turn the old primary into a synchronous standby of the new one, as a copy that is made now."""
        self._kill(self._other)
        shutil.rmtree(self._other.cluster.data)
        source = self._one
        subprocess.run(
            [
                str(source.cluster.binaries.folder / "pg_basebackup"),
                *("-D", str(self._other.cluster.data), "-c", "fast", "-X", "stream"),
                *("-h", "127.0.0.1", "-p", str(source.port), "-U", cluster.SUPERUSER),
            ],
            env={**cluster.environment(), "PGPASSWORD": source.password},
            check=True,
            capture_output=True,
            timeout=120,
        )
        self._follow()

    def logged(self, words: str) -> int:
        """Count the lines of both logs with these words, since they were made."""
        return sum(
            words in line
            for node in self._nodes
            for line in node.log.read_text(errors="replace").splitlines()
        )

    def close(self) -> None:
        for node in self._nodes:
            with contextlib.suppress(psutil.NoSuchProcess, AssertionError):
                node.signal_all(signal.SIGCONT)
            node.end(signal.SIGQUIT)
        remove(self._folder)

    def _kill(self, node: _Node) -> None:
        node.end(signal.SIGKILL)
        postmaster.clear_remains(node.cluster.data, node.cluster.name)

    def _follow(self) -> None:
        data = self._other.cluster.data
        (data / "standby.signal").touch()
        (data / "postgresql.auto.conf").write_text("")  # the primary's
        self._other.cluster.account.own(data)
        data.chmod(0o700)
        self.start_standby()
        asyncio.run(self._wait_for_each_other())

    def start_standby(self) -> None:
        self._other.start(
            {
                **self._settings,
                "primary_conninfo": f"host=127.0.0.1 port={self._way(self._one.port)} user={cluster.SUPERUSER} "
                f"password={self._one.password} application_name=standby",
                "wal_retrieve_retry_interval": "500ms",
            }
        )

    async def _promote(self) -> None:
        # One that waited would hold a snapshot, for which the end of the replay may have to wait.
        await self._other.run("select pg_promote(false)")
        async with asyncio.timeout(READY):
            while await self._other.run("select pg_is_in_recovery()"):
                await asyncio.sleep(0.02)

    async def _wait_for_each_other(self) -> None:
        await self._one.run(SYNCHRONOUS, "select pg_reload_conf()")
        async with asyncio.timeout(READY):
            while not await self._one.run(IN_STEP):
                await asyncio.sleep(0.1)
