"""The departure from a server that no longer answers, once another has taken its place. A server that hangs, or that
a network cuts off, raises no error: a caller would wait for ever. A long statement looks the same to the caller. The
difference is whether the server to which new connections lead has the session."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from itertools import chain

import asyncpg
import structlog

from penstock.errors import PenstockError
from penstock.store.session.connecting import Row
from penstock.store.session.connection_pool import ConnectionPool

log = structlog.get_logger()

SILENT = 10.0
"""Seconds without an answer after which a connection is checked, and the timeout of the check."""
KNOWN = "select pid from pg_stat_activity where pid = any($1::integer[]) or pid = pg_backend_pid()"


class UnansweredWatch:
    """A watch over unanswered statements on the connections of these pools; `connect` opens another connection."""

    def __init__(
        self, pools: Sequence[ConnectionPool], connect: Callable[[], Awaitable[asyncpg.Connection[Row]]]
    ) -> None:
        self._pools = pools
        self._connect = connect
        self._timer: asyncio.TimerHandle | None = None
        self._looking: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Look for unanswered statements every 5 s, until `stop`. A second call does nothing."""
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(SILENT / 2, self._look)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._looking is not None:
            self._looking.cancel()

    def _look(self) -> None:
        self._timer = None
        self.start()
        waited_for = list(chain.from_iterable(pool.lent_for(SILENT) for pool in self._pools))
        if waited_for and (self._looking is None or self._looking.done()):
            self._looking = asyncio.create_task(self._leave(waited_for), name="unanswered")

    async def _leave(self, waited_for: Sequence[asyncpg.Connection[Row]]) -> None:
        """Close those of these connections that have no session on the present server."""
        with contextlib.suppress(PenstockError, asyncpg.PostgresError, asyncpg.InterfaceError, OSError):
            pids = {pooled.get_server_pid(): pooled for pooled in waited_for if not pooled.is_closed()}
            async with asyncio.timeout(SILENT):
                connection = await self._connect()
                try:
                    mine = connection.get_server_pid()
                    known_pids = {row["pid"] for row in await connection.fetch(KNOWN, list(pids))}
                finally:
                    connection.terminate()
            if mine not in known_pids:
                return  # behind a pooler, these process ids are the pooler's
            for pid, pooled in pids.items():
                if pid not in known_pids:
                    log.warning("database.server_left", reason="it does not answer, but another host does")
                    pooled.terminate()
