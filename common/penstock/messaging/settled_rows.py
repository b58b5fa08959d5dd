"""Rows of the outbox that are settled: what was published, and where the outbox is the queue, what was acked."""

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
"""Seconds that whoever is about to leave waits until they are deleted. PostgreSQL may refuse that session for as long as it is
full, and nothing depends on it."""


class SettledRows:
    """Deletes them soon, all that were settled meanwhile in one statement, and in commits that may be lost: a row that stays is
    published or delivered again, which is safe. No call waits for it, and a process that settles one now and then asks PostgreSQL
    once a second at the most."""

    def __init__(self, database: Database) -> None:
        self._session = database.session()
        # Well before the relay's age: a row that is confirmed and not yet deleted would be published again.
        self._every = min(1.0, self._session.settings.relay_age / 5)
        self._ids: list[int] = []
        self._deleting: asyncio.Task[None] | None = None
        self._hurry = asyncio.Event()

    def add(self, ids: Iterable[int]) -> None:
        """These are settled."""
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
                log.exception("publish.not_deleted")  # they are published again, which is safe

    async def flush(self) -> None:
        """Wait a moment until they are deleted."""
        if self._deleting is not None:
            self._hurry.set()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._deleting, DELETING)
            self._deleting = None
            self._hurry.clear()

    def close(self) -> None:
        """Delete no more."""
        if self._deleting is not None:
            self._deleting.cancel()
