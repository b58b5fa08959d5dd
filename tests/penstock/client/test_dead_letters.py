"""The replay of dead letters: each once, and only where a service takes it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from uuid import UUID

import pytest

from penstock.client import dead_letters as replays
from penstock.client.bulk import BulkOutcome
from penstock.language.terms.ids import new_id
from penstock.messaging import envelope
from penstock.operate.doctor import policies
from penstock.store.outbox.dead_letters import LetterFilter
from tests.flows.installation import Installation

KEEP = (
    "insert into dead_letter (id, queue, reason, body, fingerprint) "
    "values ($1, $2, $3, $4, gen_random_uuid()::text) returning 1"
)


@pytest.fixture
async def house(database: str) -> AsyncIterator[Installation]:
    async with Installation(database, None) as house:
        yield house


async def keep(house: Installation, queue: str, *ids: UUID, reason: str = "rejected") -> UUID:
    letter = new_id()
    await house.rows(KEEP, letter, queue, reason, envelope.encode("work", ids or [new_id()]))
    return letter


async def replayed(house: Installation) -> list[BulkOutcome]:
    return [outcome async for outcome in replays.replay(house.client, LetterFilter())]


@pytest.mark.parametrize("queue", ["unknown", "dead", "execution.status.failed", "timers.set", "a"])
async def test_letter_of_a_queue_that_no_service_takes_stays(house: Installation, queue: str) -> None:
    letter = await keep(house, queue, *(new_id() for _ in range(100)))
    [outcome] = await replayed(house)
    assert (outcome.id, "no service takes messages from" in str(outcome.error)) == (letter, True)
    assert len(await house.rows("select 1 from dead_letter")) == 1
    assert not await house.rows("select 1 from outbox")


async def test_letter_of_an_event_that_is_gone_stays(house: Installation) -> None:
    await keep(house, "event.created")
    [outcome] = await replayed(house)
    assert "is not stored any more" in str(outcome.error)
    assert len(await house.rows("select 1 from dead_letter")) == 1


async def test_letter_that_arrives_again_is_not_replayed_twice_by_one_call(house: Installation) -> None:
    """A message of many ids is staged as several, and each can be dead-lettered again before the call has ended."""
    for _ in range(3):
        await keep(house, "execution.requested", *(new_id() for _ in range(100)))
    outcomes: list[BulkOutcome] = []
    async for outcome in replays.replay(house.client, LetterFilter()):
        outcomes.append(outcome)
        if len(outcomes) < 20:
            await keep(house, "execution.requested")
    assert [outcome.error for outcome in outcomes] == [None] * 3


async def test_doctor_blames_no_policy_for_a_forged_queue(house: Installation) -> None:
    await keep(house, "forged", reason="expired")
    assert await policies.findings(house.session, house.settings()) == []
    await keep(house, "work.default", reason="expired")
    [finding] = await policies.findings(house.session, house.settings())
    assert finding.what == "policy on work.default"
