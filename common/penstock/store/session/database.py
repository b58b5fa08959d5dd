"""Sessions with PostgreSQL. One task at a time uses a session. A session has a connection only during a statement or
transaction; all sessions of a process share a few."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Literal, TypeVar
from uuid import UUID

import asyncpg
import tenacity

from penstock import extras
from penstock.errors import ConfigurationError, ConnectionFailed, KeysChanged, PenstockError, WrongClock
from penstock.language.terms.ids import go_by
from penstock.settings import Settings
from penstock.store.session import audited_change, crash_points
from penstock.store.session.connecting import Row as Row
from penstock.store.session.connection_pool import ConnectionPool, PoolUsage
from penstock.store.session.hosts import READ_WRITE, Hosts, wanting
from penstock.store.session.postgres_errors import in_our_words, leave_standby
from penstock.store.session.postgres_errors import is_transient as is_transient
from penstock.store.session.schema_watch import (
    Check,
    SchemaWatch,
    is_about_schema,
    is_outdated,
    of_earlier_schema,
)
from penstock.store.session.session_options import (
    NO_OPTIONS,
    SessionOptions,
    begin_pooled,
    left_alone,
    search_path,
)
from penstock.store.session.staged_messages import StagedMessage, staged_in
from penstock.store.session.unresponsive_server import UnansweredWatch

if TYPE_CHECKING:
    from penstock.store.session.codec import Codec

T = TypeVar("T")

FEWEST = 2
"""The fewest connections with which a service can work, if slowly: one for heartbeats, and one for everything else."""
RELAXED = "set_config('synchronous_commit', 'off', true) = 'off'"
"""A condition that is always true and makes the transaction of its statement not wait for the disk, so that a crash
of the server may lose it. Only for statements that are a transaction of their own and decide nothing."""


def backoff(
    deadline: float | None = None, first: float = 0.05, max_wait: float = 5.0
) -> tenacity.AsyncRetrying:
    """Return a retry of transient errors, with exponential backoff and jitter, for `deadline` seconds (None: for
    ever)."""
    return tenacity.AsyncRetrying(
        retry=tenacity.retry_if_exception(is_transient),
        wait=tenacity.wait_random_exponential(multiplier=first, max=max_wait),
        stop=tenacity.stop_after_delay(deadline) if deadline else tenacity.stop_never,
        reraise=True,
    )


async def retried(work: Callable[[], Awaitable[T]], *, deadline: float | None = None) -> T:
    """Return the result of `work`, retried as `backoff` does. The first try, nearly always the only one, needs no
    retry object: building one would take a tenth of a worker's CPU time for a single execution."""
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
    """An open transaction, and the messages that it staged. A transaction begins with its first statement;
    `Session.transaction` commits it."""

    def __init__(self, session: Session, connection: asyncpg.Connection[Row]) -> None:
        self.session = session
        self.connection = connection
        self.cache = session.cache
        self.settings = session.settings
        self.codec = session.codec
        self.staged: list[StagedMessage] = []
        self.canceling: list[UUID] = []
        """Executions with a requested end: their workers are notified after the commit."""
        self.placed: set[Any] = set()
        """Namespaces that this transaction has inserted."""
        self._told: dict[str, Any] = {}
        self._noted: audited_change.Change | None = None
        self._begun = self._done = False

    @property
    def empty(self) -> bool:
        """Return True if the transaction has run no statement yet."""
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
        """Run a statement that stages messages, which it returns in its column `messages`. A column `canceling` has
        executions that a worker runs and that have to end. Both are kept until after the commit. Return the rows."""
        return self.keep(await self.fetch(sql, *args))

    async def stage_alone(self, sql: str, *args: Any) -> list[Row]:
        """Run a statement as `stage` does, and commit it by itself, in one round trip. The transaction must not have run a
        statement, and can run none afterwards.

        Behind a pooler, and for a change that is audited, the statement does not commit by itself: `Session.transaction`
        commits it. The same is true after another statement of the transaction.
        """
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
        """Keep the staged messages of these rows for after the commit. Return the rows."""
        for row in rows:
            self.staged += staged_in(row["messages"])
            self.canceling += row.get("canceling") or ()
        return rows

    def tell(self, **details: Any) -> None:
        """Add details to the audit row of the change that this transaction belongs to, if any."""
        self._told |= details

    async def _begin(self) -> None:
        if self._done:
            raise RuntimeError("this transaction has already committed")
        if not self._begun:
            self._begun = True
            await self.session.begin(self.connection)

    async def commit(self) -> None:
        if self._begun:
            self._noted = await audited_change.note_written(self.connection.execute, self._told)
            self._begun, self._done = False, True
            crash_points.at("committing", self.connection)
            await self.connection.execute("commit")
            crash_points.at("committed", self.connection)
            self.confirm()

    def confirm(self) -> None:
        """Count the audit row of this transaction. `commit` calls it, unless the answer of the server was lost."""
        audited_change.committed(self._noted)

    async def rollback(self) -> None:
        if self._begun and not self.connection.is_closed():
            self._begun, self._done = False, True
            await self.connection.execute("rollback")


