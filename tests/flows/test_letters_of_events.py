"""The replay of events: as they arrived, or not at all."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import orjson
import pytest

from penstock import Trigger
from penstock.client import dead_letters
from penstock.client.bulk import BulkOutcome
from penstock.language.terms.ids import new_id
from penstock.messaging.transports import UNREADABLE
from penstock.store.outbox import dead_letters as stored_letters
from penstock.store.outbox import queues
from penstock.store.outbox.dead_letters import APP, TRIGGER, KeptLetter, LetterFilter
from tests.flows.installation import Installation

pytestmark = pytest.mark.either_transport

counted = Trigger("letters.counted")


async def keep(house: Installation, body: bytes, *, message_id: str = "m1", **columns: Any) -> UUID:
    """Store a dead letter of an event. `headers` are those beside its trigger."""
    letter = KeptLetter(
        id=new_id(),
        queue=queues.EVENT_RECEIVED,
        reason="refused",
        type="",
        message_id=message_id,
        body=body,
        headers=orjson.dumps({TRIGGER: counted.ref} | columns.pop("headers", {})).decode(),
        fingerprint=message_id,
        **columns,
    )
    async with house.session.transaction() as tx:
        await stored_letters.keep(tx, [letter])
    return letter.id


async def replayed(house: Installation, letter: UUID) -> BulkOutcome:
    [outcome] = [entry async for entry in dead_letters.replay(house.client, LetterFilter([letter]))]
    return outcome


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (b'{"n": 18446744073709551616}', "64-bit range"),
        (b'{"name": "M\xfcller"}', "not JSON"),
        (b"", "not JSON"),
    ],
)
async def test_replay_refuses_a_body_that_is_not_json(house: Installation, body: bytes, error: str) -> None:
    await house.apply(counted)
    outcome = await replayed(house, await keep(house, body))
    assert error in str(outcome.error)
    assert not await house.rows("select from event")
    assert len(await house.rows("select from dead_letter")) == 1


@pytest.mark.parametrize("body", [b"null", b'{"name": "M\xc3\xbcller \xef\xbf\xbd"}', b"[1.50]"])
async def test_replayed_event_has_the_payload_that_arrived(house: Installation, body: bytes) -> None:
    """A later copy from its producer is the same event, and no conflict."""
    await house.apply(counted)
    assert (await replayed(house, await keep(house, body))).error is None
    [event] = await house.rows("select payload::text as payload from event")
    assert orjson.loads(event["payload"]) == orjson.loads(body)
    assert (await replayed(house, await keep(house, body))).error is None
    assert len(await house.rows("select from event")) == 1


@pytest.mark.parametrize(
    ("columns", "error"),
    [
        ({"message_id": "a\ufffdb"}, "the message id holds U+FFFD"),
        ({"headers": {APP: "x\ufffdy"}}, "the app id holds U+FFFD"),
        ({"headers": {UNREADABLE: "the AMQP properties cannot be decoded"}}, "could not be read"),
    ],
)
async def test_replay_refuses_an_event_that_would_be_another_one(
    house: Installation, columns: dict[str, Any], error: str
) -> None:
    """A replaced message id, application or tenant would store the event under another name."""
    await house.apply(counted)
    outcome = await replayed(house, await keep(house, b"{}", **columns))
    assert error in str(outcome.error)
    assert not await house.rows("select from event")


async def test_replay_of_a_letter_that_only_counts_does_not_ask_for_the_event_again(
    house: Installation,
) -> None:
    await house.apply(counted)
    outcome = await replayed(house, await keep(house, b"", cut_from=8))
    assert outcome.error is not None
    assert "was stored on arrival" in str(outcome.error)
    assert "Do not publish it again" in (outcome.error.hint or "")
    cut = await replayed(house, await keep(house, b"{", message_id="m2", cut_from=2_000_000))
    assert cut.error is not None
    assert "Publish the event again at its source" in (cut.error.hint or "")
