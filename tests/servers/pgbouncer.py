"""PgBouncer in transaction mode before a PostgreSQL of the tests, as large installations have it."""

from __future__ import annotations

import asyncio
import shutil
import signal
from pathlib import Path
from urllib.parse import unquote, urlsplit

import asyncpg

from penstock.service.embedded import account
from penstock.service.embedded.cluster import environment
from penstock.store.session.session_options import OF_CONNECTIONS, RELIED_UPON
from tests.servers.containers import wait_until
from tests.servers.errors import NoServer
from tests.servers.process import Process, free_port, new_folder, remove

IGNORED = ", ".join(
    sorted({*RELIED_UPON, *OF_CONNECTIONS, "idle_in_transaction_session_timeout", "options", "search_path"})
)
"""Settings that a client may name as it connects; PgBouncer refuses what it neither tracks nor is told to ignore."""


def find_program() -> str | None:
    beside = "/usr/sbin/pgbouncer"  # not on an ordinary user's path in Debian
    return shutil.which("pgbouncer") or (beside if Path(beside).exists() else None)


class PgBouncer:
    """Pools connections to the server behind `dsn`; takes any user without a password."""

    def __init__(self, dsn: str, *, ignored: str = IGNORED) -> None:
        program = find_program()
        if program is None:
            raise NoServer("PgBouncer is not installed.")
        self.port, self._ignored = free_port(), ignored
        self._folder = new_folder("pgbouncer")
        runner = account.for_server(self._folder)  # like PostgreSQL, it refuses to run as root
        configuration = self._configuration = self._folder / "pgbouncer.ini"
        configuration.write_text(_configuration(dsn, self.port, self._ignored))
        configuration.chmod(0o600)
        runner.own(configuration)
        process = Process(
            [program, str(configuration)], log=self._folder / "log", env=environment(), spawn=runner.spawn
        )
        self._process = process
        wait_until(self._listens, "PgBouncer", 20)

    def dsn(self, database: str) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}"

    def lead_to(self, dsn: str, database: str) -> None:
        """Connections to this database lead to this server from now on. Those to the one before are dropped: one that waits
        for an answer of it would have a place in the pool until the network says that it is gone."""
        self._configuration.write_text(_configuration(dsn, self.port, self._ignored))
        asyncio.run(self._tell("reload", f"kill {database}", f"resume {database}"))

    def close(self) -> None:
        self._process.end(signal.SIGTERM, 5)
        remove(self._folder)

    async def _tell(self, *commands: str) -> None:
        console = await asyncpg.connect(self.dsn("pgbouncer"))
        for command in commands:
            await console.execute(command)
        await console.close()

    def _listens(self) -> bool:
        log = (self._folder / "log").read_text(errors="replace")
        if not self._process.alive():
            raise RuntimeError(f"PgBouncer ended while it started.\n{log[-4000:]}")
        return "process up" in log


def _configuration(dsn: str, port: int, ignored: str) -> str:
    server = urlsplit(dsn)
    login = {
        "host": server.hostname or "127.0.0.1",
        "port": str(server.port or 5432),
        "user": unquote(server.username or "postgres"),
        "password": unquote(server.password or ""),
    }
    target = " ".join(f"{name}='{value}'" for name, value in login.items() if value)
    return f"""[databases]
* = {target}

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
max_client_conn = 500
default_pool_size = 20
server_login_retry = 1
admin_users = postgres
ignore_startup_parameters = {ignored}
"""