class _Turn(asyncio.Lock):
    """The turn of one task on a session. A task that has it and asks again would wait for itself for ever."""

    _task: asyncio.Task[Any] | None = None

    async def acquire(self) -> Literal[True]:
        """Wait for the turn. Raises RuntimeError if this task has it."""
        task = asyncio.current_task()
        if task is not None and task is self._task:
            raise RuntimeError("this task is in a transaction of this session: use the transaction")
        await super().acquire()
        self._task = task
        return True

    def release(self) -> None:
        self._task = None
        super().release()


class Session:
    """A session: it runs one statement or transaction at a time, on a connection of the pool."""

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
        schema: SchemaWatch | None = None,
    ) -> None:
        """`writes` is False for a standby, which rejects transactions that may write. `opens` is False for a session that
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
        self._schema = schema or SchemaWatch(None)
        self._turn = _Turn()

    async def begin(self, connection: asyncpg.Connection[Row]) -> None:
        """Begin a transaction. Behind a pooler, the statement also sets all that an own connection gets when it is
        opened. Raises ReadOnlySQLTransactionError if the pooler leads to a standby, as after a failover."""
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
        """Run one statement as a transaction of its own, in one round trip. A change without an audit row needs more,
        unless the statement returns the rows that it writes."""
        change, original = None, sql
        if not self.pooler and (noting := audited_change.in_one_statement(sql, args)) is not None:
            sql, args, change = noting
        elif self.pooler or audited_change.is_due():
            async with self.transaction() as tx:
                return await tx.fetch(sql, *args)
        async with self._turn, self.pool.lend(self.options) as connection:
            try:
                if self._schema.is_missing:
                    await self._schema.look(connection, self.begin)
                if self.codec is not None:
                    args = await self.codec.sealed(connection.fetch, original, args)
                rows = await _alone(connection, sql, args)
                if rows:
                    audited_change.committed(change)
                if self.codec is not None and self.opens:
                    rows = await self.codec.opened(connection.fetch, rows)
                return rows
            except asyncio.CancelledError:
                connection.terminate()  # the state of its statement is unknown: never reuse the connection
                raise
            except asyncpg.PostgresError as error:
                leave_standby(connection, error)
                if translated := await self._explained(connection, error):
                    raise translated from error
                raise

    async def _explained(
        self, connection: asyncpg.Connection[Row], error: BaseException
    ) -> PenstockError | None:
        """Return the PenstockError to raise instead of this error; None to raise the error itself. An error about the
        schema, or about an earlier one, renews the connections. A service then tries again, and waits if the schema is
        missing."""
        if is_about_schema(error):
            if not self.pool.is_new(connection):
                self.pool.renew()
                connection.terminate()
                if self._schema.waits or is_outdated(error):
                    return of_earlier_schema(error)
            elif self._schema.waits and not connection.is_closed():
                await self._schema.look(connection, self.begin)
        translated = self._translated(error)
        if self._schema.waits and isinstance(error, asyncpg.InsufficientPrivilegeError) and translated:
            translated.awaited = True  # no message lacks a right: the role of the service does
        return translated

    def _translated(self, error: BaseException) -> PenstockError | None:
        translated = in_our_words(error, may_seal=self.codec is not None)
        if isinstance(translated, KeysChanged) and self.codec is not None:
            if self.codec.is_defect(getattr(error, "detail", None)):
                return ConfigurationError(
                    translated.message,
                    hint="Penstock does not encrypt this value, which is a defect: please report it. `penstock encryption "
                    "off` permits the value.",
                )
            self.codec.forget()
        return translated

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Transaction]:
        """Open a transaction for the block. Commit when the block ends, roll back when it raises."""
        async with self._turn, self.pool.lend(self.options) as connection:
            tx = Transaction(self, connection)
            try:
                if self._schema.is_missing:
                    await self._schema.look(connection, self.begin)
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
                if translated := await self._explained(connection, error):
                    if isinstance(translated, WrongClock) and not connection.is_closed():
                        # The clock of this machine is wrong. The next try creates ids by the database's clock.
                        go_by(await connection.fetchval("select clock_timestamp()"))
                    raise translated from error
                raise

    async def close(self) -> None:
        """Close the pool: its connections, which this object may share with others."""
        await self.pool.close()


class Database:
    """The source of sessions with one database, which share `settings.database_connections` connections."""

    def __init__(
        self, settings: Settings, *, role: str, writes: bool = True, check: Check | None = None
    ) -> None:
        """`check`: the check of the schema of a service, which waits if its tables vanish."""
        if settings.database_url is None:
            raise ConnectionFailed(
                "no database", hint="Set PENSTOCK_DATABASE_URL, or run `penstock dev` for an embedded one."
            )
        self.settings = settings
        self._hosts = Hosts(wanting(settings.database_url.get_secret_value(), READ_WRITE))
        self._role = role
        self._writes = writes
        self._pools = [ConnectionPool(self._connect_for_pool, settings.database_connections)]
        self._schema = SchemaWatch(check)
        self._watch = UnansweredWatch(self._pools, self.connect)
        self.codec = _codec_of(settings)
        self.cache: dict[Any, Any] = {}
        """Objects compiled from immutable rows (definitions), by id. Nothing that decisions depend on."""

    def session(self, *, relaxed: bool = False, timeout: float | None = None, opens: bool = True) -> Session:
        """Return a session. Commits of a `relaxed` one may be lost in a crash of the server: only for statements that
        decide nothing. A statement that takes longer than `timeout` seconds is cancelled (not behind a pooler). Without
        `opens` it reads encrypted values as they are stored."""
        options = SessionOptions(relaxed, timeout)
        return Session(
            self._pools[0],
            self.settings,
            self.cache,
            options,
            writes=self._writes,
            codec=self.codec,
            opens=opens,
            schema=self._schema,
        )

    def session_of_its_own(
        self,
        opened: Callable[[asyncpg.Connection[Row]], Awaitable[None]] | None = None,
        *,
        relaxed: bool = False,
    ) -> Session:
        """Return a session with a connection of its own, which raises at once if the server is full. `opened` is
        called first each time the connection is opened. `relaxed` as in `session`."""

        async def prepare(connection: asyncpg.Connection[Row]) -> None:
            try:
                if opened is not None:
                    await opened(connection)
            except asyncpg.PostgresError as error:
                if self._schema.waits and is_about_schema(error):
                    await self._schema.look(connection, session.begin)
                raise

        pool = ConnectionPool(self._connect_for_pool, 1, prepare, full=0)
        self._pools.append(pool)
        options = SessionOptions(relaxed)
        session = Session(pool, self.settings, self.cache, options, codec=self.codec, schema=self._schema)
        return session

    def limit(self, size: int) -> None:
        """Set the number of connections of this process, but at least FEWEST. Behind a pooler no limit is set, since
        its connections are not the server's."""
        if not self.settings.database_pooler:
            size = max(FEWEST, min(self.settings.most_connections, size))
            self._pools[0].limit(size - (self.settings.most_connections - self.settings.database_connections))

    def may_lend(self, connection: asyncpg.Connection[Row]) -> None:
        """Allow sessions to use this connection of a listener too, while the limit is too low for others."""
        self._pools[0].may_lend(connection)

    @property
    def usage(self) -> PoolUsage:
        """Return the usage of the connections that sessions share."""
        return self._pools[0].usage

    async def connect(self, *, timeout: float = 10) -> asyncpg.Connection[Row]:
        """Open a connection that does not belong to the pool. Raises ConnectionFailed, without the URL's password, if
        the server cannot be reached."""
        return await self._hosts.connect(self.settings, role=self._role, timeout=timeout)

    async def close(self) -> None:
        self._watch.stop()
        await asyncio.gather(*(pool.close() for pool in self._pools))

    async def _connect_for_pool(self) -> asyncpg.Connection[Row]:
        if not self.settings.database_pooler:  # a pooler's connections are not the server's
            self._watch.start()
        return await self.connect()


def _codec_of(settings: Settings) -> Codec | None:
    """Return the codec of a process with these settings; None if they have no master key. Raises MissingExtra if the
    packages for encryption are not installed."""
    if not (settings.secrets_key or settings.secrets_key_file or settings.secrets_kms):
        return None
    with extras.needed():  # a client without a master key has no library of ciphers
        from penstock.store.session.codec import Codec
    return Codec(settings)


async def _through(
    codec: Codec, connection: asyncpg.Connection[Row], sql: str, args: tuple[Any, ...], *, opens: bool
) -> list[Row]:
    """Run a statement with values sealed on the way there, and open on the way back."""
    rows = await connection.fetch(sql, *await codec.sealed(connection.fetch, sql, args))
    return await codec.opened(connection.fetch, rows) if opens else rows


async def _alone(connection: asyncpg.Connection[Row], sql: str, args: tuple[Any, ...]) -> list[Row]:
    """Run a statement that is a transaction by itself."""
    crash_points.at("committing", connection)
    rows = await connection.fetch(sql, *args)
    crash_points.at("committed", connection)
    return rows
