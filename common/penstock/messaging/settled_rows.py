"""The deletion of settled outbox rows: published messages and, if the outbox is the queue, acked ones."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable
from functools import partial

import structlog

from penstock.store.outbox import outbox
from penstock.store.session.database import Database, retried

log = structlog.get_logger()

DELETING = 2.0
"""Seconds that an ending process waits for the deletion. PostgreSQL may refuse the session while it is full, and
nothing depends on the deletion."""


class SettledRows:
    """A collector of settled rows, which deletes them together in one statement, at most once a second. Its commits
    may be lost: a row that stays is published or delivered again, which is safe. No caller waits for it."""

    def __init__(self, database: Database) -> None:
        self._session = database.session()
        # Delete much sooner than the relay's age: a relay would publish a confirmed row again if it still exists.
        self._every = min(1.0, self._session.settings.relay_age / 5)
        self._ids: list[int] = []
        self._deleting: asyncio.Task[None] | None = None
        self._hurry = asyncio.Event()

    def add(self, ids: Iterable[int]) -> None:
        """Delete these rows soon."""
        self._ids += ids
        if self._ids and (self._deleting is None or self._deleting.done()):
            self._deleting = asyncio.create_task(self._delete(), name="outbox.delete")

    async def _delete(self) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._hurry.wait(), self._every)
        while self._ids:
            ids, self._ids = self._ids, []
            try:
                await retried(partial(outbox.delete_settled, self._session, ids))
            except Exception:
                log.exception("publish.not_deleted")  # a relay publishes the messages again, which is safe

    async def flush(self) -> None:
        """Wait at most DELETING seconds until the rows are deleted."""
        if self._deleting is not None:
            self._hurry.set()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._deleting, DELETING)
            self._deleting = None
            self._hurry.clear()

    def close(self) -> None:
        """Stop deleting."""
        if self._deleting is not None:
            self._deleting.cancel()
