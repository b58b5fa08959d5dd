"""The stage that steps sessions through their statements, one at a time. Its caller chooses the session of each step.

A session stands at a gate: before a statement, before its commit, or between two statements inside a function of the
database. Or it waits for a lock that another one holds, or its work is done. Nothing moves unless it is let on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, TypeVar

import asyncpg
from pydantic import SecretStr

from penstock.settings import Settings
from penstock.store.session.connection_pool import ConnectionPool
from penstock.store.session.database import Row, Session
from penstock.store.session.type_cache import KnowingConnection
from tests.interleavings.gates import ACTORS, FAILS, GATES, RAISES

T = TypeVar("T")
BLOCKED = "select pid, pg_blocking_pids(pid) as by from unnest($1::int[]) pid"
LOOK = 0.002
"""Seconds after which a statement that is under way is looked at: it may wait for a lock."""
STUCK = 120.0


class State(Enum):
    PYTHON = "python"
    GATE = "gate"
    INNER = "inner"
    STATEMENT = "statement"
    WAITS = "waits"
    DONE = "done"


Work = Callable[[Session], Awaitable[Any]]


@dataclass
class Actor:
    number: int
    connection: asyncpg.Connection[Row]
    pid: int
    state: State = State.DONE
    let_on: asyncio.Future[None] | None = None
    at: int = 0
    """The gate inside a function that it came to last."""
    task: asyncio.Task[Any] | None = None
    statements: list[str] = field(default_factory=list)
    loses: bool = False
    """Its connection is lost once the statement that comes now is done."""


@dataclass
class Order:
    """The session that moved at each step, and the sessions among which it was chosen."""

    choices: list[int] = field(default_factory=list)
    enabled: list[tuple[int, ...]] = field(default_factory=list)
    answers: list[Any] = field(default_factory=list)

    def __str__(self) -> str:
        return "".join(map(str, self.choices))


FAULTS = (*RAISES, "57P01", "lost")
"""What may happen instead of a statement: a serialization failure, a deadlock, a session that the server ends, and a
connection that is lost after the statement (which may have been the commit)."""
Choose = Callable[[int, tuple[int, ...], int | None], int]
"""(step, who may go, who went last) -> who goes."""


class Stage:
    """The sessions on one database, and the gate keeper that lets them on."""

    def __init__(
        self, control: asyncpg.Connection[Row], actors: Sequence[Actor], settings: Settings, database: str
    ) -> None:
        self._control, self._database = control, database
        self.actors = list(actors)
        self.played: list[int] = []
        self._changed = asyncio.Event()
        self._cache: dict[Any, Any] = {}
        self._settings = settings
        self._failing: tuple[int, int] | None = None

    @classmethod
    async def open(cls, database: str, count: int = ACTORS) -> Stage:
        control = await asyncpg.connect(database)
        stage = cls(control, (), Settings(database_url=SecretStr(database)), database)
        stage.actors = [await stage._actor(number) for number in range(count)]
        for actor in stage.actors:
            [row] = await control.fetch(f"select last_value, is_called from gate_{actor.number}")
            actor.at = row["last_value"] if row["is_called"] else 0
            await control.execute("select pg_advisory_lock($1, $2)", GATES + actor.number, actor.at + 1)
        return stage

    async def close(self) -> None:
        for actor in self.actors:
            actor.connection.terminate()
        await self._control.close()

    async def play(
        self, works: Sequence[Work], choose: Choose, fault: Callable[[], str | None] | None = None
    ) -> Order:
        """Run these, each on a session of its own, in the order that `choose` says. `fault` says of each step whether one
        of FAULTS happens. Raises what a work raises; after that this stage is of no more use."""
        order = Order()
        self.played = order.choices
        playing = self.actors[: len(works)]
        for actor, work in zip(playing, works, strict=True):
            actor.state = State.PYTHON
            actor.statements.clear()
            actor.task = asyncio.create_task(self._run(actor, work))
        last: int | None = None
        try:
            while True:
                await self._until_all_stand(playing)
                enabled = tuple(a.number for a in playing if a.state in (State.GATE, State.INNER))
                if not enabled:
                    if all(a.state is State.DONE for a in playing):
                        break
                    continue  # a deadlock: PostgreSQL resolves it
                last = choose(len(order.choices), enabled, last)
                order.choices.append(last)
                order.enabled.append(enabled)
                async with asyncio.timeout(STUCK):
                    await self._let_on(self.actors[last], fault() if fault is not None else None)
        finally:
            for actor in playing:
                assert actor.task is not None
                if not actor.task.done():
                    actor.connection.terminate()
                    actor.task.cancel()
        order.answers = [actor.task.result() for actor in playing if actor.task is not None]
        return order

    async def _run(self, actor: Actor, work: Work) -> Any:
        async def connect() -> Any:
            if actor.connection.is_closed():
                fresh = await self._actor(actor.number, actor)
                actor.connection, actor.pid = fresh.connection, fresh.pid
            return GatedConnection(self, actor)

        try:
            return await work(Session(ConnectionPool(connect, 1), self._settings, self._cache))
        finally:
            actor.state = State.DONE
            self._changed.set()

    async def _actor(self, number: int, known: Actor | None = None) -> Actor:
        connection = await asyncpg.connect(
            self._database,
            connection_class=KnowingConnection,
            server_settings={
                "application_name": f"actor-{number}",
                "gate.actor": str(number),
                "deadlock_timeout": "20ms",
                "jit": "off",
            },
        )
        actor = Actor(number, connection, connection.get_server_pid())
        connection.add_log_listener(lambda _, said: self._came_to_a_gate(known or actor, str(said.message)))
        return actor

    def _came_to_a_gate(self, actor: Actor, said: str) -> None:
        if said.startswith("gate "):
            actor.at, actor.state = int(said.split()[1]), State.INNER
            self._changed.set()

    async def _let_on(self, actor: Actor, fault: str | None) -> None:
        inner = actor.state is State.INNER
        if self._failing:
            await self._control.fetch("select pg_advisory_unlock($1, $2)", *self._failing)
            self._failing = None
        if fault in RAISES and inner:
            self._failing = FAILS + actor.number, RAISES.index(fault)
            await self._control.fetch("select pg_advisory_lock($1, $2)", *self._failing)
        elif fault == "57P01" and inner:
            await self._control.fetch("select pg_terminate_backend($1)", actor.pid)
        actor.loses = fault == "lost" and not inner
        actor.state = State.STATEMENT
        if inner:
            await self._control.fetch(
                "select pg_advisory_lock($1, $2 + 1), pg_advisory_unlock($1, $2)",
                GATES + actor.number,
                actor.at,
            )
        else:
            assert actor.let_on is not None
            actor.let_on.set_result(None)

    async def _until_all_stand(self, playing: Sequence[Actor]) -> None:
        """Wait until all stand: a session that waited may have been freed by the last move, and free the next in turn."""
        async with asyncio.timeout(STUCK):
            while True:
                await self._until_nobody_moves(playing)
                waiting = [a for a in playing if a.state is State.WAITS]
                if not waiting or not await self._look(waiting):
                    return

    async def _until_nobody_moves(self, playing: Sequence[Actor]) -> None:
        while any(a.state in (State.PYTHON, State.STATEMENT) for a in playing):
            self._changed.clear()
            try:
                async with asyncio.timeout(LOOK):
                    await self._changed.wait()
            except TimeoutError:
                if under_way := [a for a in playing if a.state is State.STATEMENT]:
                    await self._look(under_way)

    async def _look(self, actors: Sequence[Actor]) -> bool:
        """Note which of these sessions wait for a lock of another session of the stage. Returns true if one waits no
        more."""
        rows = await self._control.fetch(BLOCKED, [a.pid for a in actors])
        ours, freed = {a.pid for a in self.actors}, False
        for actor, row in zip(actors, rows, strict=True):
            waits = bool(row["by"]) and ours.issuperset(row["by"])
            if actor.state is State.WAITS and not waits:
                actor.state, freed = State.STATEMENT, True
            elif actor.state is State.STATEMENT and waits:
                actor.state = State.WAITS
        return freed

    async def gate(self, actor: Actor, statement: str) -> None:
        """Before a statement: wait to be let on."""
        actor.let_on = asyncio.get_running_loop().create_future()
        actor.state = State.GATE
        actor.statements.append(statement)
        self._changed.set()
        await actor.let_on

    def back(self, actor: Actor) -> None:
        """A statement has ended."""
        actor.state = State.PYTHON
        self._changed.set()


class GatedConnection:
    """A connection as sessions use it, that stops before each statement."""

    def __init__(self, stage: Stage, actor: Actor) -> None:
        self._stage, self._actor = stage, actor

    async def fetch(self, sql: str, *args: Any) -> list[Row]:
        return await self._gated(sql, lambda: self._actor.connection.fetch(sql, *args))

    async def execute(self, sql: str, *args: Any) -> str:
        return await self._gated(sql, lambda: self._actor.connection.execute(sql, *args))

    def transaction(self) -> GatedTransaction:
        return GatedTransaction(self, self._actor.connection.transaction())

    async def _gated(self, what: str, work: Callable[[], Awaitable[T]]) -> T:
        await self._stage.gate(self._actor, what)
        try:
            done = await work()
            if self._actor.loses:
                self._actor.connection.terminate()
                raise asyncpg.ConnectionDoesNotExistError("connection was closed in the middle of operation")
            return done
        finally:
            self._actor.loses = False
            self._stage.back(self._actor)

    def is_closed(self) -> bool:
        return self._actor.connection.is_closed()

    def terminate(self) -> None:
        self._actor.connection.terminate()


class GatedTransaction:
    """One that stops before its commit."""

    def __init__(self, connection: GatedConnection, inner: Any) -> None:
        self._connection, self._inner = connection, inner

    async def start(self) -> None:
        await self._inner.start()

    async def commit(self) -> None:
        await self._connection._gated("commit", self._inner.commit)

    async def rollback(self) -> None:
        await self._inner.rollback()
