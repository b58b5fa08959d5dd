"""A small disk for tables that every step writes to, so that it can be filled."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from penstock.store.session.database import Session
from tests.servers.postgres import NativePostgres, Postgres
from tests.servers.process import new_folder

TABLES = ("outbox", "execution", "claim", "live")


class Disk:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._ballast = folder / "ballast"

    @classmethod
    @contextmanager
    def small(cls, postgres: Postgres, megabytes: int) -> Iterator[Disk | None]:
        """A tmpfs, mounted while the block runs; None where that is not allowed or the server is not ours."""
        if not isinstance(postgres, NativePostgres) or os.geteuid() != 0:
            yield None
            return
        folder = new_folder("disk")
        mount = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(folder)]
        if subprocess.run(mount, capture_output=True).returncode != 0:
            yield None
            return
        try:
            owner = Path(f"/proc/{postgres.pid}").stat()
            (folder / "tables").mkdir(mode=0o700)
            os.chown(folder, owner.st_uid, owner.st_gid)
            os.chown(folder / "tables", owner.st_uid, owner.st_gid)
            yield cls(folder)
        finally:
            subprocess.run(["umount", "-l", str(folder)], capture_output=True)

    async def take_over(self, session: Session) -> None:
        """Move the tables there, with their indexes. No session uses them yet."""
        await session.fetch(f"create tablespace small location '{self._folder / 'tables'}'")
        for table in TABLES:
            await session.fetch(f"alter table {table} set tablespace small")
            for row in await session.fetch(
                "select indexname from pg_indexes where schemaname = 'public' and tablename = $1", table
            ):
                await session.fetch(f"alter index {row['indexname']} set tablespace small")

    def fill(self) -> None:
        """Leave no space, though the server takes some meanwhile."""
        free = os.statvfs(self._folder)
        piece, end = free.f_bavail * free.f_frsize, 0
        with self._ballast.open("wb") as ballast:
            while piece >= free.f_frsize:
                try:
                    os.posix_fallocate(ballast.fileno(), end, piece)
                    end += piece
                except OSError:
                    piece //= 2

    def empty(self) -> None:
        self._ballast.unlink(missing_ok=True)
