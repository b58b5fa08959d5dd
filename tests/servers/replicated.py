"""A PostgreSQL and its synchronous streaming standby, to fail over from one to the other."""

from __future__ import annotations

import asyncio
import shutil
import signal
from pathlib import Path
from urllib.parse import urlsplit

import asyncpg

from penstock.service.embedded import account, binaries, cluster, postmaster
from tests.servers.postgres import FAST, READY
from tests.servers.process import Process, free_port, new_folder, remove

STREAMING = {"wal_level": "replica", "max_wal_senders": "10", "hot_standby": "on", "wal_keep_size": "256MB"}


class _Node:
    def __init__(self, folder: Path, name: str, programs: binaries.Binaries, owner: account.Account) -> None:
        self.log = folder / f"{name}.log"
        self.cluster = cluster.Cluster(folder / name, programs, owner)
        self.port = free_port()
        self._process: Process | None = None

    def start(self, password: str, settings: dict[str, str]) -> None:
        address = cluster.Address(None, self.port, password)
        command = self.cluster.command(address, {**cluster.SETTINGS, **FAST, **STREAMING, **settings})
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


class ReplicatedPostgres:
    """Every commit waits for the standby, so that nothing is lost when it takes over."""

    def __init__(self) -> None:
        self._folder = new_folder("replicated")
        owner = account.for_server(self._folder / "one")
        programs = binaries.reachable(binaries.find(), owner, self._folder)
        self._password = cluster.new_password()
        self._one = _Node(self._folder, "one", programs, owner)
        self._other = _Node(self._folder, "other", programs, owner)
        self._one.cluster.create(self._password)
        # A folder that no server has opened yet is the same as a base backup.
        shutil.copytree(self._one.cluster.data, self._other.cluster.data, symlinks=True)
        (self._other.cluster.data / "standby.signal").touch()
        owner.own(self._other.cluster.data)
        self._other.cluster.data.chmod(0o700)
        self.start()
        self._other.start(
            self._password,
            {
                "primary_conninfo": f"host=127.0.0.1 port={self._one.port} user={cluster.SUPERUSER} "
                f"password={self._password} application_name=standby",
                "wal_retrieve_retry_interval": "500ms",
            },
        )
        asyncio.run(self._wait_for_each_other())

    def dsn(self, database: str = "postgres") -> str:
        """The address of both: of whichever takes writes."""
        one = urlsplit(cluster.Address(None, self._one.port, self._password).dsn(database))
        hosts = f"{one.username}:{self._password}@127.0.0.1:{self._one.port},127.0.0.1:{self._other.port}"
        return f"postgresql://{hosts}/{database}?target_session_attrs=read-write"

    def start(self) -> None:
        self._one.start(self._password, {})

    def stop(self) -> None:
        """The primary, fast."""
        self._one.end(signal.SIGINT)

    def kill(self) -> None:
        """The primary."""
        self._one.end(signal.SIGKILL)
        postmaster.clear_remains(self._one.cluster.data, self._one.cluster.name)

    def fail_over(self) -> None:
        """Kill the primary, and let the standby take over."""
        self.kill()
        asyncio.run(self._promote())

    def close(self) -> None:
        self._one.end(signal.SIGQUIT)
        self._other.end(signal.SIGQUIT)
        remove(self._folder)

    async def _wait_for_each_other(self) -> None:
        connection = await asyncpg.connect(cluster.Address(None, self._one.port, self._password).dsn())
        try:
            await connection.execute("alter system set synchronous_standby_names = 'standby'")
            await connection.execute("select pg_reload_conf()")
            async with asyncio.timeout(READY):
                while not await connection.fetchval(
                    "select exists (select from pg_stat_replication where sync_state = 'sync')"
                ):
                    await asyncio.sleep(0.1)
        finally:
            await connection.close()

    async def _promote(self) -> None:
        connection = await asyncpg.connect(cluster.Address(None, self._other.port, self._password).dsn())
        try:
            await connection.fetchval("select pg_promote(true, 60)")
        finally:
            await connection.close()
