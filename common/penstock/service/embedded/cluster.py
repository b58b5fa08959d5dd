"""A PostgreSQL data folder: its creation, its configuration, and the command line of its server. Nothing is started
here."""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import shutil
import socket
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from penstock.errors import ConfigurationError
from penstock.service.embedded import account
from penstock.service.embedded.account import Account
from penstock.service.embedded.binaries import Binaries

SUPERUSER = "postgres"
SOCKET_PORT = 5432  # only a part of the socket's name
INITDB_DEADLINE = 120.0  # seconds

# Settings for a small, durable server that soon notices when an empty table has filled.
SETTINGS: Mapping[str, str] = {
    "max_connections": "100",
    "shared_buffers": "128MB",
    "fsync": "on",
    "synchronous_commit": "on",
    "full_page_writes": "on",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "max_wal_size": "1GB",
    "checkpoint_timeout": "15min",
    "jit": "off",
    "autovacuum": "on",
    "autovacuum_naptime": "15s",
    "autovacuum_vacuum_scale_factor": "0.05",
    "autovacuum_analyze_scale_factor": "0.05",
    "autovacuum_vacuum_cost_delay": "0",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_min_messages": "warning",
    "lc_messages": "C",
}


@dataclass(frozen=True)
class Address:
    """The address of the server: a socket folder that only its owner can enter, otherwise a port of 127.0.0.1."""

    socket_folder: Path | None
    port: int
    password: str

    def dsn(self, database: str = "postgres") -> str:
        if self.socket_folder is not None:
            place = quote(str(self.socket_folder), safe="/")
            return f"postgresql://{SUPERUSER}@/{database}?host={place}&port={self.port}"
        return f"postgresql://{SUPERUSER}:{self.password}@127.0.0.1:{self.port}/{database}"


@dataclass(frozen=True)
class Cluster:
    """A data folder, with the binaries and the account of its server."""

    data: Path
    binaries: Binaries
    account: Account

    @property
    def name(self) -> str:
        """Return the name in the title of every process of this server, which distinguishes them from other servers."""
        return f"penstock-{hashlib.sha256(os.fsencode(self.data)).hexdigest()[:12]}"

    def exists(self) -> bool:
        return (self.data / "PG_VERSION").is_file()

    def create(self, password: str) -> None:
        """Run initdb in another folder and rename that, so that an incomplete data folder is never used."""
        unfinished = self.data.with_name(f"{self.data.name}.new")
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(mode=0o700)
        secret = unfinished.with_suffix(".password")
        write_private(secret, password)
        maker = account.for_initdb()
        maker.own(unfinished)
        maker.own(secret)
        try:
            process = subprocess.run(
                [
                    str(self.binaries.initdb),
                    *("-D", str(unfinished), "-U", SUPERUSER, "--encoding=UTF8", "--locale=C"),
                    *(f"--pwfile={secret}", "--auth=scram-sha-256"),
                ],
                capture_output=True,
                text=True,
                env=environment(),
                timeout=INITDB_DEADLINE,
                cwd="/",
                **maker.spawn,
            )
        finally:
            secret.unlink()
        if process.returncode != 0:
            shutil.rmtree(unfinished, ignore_errors=True)
            raise ConfigurationError(
                f"PostgreSQL's initdb could not create {self.data}:\n{process.stderr.strip()[-2000:]}",
                hint="Choose a folder on a local disk with space left, or set PENSTOCK_DATABASE_URL.",
            )
        self.account.own(unfinished)
        unfinished.rename(self.data)

    def command(self, address: Address, settings: Mapping[str, str] = SETTINGS) -> list[str]:
        """Write the configuration and return the command that runs the server in the foreground."""
        place = {
            "listen_addresses": "" if address.socket_folder else "127.0.0.1",
            "unix_socket_directories": str(address.socket_folder or ""),
            "unix_socket_permissions": "0700",
            "port": str(address.port),
            "cluster_name": self.name,
            "hba_file": str(self.data / "penstock_hba.conf"),
        }
        io = {"io_method": "sync"} if self.binaries.major >= 18 else {}  # avoids idle processes
        lines = [f"{name} = {_quoted(value)}" for name, value in {**settings, **io, **place}.items()]
        configuration = self.data / "penstock.conf"
        self._write(configuration, lines)
        # Only the owner and root can enter the socket's folder; a TCP port is open to every local user.
        access = "local all all trust" if address.socket_folder else "host all all 127.0.0.1/32 scram-sha-256"
        self._write(self.data / "penstock_hba.conf", [access])
        return [str(self.binaries.postgres), "-D", str(self.data), "-c", f"config_file={configuration}"]

    def _write(self, path: Path, lines: list[str]) -> None:
        write_private(path, "\n".join(lines) + "\n")
        self.account.own(path)


def environment() -> dict[str, str]:
    """Return our environment, without variables that would redirect PostgreSQL's programs or translate their
    messages."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith(("PG", "LC_", "LANG"))}
    return ours | {"LC_ALL": "C", "TZ": "UTC"}


def new_password() -> str:
    return secrets.token_urlsafe(24)


def write_private(path: Path, text: str) -> None:
    """Replace `path` by a file with `text` that only its owner can read, from the first instant."""
    with contextlib.suppress(FileNotFoundError):
        path.unlink()
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _quoted(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "''") + "'"
