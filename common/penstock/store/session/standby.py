"""A standby that is read from: for what decides nothing and may be a moment old. What it cannot answer the primary is asked."""

from __future__ import annotations

import asyncio
import math
import time
from typing import Any

import asyncpg
import structlog
from pydantic import SecretStr

from penstock.settings import Settings
from penstock.store.session.database import Database, Row, Session, is_transient
from penstock.store.session.hosts import STANDBY, wanting

log = structlog.get_logger()

LOOK = 1.0
"""Seconds for which a look at how far behind it is serves everybody."""
PATIENCE = 5.0
"""Seconds that it has for an answer, before the primary is asked."""
AGAIN = 5.0
"""Seconds after which one that was away is asked again."""
FAR = 30.0
"""Seconds without a commit from the primary after which it is not read from. By default each process beats more often."""
STATE = """
select pg_is_in_recovery() as standby,
    extract(epoch from clock_timestamp() - pg_last_xact_replay_timestamp())::float8 as since
"""
NOT_THERE = (asyncpg.ReadOnlySQLTransactionError, asyncpg.FeatureNotSupportedError)
"""It answers, but not this: what writes, or reads a table that is not replicated."""


class Standby:
    """`behind`: seconds that its answers are old at the most, since the primary committed what it replayed last; None where it is
    not read from now."""

    def __init__(self, settings: Settings, *, role: str) -> None:
        """Raises ConnectionFailed if the settings name none (`database_read_url`)."""
        url = settings.database_read_url
        of_standby = SecretStr(wanting(url.get_secret_value(), STANDBY)) if url else None
        standby_settings = settings.model_copy(update={"database_url": of_standby})
        self._database = Database(standby_settings, role=role, writes=False)
        self._session = self.session_there(PATIENCE)
        self._next_look = -math.inf
        self.behind: float | None = None
        self.why = ""
        """Why it was not read from, the last time that it was not."""

    def session_there(self, timeout: float | None) -> Session:
        """A session with it alone."""
        return self._database.session(most=timeout)

    async def is_near(self) -> bool:
        """Return whether the standby answers, and is not far behind. It is asked once a second, however many callers ask
        here."""
        now = time.monotonic()
        if now >= self._next_look:
            self._next_look = now + LOOK
            try:
                async with asyncio.timeout(PATIENCE):
                    [row] = await self._session.fetch(STATE)
            except Exception as error:
                if not is_transient(error):
                    raise
                self.leave(str(error) or type(error).__name__)
            else:
                self._see(row)
        return self.behind is not None

    def leave(self, reason: str) -> None:
        """Read from the primary for a while."""
        if self.behind is not None or not self.why:
            log.warning("standby.not_read", reason=reason, next_try=f"in {AGAIN:g} s")
        self.behind, self.why = None, reason
        self._next_look = time.monotonic() + AGAIN

    def _see(self, row: Row) -> None:
        since: float | None = row["since"] if row["standby"] else 0.0
        if since is None or since > FAR:
            self.leave("it has replayed nothing yet" if since is None else f"it is {since:.0f} s behind")
            return
        if self.behind is None:
            log.info("standby.read")
        self.behind = max(0.0, since)

    async def close(self) -> None:
        await self._database.close()


class StandbySession(Session):
    """Single statements are read from the standby; transactions, and what it cannot answer now, are the primary's."""

    def __init__(self, standby: Standby, primary: Session) -> None:
        super().__init__(primary.pool, primary.settings, primary.cache, primary.options)
        self._standby = standby
        self._there = standby.session_there(primary.options.most)

    async def fetch(self, sql: str, *args: Any) -> list[Row]:
        if await self._standby.is_near():
            try:
                async with asyncio.timeout(PATIENCE):
                    return await self._there.fetch(sql, *args)
            except NOT_THERE:
                pass
            except Exception as error:
                if not is_transient(error):
                    raise
                self._standby.leave(f"{type(error).__name__}: {error}")
        return await super().fetch(sql, *args)
