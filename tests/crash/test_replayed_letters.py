"""Two processes replay all dead letters at once and are killed, while their executions are cancelled, rerun and archived.
Each event is stored once, and each execution runs once or not at all."""

from __future__ import annotations

import asyncio
import random
import sys
from uuid import UUID

import orjson

from penstock import Rule, Trigger, action
from penstock.client import dead_letters
from penstock.messaging import envelope
from penstock.store.outbox import dead_letters as stored_letters
from penstock.store.outbox import queues
from penstock.store.outbox.dead_letters import TRIGGER, KeptLetter, LetterFilter
from tests.flows.installation import Installation

WORKS, EVENTS, ROUNDS, SEED = 48, 48, 4, 85
counted = Trigger("replayed.counted")
runs: list[int] = []


@action(pack="replayed")
async def work(n: int) -> int:
    runs.append(n)
    return n


on_counted = Rule("replayed.on_counted", trigger=counted, action=work, params={"n": "{{ payload.n }}"})


def letter_of_work(id: UUID) -> KeptLetter:
    body = envelope.encode("work.default", [id])
    return KeptLetter("work.default", "rejected", "", str(id), body, "{}", f"work {id}")


def letter_of_event(n: int) -> KeptLetter:
    headers = orjson.dumps({TRIGGER: counted.ref}).decode()
    return KeptLetter(
        queues.EVENT_RECEIVED, "refused", "", f"m{n}", orjson.dumps({"n": n}), headers, f"event {n}"
    )


async def replaying(database: str) -> asyncio.subprocess.Process:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.crash.replaying", database),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    assert await process.stdout.readline() == b"ready\n"
    return process


async def let_go(process: asyncio.subprocess.Process, lives: float | None) -> None:
    """Let it replay. Kill it after `lives` seconds, if that is given."""
    assert process.stdin is not None
    process.stdin.write(b"go\n")
    await process.stdin.drain()
    if lives is not None:
        await asyncio.sleep(lives)
        if process.returncode is None:
            process.kill()
    assert await process.wait() == 0 or lives is not None


async def disturb(
    house: Installation, ids: list[UUID], draw: random.Random, reruns: dict[UUID, UUID]
) -> None:
    """Cancel some of the executions, and run them once more."""
    for id in draw.sample([id for id in ids if id not in reruns], 3):
        await house.client.cancel(id, reason="a test")
        reruns[id] = await house.client.rerun(id, by="ada")


async def test_letters_replayed_by_killed_processes_act_once(house: Installation, database: str) -> None:
    draw = random.Random(SEED)
    await house.apply(counted, work, on_counted)
    await house.executor(archive_after=0.1)
    ids = [await house.client.start("replayed.work", {"n": n}) for n in range(WORKS)]
    async with house.session.transaction() as tx:
        await stored_letters.keep(
            tx,
            sorted(
                [*map(letter_of_work, ids), *(letter_of_event(n) for n in range(1000, 1000 + EVENTS))],
                key=lambda letter: letter.fingerprint,
            ),
        )
    runs.clear()
    reruns: dict[UUID, UUID] = {}
    for _ in range(ROUNDS):
        pair = await asyncio.gather(replaying(database), replaying(database))
        await asyncio.gather(
            *(let_go(process, draw.uniform(0.0, 0.12)) for process in pair), disturb(house, ids, draw, reruns)
        )
    pair = await asyncio.gather(replaying(database), replaying(database))
    await asyncio.gather(*(let_go(process, None) for process in pair))
    await house.worker(work)
    await house.quiet()
    [events] = await house.rows("select count(*) as count, count(distinct id) as ids from event")
    assert (events["count"], events["ids"]) == (EVENTS, EVENTS)
    again = sorted(ids.index(id) for id in reruns)
    kept = sorted(set(range(WORKS)) - set(again))
    assert sorted(runs) == sorted([*kept, *again, *range(1000, 1000 + EVENTS)])
    for id in (*ids, *reruns.values()):
        row = await house.client.get(id)
        assert (row.status, row.attempt) == (("cancelled", 0) if id in reruns else ("completed", 1))
    left = await dead_letters.newest(house.session, LetterFilter())
    assert {UUID(str(letter.message_id)) for letter in left} <= set(reruns), (
        "only work that has ended is refused"
    )
    await house.sound()
