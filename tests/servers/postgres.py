"""PostgreSQL for tests: a private one that can be killed, one in Docker, or one that an address names."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import os
import secrets
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit, urlunsplit

import asyncpg

from penstock.service.embedded import account, binaries, cluster, postmaster
from tests.servers.containers import Container, wait_until
from tests.servers.errors import CannotHere
from tests.servers.process import Process, free_port, new_folder, remove

READY = 60.0  # seconds
# kill -9 loses nothing that the kernel already has; only a power cut would, and no test pulls that plug.
FAST: Mapping[str, str] = {"fsync": "off", "full_page_writes": "off"}


class Postgres(Protocol):
    def dsn(self, database: str = "postgres") -> str: ...
    @property
    def pid(self) -> int: ...
    def start(self) -> None: ...
    def stop(self, *, immediate: bool = False) -> None: ...
    def restart(self) -> None: ...
    def kill(self) -> None: ...
    def close(self) -> None: ...


class NativePostgres:
    """A private server on a free port of 127.0.0.1, with its own data folder; it keeps both across restarts.

    PENSTOCK_TEST_POSTGRES_BIN names another `bin` folder than the embedded one, to try another version.
    """

    def __init__(self, settings: Mapping[str, str] = FAST, *, major: int | None = None) -> None:
        """`major`: of this version, where the machine or the wheel has it."""
        folder = new_folder("postgres")
        self._folder = folder
        self._log = folder / "log"
        self._account = account.for_server(folder / "data")
        self._cluster = cluster.Cluster(
            folder / "data", _programs(self._account, folder, major), self._account
        )
        self._address = cluster.Address(None, free_port(), cluster.new_password())
        self._cluster.create(soon_proved(self._address.password))
        self._settings = {**cluster.SETTINGS, **settings}
        self._process: Process | None = None
        self.start()

    def dsn(self, database: str = "postgres") -> str:
        return self._address.dsn(database)

    @property
    def pid(self) -> int:
        if self._process is None:
            raise RuntimeError("this PostgreSQL is not running")
        return self._process.pid

    @property
    def log(self) -> str:
        return postmaster.tail(self._log)

    def logged(self, words: str) -> int:
        """Count the lines of its log with these words, since it was made."""
        return sum(words in line for line in self.log_lines())

    def log_lines(self) -> list[str]:
        return self._log.read_text(errors="replace").splitlines()

    def start(self) -> None:
        if self._process is not None and self._process.alive():
            return
        postmaster.clear_remains(self._cluster.data, self._cluster.name)
        command = self._cluster.command(self._address, self._settings)
        process = Process(command, log=self._log, env=cluster.environment(), spawn=self._account.spawn)
        self._process = process
        postmaster.wait_until_ready(
            self._cluster.data, self._log, pid=process.pid, alive=process.alive, seconds=READY
        )

    def stop(self, *, immediate: bool = False) -> None:
        """Fast: disconnects clients, writes a checkpoint. Immediate: neither, and recovers at the start."""
        if self._process is not None:
            self._process.end(signal.SIGQUIT if immediate else signal.SIGINT, 30)

    def restart(self) -> None:
        self.stop()
        self.start()

    def kill(self) -> None:
        if self._process is not None:
            self._process.end(signal.SIGKILL, 30)

    def close(self) -> None:
        self.stop(immediate=True)
        remove(self._folder)


def _programs(account_: account.Account, folder: Path, major: int | None) -> binaries.Binaries:
    named = os.environ.get("PENSTOCK_TEST_POSTGRES_BIN")
    if named is None or major is not None:
        return binaries.reachable(binaries.find(major=major), account_, folder)
    found = binaries.inspect(Path(named))
    if found is None:
        raise CannotHere(f"PENSTOCK_TEST_POSTGRES_BIN={named} holds no usable postgres and initdb")
    return found


def soon_proved(password: str) -> str:
    """Return PostgreSQL's record of a password, made to be proved in one round of SCRAM's instead of 4096. The rounds make
    it hard to guess a bad password, which this is not. They are half of the cost of a client's connection, and tests make
    thousands."""
    salt, rounds = secrets.token_bytes(16), 1
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), salt, rounds)
    client, server = (hmac.digest(salted, f"{side} Key".encode(), "sha256") for side in ("Client", "Server"))
    kept = [base64.b64encode(part).decode() for part in (salt, hashlib.sha256(client).digest(), server)]
    return f"SCRAM-SHA-256${rounds}:{kept[0]}${kept[1]}:{kept[2]}"


class GivenPostgres:
    """The server that PENSTOCK_TEST_DATABASE_URL names. Tests make and drop databases in it, nothing else."""

    def __init__(self, url: str) -> None:
        self._url = url

    def dsn(self, database: str = "postgres") -> str:
        return urlunsplit(urlsplit(self._url)._replace(path=f"/{database}"))

    @property
    def pid(self) -> int:
        raise _not_ours()

    def start(self) -> None:
        raise _not_ours()

    def stop(self, *, immediate: bool = False) -> None:
        raise _not_ours()

    def restart(self) -> None:
        raise _not_ours()

    def kill(self) -> None:
        raise _not_ours()

    def close(self) -> None:
        """It was there before us and stays."""


class DockerPostgres:
    """PostgreSQL in a container, with a fixed port so that its address survives a restart."""

    IMAGE = os.environ.get("PENSTOCK_TEST_POSTGRES_IMAGE", "postgres:16")

    def __init__(self, settings: Mapping[str, str] = FAST) -> None:
        self._port = free_port()
        self._password = cluster.new_password()
        flags = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        self._container = Container(
            self.IMAGE,
            ports={5432: self._port},
            env={"POSTGRES_PASSWORD": self._password},
            command=["postgres", "-c", "max_connections=100", *flags],
        )
        self._wait()

    def dsn(self, database: str = "postgres") -> str:
        return cluster.Address(None, self._port, self._password).dsn(database)

    @property
    def pid(self) -> int:
        return int(self._container.pid)

    def start(self) -> None:
        self._container.start()
        self._wait()

    def stop(self, *, immediate: bool = False) -> None:
        self._container.signal("SIGQUIT" if immediate else "SIGINT")

    def restart(self) -> None:
        self.stop()
        self.start()

    def kill(self) -> None:
        self._container.signal("SIGKILL")

    def close(self) -> None:
        self._container.remove()

    def _wait(self) -> None:
        wait_until(lambda: asyncio.run(_accepts(self.dsn())), self.IMAGE, READY)


async def _accepts(dsn: str) -> bool:
    try:
        connection = await asyncpg.connect(dsn, timeout=5)
    except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError):
        return False
    await connection.close()
    return True


def _not_ours() -> CannotHere:
    return CannotHere(
        "PENSTOCK_TEST_DATABASE_URL names this server: tests do not stop or kill it. Use private_postgres."
    )
