"""Reads from a standby, for queries that decide nothing and may be slightly old. The primary answers what the standby
cannot."""

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
"""Seconds for which the result of a check of the standby's lag is used."""
PATIENCE = 5.0
"""Seconds that the standby has for an answer, before the primary is queried."""
AGAIN = 5.0
"""Seconds after which a standby that was not usable is tried again."""
FAR = 30.0
"""Seconds without a commit from the primary after which the standby is not read from. Every process normally sends
heartbeats more often."""
STATE = """
select pg_is_in_recovery() as standby,
    extract(epoch from clock_timestamp() - pg_last_xact_replay_timestamp())::float8 as since
"""
NOT_THERE = (asyncpg.ReadOnlySQLTransactionError, asyncpg.FeatureNotSupportedError)
"""Errors of statements that a standby cannot run: a write, or a read of a table that is not replicated."""


class Standby:
    """A standby and its state. `behind`: the maximum age of its answers in seconds, measured from the last commit
    that it replayed; None while it is not read from."""

    def __init__(self, settings: Settings, *, role: str) -> None:
        """Create a standby that is not connected yet. Raises ConnectionFailed if the settings name none
        (`database_read_url`)."""
        url = settings.database_read_url
        of_standby = SecretStr(wanting(url.get_secret_value(), STANDBY)) if url else None
        standby_settings = settings.model_copy(update={"database_url": of_standby})
        self._database = Database(standby_settings, role=role, writes=False)
        self._session = self.session_there(PATIENCE)
        self._next_look = -math.inf
        self.behind: float | None = None
        self.why = ""
        """The last reason not to read from it."""

    def session_there(self, timeout: float | None) -> Session:
        """Return a session with the standby only."""
        return self._database.session(timeout=timeout)

    async def is_near(self) -> bool:
        """Return True if the standby answers, and is not too far behind. The standby is checked at most once a second,
        however many callers ask."""
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
        """Read from the primary for AGAIN seconds."""
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
    """A session that runs single statements on the standby. Transactions, and statements that the standby cannot run
    now, go to the primary."""

    def __init__(self, standby: Standby, primary: Session) -> None:
        super().__init__(primary.pool, primary.settings, primary.cache, primary.options)
        self._standby = standby
        self._there = standby.session_there(primary.options.timeout)

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
