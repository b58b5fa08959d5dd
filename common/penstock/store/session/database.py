"""Sessions with PostgreSQL. A session is used by one task at a time; it has a connection while it is used, and all sessions
of a process share a few."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar
from uuid import UUID

import asyncpg
import tenacity

from penstock.errors import ConfigurationError, ConnectionFailed, KeysChanged, PenstockError, WrongClock
from penstock.language.terms.ids import go_by
from penstock.settings import Settings
from penstock.store.session import audited_change, crash_points
from penstock.store.session.codec import Codec, codec_of
from penstock.store.session.connecting import Row as Row
from penstock.store.session.connection_pool import ConnectionPool, PoolUsage
from penstock.store.session.hosts import READ_WRITE, Hosts, wanting
from penstock.store.session.postgres_errors import in_our_words, leave_standby
from penstock.store.session.postgres_errors import is_transient as is_transient
from penstock.store.session.session_options import (
    NO_OPTIONS,
    SessionOptions,
    begin_pooled,
    left_alone,
    search_path,
)
from penstock.store.session.staged_messages import StagedMessage, staged_in
from penstock.store.session.unanswered import UnansweredWatch

T = TypeVar("T")

FEWEST = 2
"""Connections with which a service does all that it does, if slowly: its heartbeat's, and one for all else."""
RELAXED = "set_config('synchronous_commit', 'off', true) = 'off'"
"""A condition that holds, and has the transaction of its statement not wait for the disk: in a crash of the server it may be
lost. Only for what decides nothing, and is a transaction by itself."""


def backoff(deadline: float | None = None, first: float = 0.05, most: float = 5.0) -> tenacity.AsyncRetrying:
    """Retries transient errors, with jitter, for `deadline` seconds (None: for ever)."""
    return tenacity.AsyncRetrying(
        retry=tenacity.retry_if_exception(is_transient),
        wait=tenacity.wait_random_exponential(multiplier=first, max=most),
        stop=tenacity.stop_after_delay(deadline) if deadline else tenacity.stop_never,
        reraise=True,
    )


async def retried(work: Callable[[], Awaitable[T]], *, deadline: float | None = None) -> T:
    """Return the result of `work`, tried again as `backoff` says. The first try, which nearly always is the only one, costs
    nothing. To prepare retries is a tenth of the computing of a worker for a single execution."""
    try:
        return await work()
    except Exception as error:
        if not is_transient(error):
            raise
    async for attempt in backoff(deadline):
        with attempt:
            return await work()
    raise AssertionError("backoff gives up by raising")


class Transaction:
    """An open transaction, and what it staged. It begins with its first statement; `Session.transaction` commits it."""

    def __init__(self, session: Session, connection: asyncpg.Connection[Row]) -> None:
        self.session = session
        self.connection = connection
        self.cache = session.cache
        self.settings = session.settings
        self.codec = session.codec
        self.staged: list[StagedMessage] = []
        self.canceling: list[UUID] = []
        """Executions that were asked to end: their workers can be told once this has committed."""
        self.placed: set[Any] = set()
        """Namespaces that exist only once this has committed."""
        self._told: dict[str, Any] = {}
        self._begun = self._done = False

    @property
    def empty(self) -> bool:
        """Return whether the transaction has done nothing."""
        return not self._begun

    async def fetch(self, sql: str, *args: Any) -> list[Row]:
        await self._begin()
        if self.codec is None:
            return await self.connection.fetch(sql, *args)
        return await _through(self.codec, self.connection, sql, args, opens=self.session.opens)

    async def execute(self, sql: str, *args: Any) -> str:
        await self._begin()
        return await self.connection.execute(sql, *args)

    async def stage(self, sql: str, *args: Any) -> list[Row]:
        """Run a statement that stages messages, which it gives as `messages`; and, where it asked executions to end that a
        worker has, these as `canceling`. Both are kept for after the commit. Returns the rows."""
        return self.keep(await self.fetch(sql, *args))

    async def stage_alone(self, sql: str, *args: Any) -> list[Row]:
        """Run a statement as `stage` does, where it is the whole transaction: it commits by itself, in one round trip."""
        if self._begun or self.session.pooler or audited_change.is_due():
            return await self.stage(sql, *args)
        if self.codec is not None:
            args = await self.codec.sealed(self.connection.fetch, sql, args)
        crash_points.at("committing", self.connection)
        rows = await self.connection.fetch(sql, *args)
        crash_points.at("committed", self.connection)
        self._done = True
        if self.codec is not None and self.session.opens:
            rows = await self.codec.opened(self.connection.fetch, rows)
        return self.keep(rows)

    def keep(self, rows: list[Row]) -> list[Row]:
        """Keep what these rows say was staged. Returns them."""
        for row in rows:
            self.staged += staged_in(row["messages"])
            self.canceling += row.get("canceling") or ()
        return rows

    def tell(self, **details: Any) -> None:
        """Add details of this transaction to the audit of the change that it is part of, if it is part of one."""
        self._told |= details

    async def _begin(self) -> None:
        if self._done:
            raise RuntimeError("this transaction has already committed")
        if not self._begun:
            self._begun = True
            await self.session.begin(self.connection)

    async def commit(self) -> None:
        if self._begun:
            change = await audited_change.note_written(self.connection.execute, self._told)
            self._begun, self._done = False, True
            crash_points.at("committing", self.connection)
            await self.connection.execute("commit")
            crash_points.at("committed", self.connection)
            audited_change.committed(change)

    async def rollback(self) -> None:
        if self._begun and not self.connection.is_closed():
            self._begun, self._done = False, True
            await self.connection.execute("rollback")


