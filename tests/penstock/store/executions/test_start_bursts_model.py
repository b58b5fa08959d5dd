"""Random starts of a few keys with a debounce time, on two connections beside the loop of the timers.

Some transactions are lost before their commit, and some starts are sent again after it. The plain model of the bursts of events
splits the starts by their stored instants. Both agree on each burst and on its execution."""

from __future__ import annotations

import asyncio
import os
import random
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import orjson
import pytest

from penstock.client.starts import Request, Starts
from penstock.operate.check import check
from penstock.store.executions import executions
from penstock.store.executions.executions import Submission
from penstock.store.session.database import Session, Transaction
from penstock.store.upkeep import timers
from tests.penstock.store.admission.conftest import desk
from tests.penstock.store.admission.desk import Desk
from tests.penstock.store.events.test_bursts_model import model

__all__ = ["desk"]

SEEDS = range(int(os.environ.get("PENSTOCK_EXAMPLES", "6")))
JOINED = "select id, execution_id, at from joined_start"
# The first request in the history has the instant at which the burst would have closed without other starts.
BEGUN = """
select p.execution_id as id, p.params::text as params, h.ready_at as closes_at, e.status
from payload p join execution e on e.id = p.execution_id
join history h on h.execution_id = p.execution_id and h.old is null
"""


class Killed(Exception):
    """The end of a client before its commit."""


async def fire(session: Session) -> None:
    async with session.transaction() as tx:
        await timers.fire_due(tx, 100)


@pytest.mark.parametrize("seed", SEEDS)
async def test_bursts_of_starts_agree_with_the_model(desk: Desk, seed: int) -> None:
    dice = random.Random(seed)
    await desk.open()
    quiet, at_most = dice.choice([0.05, 0.2]), dice.choice([None, 0.3, 0.04])
    keep = dice.choice(["last", "first"])
    starts = Starts(desk.session)
    numbers: dict[UUID, tuple[str, int]] = {}
    answers: dict[UUID, UUID] = {}

    async def prepared(key: str) -> Submission:
        n = len(numbers)
        request = Request("mail.send", debounce=quiet, at_most=at_most, debounce_key=key, keep=keep)
        [submission] = await starts.prepare(request, [{"customer": [key, n]}])
        numbers[submission.id] = key, n
        return submission

    async def submit(session: Session, group: list[Submission], lost: float) -> bool:
        async def write(tx: Transaction) -> None:
            submitted = await executions.submit(tx, group)
            if dice.random() < lost:
                raise Killed
            for submission in group:
                answer = submitted.existing.get(submission.id, submission.id)
                assert answers.setdefault(submission.id, answer) == answer
            assert not submitted.conflicts

        try:
            async with session.transaction() as tx:
                await write(tx)
        except Killed:
            return False
        return True

    async def client(session: Session) -> None:
        groups = 12
        for _ in range(groups):
            group = [await prepared(dice.choice("ab")) for _ in range(dice.randint(1, 3))]
            while not await submit(session, group, lost=0.25):
                pass
            if dice.random() < 0.3:  # the answer was lost, and the client sends the starts again
                await asyncio.sleep(dice.choice([0, quiet]))
                await submit(session, group, lost=0)
            await asyncio.sleep(dice.choice([0, 0, 0.01, quiet * 0.9, quiet * 1.1]))

    is_over = False

    async def timer_loop() -> None:
        session = desk.database.session()
        while not is_over:
            await fire(session)
            await asyncio.sleep(dice.uniform(0, 0.01))

    firing = asyncio.create_task(timer_loop())
    await asyncio.gather(client(desk.database.session()), client(desk.database.session()))
    await asyncio.sleep(quiet + 0.1)
    is_over = True
    await firing
    # A timer that was fired while a start had locked the execution left it to an executor.
    async with desk.session.transaction() as tx:
        await executions.schedule(tx, [row["id"] for row in await tx.fetch(BEGUN)])
    begun = await desk.session.fetch(BEGUN)
    joined = await desk.session.fetch(JOINED)
    first = timedelta(seconds=quiet if at_most is None else min(quiet, at_most))
    stored: list[tuple[datetime, UUID, str, int]] = [
        *((row["closes_at"] - first, row["id"], *numbers[row["id"]]) for row in begun),
        *((row["at"], row["id"], *numbers[row["id"]]) for row in joined),
    ]
    assert sorted(id for _, id, _, _ in stored) == sorted(numbers)
    assert {row["id"]: row["execution_id"] for row in joined} == {
        id: execution for id, execution in answers.items() if id != execution
    }
    outcomes: list[Any] = sorted(orjson.loads(row["params"])["customer"] for row in begun)
    assert outcomes == model(stored, quiet, at_most, keep)
    assert {row["status"] for row in begun} == {"scheduled"}
    assert not [finding for finding in await check(desk.session) if finding.violations]
