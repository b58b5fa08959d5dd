"""The replay of events that were refused because of their numbers."""

from __future__ import annotations

import orjson
import pytest

from penstock import Trigger
from penstock.client import dead_letters
from penstock.language.terms.ids import new_id
from penstock.store.outbox import dead_letters as stored_letters
from penstock.store.outbox import queues
from penstock.store.outbox.dead_letters import TRIGGER, KeptLetter, LetterFilter
from tests.flows.installation import Installation

pytestmark = pytest.mark.either_transport

counted = Trigger("letters.counted")


async def test_replay_refuses_an_integer_of_more_than_64_bits(house: Installation) -> None:
    await house.apply(counted)
    letter = KeptLetter(
        id=new_id(),
        queue=queues.EVENT_RECEIVED,
        reason="InvalidInput: the body is not JSON",
        type="",
        message_id="m1",
        body=b'{"n": 18446744073709551616}',
        headers=orjson.dumps({TRIGGER: counted.ref}).decode(),
        fingerprint="letters",
        count=1,
        cut_from=None,
    )
    async with house.session.transaction() as tx:
        await stored_letters.keep(tx, [letter])
    [outcome] = [entry async for entry in dead_letters.replay(house.client, LetterFilter([letter.id]))]
    assert outcome.error is not None
    assert "64-bit range" in str(outcome.error)
    assert not await house.rows("select from event")