class Session:
    """One statement or transaction at a time, on a connection of the pool."""

    def __init__(
        self,
        pool: ConnectionPool,
        settings: Settings,
        cache: dict[Any, Any],
        options: SessionOptions = NO_OPTIONS,
        *,
        writes: bool = True,
        codec: Codec | None = None,
        opens: bool = True,
    ) -> None:
        """`writes`: False where a standby is asked, which refuses transactions that may write. `opens`: False for a session that
        reads encrypted values as they are stored."""
        self.settings = settings
        self.cache = cache
        self.pooler = settings.database_pooler
        self.pool = pool
        self.options = NO_OPTIONS if self.pooler else options
        self._relaxed = options.relaxed
        self._writes = writes
        self.codec = codec
        self.opens = opens
        self._turn = asyncio.Lock()

    async def begin(self, connection: asyncpg.Connection[Row]) -> None:
        """Begin a transaction. Behind a pooler it brings along all that a connection of one's own was given as it opened.
        Raises ReadOnlySQLTransactionError where the pooler leads to a standby, as after a failover."""
        if not self.pooler:
            await connection.execute("begin")
            return
        text = begin_pooled(
            search_path(self.settings),
            left_alone(self.settings),
            relaxed=self._relaxed,
            writes=self._writes,
            major=connection.get_server_version().major,
        )
        try:
            await connection.execute(text)
        except asyncpg.FeatureNotSupportedError as error:
            raise asyncpg.ReadOnlySQLTransactionError(str(error)) from None

    async def fetch(self, sql: str, *args: Any) -> list[Row]:
        """One statement, its own transaction, one round trip. A change that is not noted yet takes more for its audit, unless the
        statement returns the rows that it writes."""
        change, original = None, sql
        if not self.pooler and (noting := audited_change.in_one_statement(sql, args)) is not None:
            sql, args, change = noting
        elif self.pooler or audited_change.is_due():
            async with self.transaction() as tx:
                return await tx.fetch(sql, *args)
        async with self._turn, self.pool.lend(self.options) as connection:
            try:
                if self.codec is not None:
                    args = await self.codec.sealed(connection.fetch, original, args)
                rows = await _alone(connection, sql, args)
                if rows:
                    audited_change.committed(change)
                if self.codec is not None and self.opens:
                    rows = await self.codec.opened(connection.fetch, rows)
                return rows
            except asyncio.CancelledError:
                connection.terminate()  # what it was doing is unknown: never reuse it
                raise
            except asyncpg.PostgresError as error:
                leave_standby(connection, error)
                if translated := self._translated(error):
                    raise translated from error
                raise

    def _translated(self, error: BaseException) -> PenstockError | None:
        translated = in_our_words(error, may_seal=self.codec is not None)
        if isinstance(translated, KeysChanged) and self.codec is not None:
            if self.codec.is_defect(getattr(error, "detail", None)):
                return ConfigurationError(
                    translated.message,
                    hint="Penstock does not seal this value, which is a defect: report it. `penstock encryption off` lets it in.",
                )
            self.codec.forget()
        return translated

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Transaction]:
        """Commits when the block ends, rolls back when it raises."""
        async with self._turn, self.pool.lend(self.options) as connection:
            tx = Transaction(self, connection)
            try:
                yield tx
                await tx.commit()
            except asyncio.CancelledError:
                connection.terminate()
                raise
            except BaseException as error:
                try:
                    await tx.rollback()
                except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError):
                    connection.terminate()
                leave_standby(connection, error)
                if translated := self._translated(error):
                    if isinstance(translated, WrongClock) and not connection.is_closed():
                        # What is tried again has other ids.
                        go_by(await connection.fetchval("select clock_timestamp()"))
                    raise translated from error
                raise

    async def close(self) -> None:
        """Close its connections; where it shares them, those of all that do."""
        await self.pool.close()


