"""Steps sessions through their statements, one at a time: whose turn it is, is somebody else's choice.

A session stands at a gate (before a statement, before its commit, or between two statements inside a function of the
database), or it waits for a lock that another one holds, or its work is done. Nothing moves unless it is let on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import asyncpg
from pydantic import SecretStr

from penstock.database import Row, Session
from penstock.settings import Settings
from tests.interleavings.gates import ACTORS

STATUS = """
select {at}, array(select pid from pg_stat_activity where wait_event_type = 'Lock' and pid = any($1)) as waits from {of}
"""
LOOK = 0.0006
"""Seconds between two looks at a statement that is under way."""
STUCK = 10.0


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
    allowed: int = 0
    seen_waiting: int = 0
    task: asyncio.Task[Any] | None = None
    answer: Any = None
    statements: list[str] = field(default_factory=list)
    loses: bool = False
    """Its connection is lost once the statement that comes now is done."""


@dataclass
class Order:
    """Whose turn it was at each step, among whom."""

    choices: list[int] = field(default_factory=list)
    enabled: list[tuple[int, ...]] = field(default_factory=list)
    answers: list[Any] = field(default_factory=list)

    def __str__(self) -> str:
        return "".join(map(str, self.choices))


FAULTS = ("40001", "40P01", "57P01", "lost")
"""What may happen instead of a statement: a serialization failure, a deadlock, a session that the server ends, and a
connection that is lost after the statement (which may have been the commit)."""
Choose = Callable[[int, tuple[int, ...], int | None], int]
"""(step, who may go, who went last) -> who goes."""


class Stage:
    """Sessions on one database, and the one who lets them on."""

    def __init__(
        self, control: asyncpg.Connection[Row], actors: Sequence[Actor], settings: Settings, database: str
    ) -> None:
        self._control, self._database = control, database
        self.actors = list(actors)
        self.played: list[int] = []
        self._changed = asyncio.Event()
        self._cache: dict[Any, Any] = {}
        self._settings = settings
        numbers = range(len(self.actors))
        self._status = STATUS.format(
            at=", ".join(f"g{n}.last_value as at_{n}" for n in numbers),
            of=", ".join(f"gate_at_{n} g{n}" for n in numbers),
        )

    @classmethod
    async def open(cls, database: str, count: int = ACTORS) -> Stage:
        actors = [await _actor(database, number) for number in range(count)]
        return cls(
            await asyncpg.connect(database), actors, Settings(database_url=SecretStr(database)), database
        )

    async def close(self) -> None:
        for actor in self.actors:
            actor.connection.terminate()
        await self._control.close()

    async def play(
        self, works: Sequence[Work], choose: Choose, fault: Callable[[], str | None] | None = None
    ) -> Order:
        """Run these, each on a session of its own, in the order that `choose` says. `fault` says of each step whether one
        of FAULTS happens. Raises what a work raises."""
        order = Order()
        self.played = order.choices
        playing = self.actors[: len(works)]
        for actor, work in zip(playing, works, strict=True):
            actor.state = State.PYTHON
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
                fresh = await _actor(self._database, actor.number)
                actor.connection, actor.pid, actor.at, actor.allowed = (
                    fresh.connection,
                    fresh.pid,
                    fresh.at,
                    fresh.allowed,
                )
            return GatedConnection(self, actor)

        try:
            return await work(Session(connect, self._settings, self._cache))
        finally:
            actor.state = State.DONE
            self._changed.set()

    async def _let_on(self, actor: Actor, fault: str | None) -> None:
        number, inner = actor.number, actor.state is State.INNER
        if fault in ("40001", "40P01") and inner:
            await self._control.execute(
                f"select setval('gate_fail_{number}', {actor.at * 2 + (fault == '40P01')})"
            )
        elif fault == "57P01" and inner:
            await self._control.execute("select pg_terminate_backend($1)", actor.pid)
        actor.loses = fault == "lost" and not inner
        actor.state, actor.seen_waiting = State.STATEMENT, 0
        if inner:
            actor.allowed = actor.at
            await self._control.execute(f"select setval('gate_to_{number}', {actor.at})")
        else:
            assert actor.let_on is not None
            actor.let_on.set_result(None)

    async def _until_all_stand(self, playing: Sequence[Actor]) -> None:
        for actor in playing:
            if actor.state is State.WAITS:
                actor.state, actor.seen_waiting = State.STATEMENT, 0
        async with asyncio.timeout(STUCK):
            while True:
                busy = [a for a in playing if a.state in (State.PYTHON, State.STATEMENT)]
                if not busy:
                    return
                self._changed.clear()
                under_way = [a for a in busy if a.state is State.STATEMENT]
                try:
                    async with asyncio.timeout(LOOK):
                        await self._changed.wait()
                    continue
                except TimeoutError:
                    pass
                if under_way:
                    await self._look(under_way)

    async def _look(self, under_way: Sequence[Actor]) -> None:
        [row] = await self._control.fetch(self._status, [a.pid for a in under_way])
        for actor in under_way:
            if actor.state is not State.STATEMENT:
                continue
            at = row[f"at_{actor.number}"]
            if at > actor.allowed:
                actor.at, actor.state = at, State.INNER
            elif actor.pid in row["waits"]:
                actor.seen_waiting += 1
                if actor.seen_waiting > 1:
                    actor.state = State.WAITS

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


async def _actor(database: str, number: int) -> Actor:
    connection = await asyncpg.connect(
        database,
        server_settings={
            "application_name": f"actor-{number}",
            "gate.actor": str(number),
            "deadlock_timeout": "60ms",
            "jit": "off",
        },
    )
    pid = (await connection.fetchval("select pg_backend_pid()")) or 0
    at = await connection.fetchval(f"select last_value from gate_at_{number}")
    return Actor(number, connection, pid, at=at, allowed=at)


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

    async def _gated(self, what: str, work: Callable[[], Awaitable[Any]]) -> Any:
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
