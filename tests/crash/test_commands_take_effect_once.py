"""Each command leaves the same behind, whether or not the connection is lost around its commit.

The oracle knows no command. What a command answers, and the number of rows that it adds to each table, are the same without a
fault, with the answer to COMMIT lost, and with COMMIT itself lost.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import FrameType
from typing import Any
from uuid import UUID

import asyncpg
import pytest

from penstock import AskInquiry, DurableContext, Rule, Schedule, Trigger, action
from penstock.client import dead_letters, executions, rule_errors
from penstock.language.loading import Definitions
from penstock.language.workflows import from_yaml
from penstock.messaging import envelope
from penstock.messaging.transports import Message
from penstock.operate import retire
from penstock.operate.apply import register
from penstock.store.executions.execution_list import ExecutionFilter
from penstock.store.outbox.dead_letters import LetterFilter
from penstock.store.session import crash_points
from tests.flows.installation import Installation

pytestmark = pytest.mark.either_transport

NAMES = ("plain", "answer_lost", "commit_lost")
"""A target of each name: it gets the command without a fault, or with one of the two."""
MOMENTS = {"answer_lost": "committed", "commit_lost": "committing"}
ROOMS = ("common/penstock/client", "common/penstock/operate")
ROOT = Path(__file__).parents[2]


@action(pack="once")
async def work() -> int:
    return 1


@action(pack="once")
async def ask() -> None:
    raise AskInquiry("Well?")


@action(pack="once")
async def hear(ctx: DurableContext) -> Any:
    return await ctx.signal("word")


waits = from_yaml("workflow: once.waits\ntasks:\n  ask: {action: once.ask}")
happened = Trigger("once.happened")
DEFINITIONS = [
    *(work, ask, hear, waits, happened),
    *(Schedule(f"once.{name}", every="1h", action="once.work", enabled=False) for name in NAMES),
    *(
        Rule(f"once.{name}", trigger="once.happened", when="event.payload.size > 3", action="once.work")
        for name in NAMES
    ),
]


class Scene:
    """An installation without running services, and the targets of the commands by name: an execution that
    asks, a durable function that listens, a workflow that runs, one that has ended, one that waits for a worker, and a dead
    letter."""

    def __init__(self, house: Installation) -> None:
        self.house = house
        self.client, self.session = house.client, house.session
        self.asks: dict[str, UUID] = {}
        self.listens: dict[str, UUID] = {}
        self.runs: dict[str, UUID] = {}
        self.ended: dict[str, UUID] = {}
        self.later: dict[str, UUID] = {}
        self.letters: dict[str, UUID] = {}

    async def set_up(self) -> None:
        house, client = self.house, self.client
        await house.apply(*DEFINITIONS)
        executor, worker = await house.executor(), await house.worker(*DEFINITIONS)
        for name in NAMES:
            self.asks[name] = await client.start("once.ask")
            self.listens[name] = await client.start("once.hear")
            self.runs[name] = await client.start("once.waits")
            self.ended[name] = await client.start("once.work", key=name)
            await client.result(self.ended[name], timeout=30)
            await client.publish("once.happened", {"size": "many"})
            await house.put(Message("execution.requested", name.encode(), id=name, type="?"))
        for ids in (self.asks, self.listens):
            for id in ids.values():
                await house.until("select 1 from execution where id = $1 and status = 'waiting'", id)
        for id in self.runs.values():
            await house.until("select 1 from execution where parent = $1 and status = 'waiting'", id)
        await house.until("select 1 from dead_letter having count(*) = 3")
        body = envelope.encode("execution.requested", [self.ended["plain"]])
        rows = await house.rows(
            "update dead_letter set body = $1 returning id", body
        )  # now they can be put back
        self.letters = dict(zip(NAMES, (row["id"] for row in rows), strict=True))
        await house.until("select 1 from enforcement where status = 'failed' having count(*) = 9")
        await house.ended(worker)
        await house.ended(executor)
        self.later = {name: await client.start("once.work") for name in NAMES}

    async def counts(self) -> dict[str, int]:
        tables = await self.session.fetch(
            "select relname from pg_class where relkind in ('r', 'p') and relnamespace = current_schema()::regnamespace"
            " and relname not in ('outbox', 'awaited')"  # the client empties these meanwhile
        )
        sql = " union all ".join(
            f"select '{row['relname']}' as name, count(*) from {row['relname']}" for row in tables
        )
        return {row["name"]: row["count"] for row in await self.session.fetch(sql)}


LATER = datetime(2100, 1, 1, tzinfo=UTC)
Call = Callable[[Scene, str], Awaitable[object]]
"""A command on the target of a name. Commands of one list are made one after another."""


def _outcomes(outcomes: list[Any]) -> list[str]:
    return [type(outcome.error).__name__ for outcome in outcomes]


async def _run_again(scene: Scene, name: str) -> list[str]:
    chosen = ExecutionFilter(key=name, ended=True)
    return _outcomes([o async for o in executions.rerun(scene.client, chosen, by="ada")])


async def _put_back(scene: Scene, name: str) -> list[str]:
    chosen = LetterFilter(ids=[scene.letters[name]])
    return _outcomes([o async for o in dead_letters.replay(scene.client, chosen)])


async def _rules_again(scene: Scene, name: str) -> list[str]:
    await register(
        scene.session,
        Definitions([work, happened, Rule(f"once.{name}", trigger="once.happened", action="once.work")]),
    )
    return [again.what async for again in rule_errors.rerun(scene.client, rule=f"once.{name}")]


async def _apply(scene: Scene, name: str) -> list[str]:
    trigger = Trigger(f"once.new_{name}")
    return [change.what for change in await register(scene.session, Definitions([trigger]))]


async def _backfill(scene: Scene, name: str) -> int:
    until = datetime.now(UTC)
    return len(await scene.client.schedules.backfill(f"once.{name}", until - timedelta(hours=5), until))


COMMANDS: dict[str, Call] = {
    "limits set": lambda s, n: s.client.limits.set(f"once.{n}_limit", max=3, scope="once"),
    "limits rm": lambda s, n: s.client.limits.remove(f"once.{n}_limit"),
    "hold": lambda s, n: s.client.holds.hold("tenant", n, by="ada", force=True),
    "release": lambda s, n: s.client.holds.release("tenant", n),
    "schedule enable": lambda s, n: s.client.schedules.enable(f"once.{n}"),
    "schedule pause": lambda s, n: s.client.schedules.pause(f"once.{n}", 60),
    "schedule disable": lambda s, n: s.client.schedules.disable(f"once.{n}"),
    "schedule run": lambda s, n: s.client.schedules.run(f"once.{n}"),
    "schedule backfill": _backfill,
    "schedule delete": lambda s, n: s.client.schedules.delete(f"once.{n}"),
    "set-priority": lambda s, n: s.client.set_priority(s.asks[n], 7),
    "reschedule": lambda s, n: s.client.reschedule(s.later[n], at=LATER, by="ada"),
    "answer": lambda s, n: s.client.answer(s.asks[n], None, by="ada"),
    "signal": lambda s, n: s.client.signal(s.listens[n], "word", 5),
    "pause": lambda s, n: s.client.command(s.runs[n], "pause", by="ada"),
    "resume": lambda s, n: s.client.command(s.runs[n], "resume", by="ada"),
    "cancel": lambda s, n: s.client.cancel(s.runs[n], s.listens[n]),
    "rerun": lambda s, n: s.client.rerun(s.ended[n], by="ada"),
    "executions rerun": _run_again,
    "dead-letters replay": _put_back,
    "rules rerun": _rules_again,
    "apply": _apply,
    "retire": lambda s, n: retire.retire(s.session, f"once.new_{n}"),
}


@contextmanager
def lost(moment: str | None) -> Iterator[list[str]]:
    """Lose the connection at the first commit of a command, at this moment. Yield the moments at which it was lost."""
    hits: list[str] = []

    def reached(what: str, connection: object) -> None:
        if what == moment and not hits and "committed_once" in _callers():
            assert isinstance(connection, asyncpg.Connection)
            hits.append(what)
            connection.terminate()
            raise asyncpg.ConnectionDoesNotExistError("connection was closed in the middle of operation")

    crash_points.reached = reached
    try:
        yield hits
    finally:
        crash_points.reached = None


def _callers() -> Iterator[str]:
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        yield frame.f_code.co_name
        frame = frame.f_back


async def test_command_takes_effect_once(house: Installation) -> None:
    scene = Scene(house)
    await scene.set_up()
    wrong = []
    for command, call in COMMANDS.items():
        effects = {}
        for name in NAMES:
            before = await scene.counts()
            with lost(MOMENTS.get(name)) as hits:
                try:
                    answer = await call(scene, name)
                except Exception as error:
                    wrong.append(f"{command}, {name}: {error!r}")
                    continue
            if bool(hits) != (name in MOMENTS):
                wrong.append(f"{command}, {name}: the connection was lost {len(hits)} times")
            after = await scene.counts()
            added = {table: after[table] - before[table] for table in after if after[table] != before[table]}
            effects[name] = (answer if isinstance(answer, int | str | list) else None, added)
        if any(effect != effects["plain"] for effect in effects.values()):
            wrong.append(f"{command}: {effects}")
    assert not wrong, "\n".join(wrong)
    await house.sound()


def test_all_retried_transactions_of_commands_are_committed_once() -> None:
    """Nothing retries a transaction in any other way. Submits and events have ids that make their retries harmless."""
    ids = {"submits.py", "publishing.py", "starts.py"}
    for room in ROOMS:
        for file in (ROOT / room).rglob("*.py"):
            tree = ast.parse(file.read_text())
            retries = [
                node
                for node in ast.walk(tree)
                if isinstance(node, ast.Call)
                and isinstance(node.func, ast.Name)
                and node.func.id in ("retried", "backoff")
            ]
            if file.name in ids or not retries:
                continue
            inner = {
                node.name
                for node in ast.walk(tree)
                if isinstance(node, ast.AsyncFunctionDef)
                and any(
                    isinstance(part, ast.Attribute) and part.attr == "transaction" for part in ast.walk(node)
                )
            }
            named = {
                part.id if isinstance(part, ast.Name) else part.attr
                for retry in retries
                for part in ast.walk(retry)
                if isinstance(part, ast.Name | ast.Attribute)
            }
            assert not (inner & named) - {"_fill"}, f"{file.name} retries a transaction by itself"