class Database:
    """Hands out sessions to one database, which share `settings.database_connections` connections, and closes them all."""

    def __init__(self, settings: Settings, *, role: str, writes: bool = True) -> None:
        if settings.database_url is None:
            raise ConnectionFailed(
                "no database", hint="Set PENSTOCK_DATABASE_URL, or run `penstock dev` for an embedded one."
            )
        self.settings = settings
        self._hosts = Hosts(wanting(settings.database_url.get_secret_value(), READ_WRITE))
        self._role = role
        self._writes = writes
        self._pools = [ConnectionPool(self._connect_for_pool, settings.database_connections)]
        self._watch = UnansweredWatch(self._pools, self.connect)
        self.codec = codec_of(settings)
        self.cache: dict[Any, Any] = {}
        """What was made of immutable rows (definitions), by their ids. Never anything that decides."""

    def session(self, *, relaxed: bool = False, most: float | None = None, opens: bool = True) -> Session:
        """`relaxed` commits may be lost in a crash of the server: for what decides nothing. A statement that takes longer
        than `most` seconds is cancelled (not behind a pooler). Without `opens` it reads encrypted values as they are stored."""
        options = SessionOptions(relaxed, most)
        return Session(
            self._pools[0],
            self.settings,
            self.cache,
            options,
            writes=self._writes,
            codec=self.codec,
            opens=opens,
        )

    def session_of_its_own(
        self,
        opened: Callable[[asyncpg.Connection[Row]], Awaitable[None]] | None = None,
        *,
        relaxed: bool = False,
    ) -> Session:
        """A session that keeps one connection for itself, and is told at once where the server is full. `opened` is done first
        each time that it is opened anew. `relaxed` as for a session."""
        pool = ConnectionPool(self._connect_for_pool, 1, opened, full=0)
        self._pools.append(pool)
        return Session(pool, self.settings, self.cache, SessionOptions(relaxed), codec=self.codec)

    def limit(self, size: int) -> None:
        """From now on this process may have so many connections in all, never fewer than it needs. A pooler's connections are
        none of the server's, and no limit is set there."""
        if not self.settings.database_pooler:
            size = max(FEWEST, min(self.settings.most_connections, size))
            self._pools[0].limit(size - (self.settings.most_connections - self.settings.database_connections))

    def may_lend(self, connection: asyncpg.Connection[Row]) -> None:
        """Lend this connection of a listener for statements too, where the server has too few."""
        self._pools[0].may_lend(connection)

    @property
    def usage(self) -> PoolUsage:
        """Return the usage of the connections that sessions share."""
        return self._pools[0].usage

    async def connect(self, *, timeout: float = 10) -> asyncpg.Connection[Row]:
        """A connection. Raises ConnectionFailed, without the URL's password."""
        return await self._hosts.connect(self.settings, role=self._role, timeout=timeout)

    async def close(self) -> None:
        self._watch.stop()
        await asyncio.gather(*(pool.close() for pool in self._pools))

    async def _connect_for_pool(self) -> asyncpg.Connection[Row]:
        if not self.settings.database_pooler:  # a pooler's connections are none of the server's
            self._watch.start()
        return await self.connect()


async def _through(
    codec: Codec, connection: asyncpg.Connection[Row], sql: str, args: tuple[Any, ...], *, opens: bool
) -> list[Row]:
    """Run a statement with values sealed on the way there, and open on the way back."""
    rows = await connection.fetch(sql, *await codec.sealed(connection.fetch, sql, args))
    return await codec.opened(connection.fetch, rows) if opens else rows


async def _alone(connection: asyncpg.Connection[Row], sql: str, args: tuple[Any, ...]) -> list[Row]:
    """A statement that is a transaction by itself."""
    crash_points.at("committing", connection)
    rows = await connection.fetch(sql, *args)
    crash_points.at("committed", connection)
    return rows
