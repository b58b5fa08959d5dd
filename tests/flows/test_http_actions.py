"""An event starts an HTTP action by a rule: the whole way, to the answer of the other side as the result."""

from __future__ import annotations

from uuid import UUID

import pytest

from penstock import Rule, Trigger, action, current, http_action
from tests.flows.installation import Installation
from tests.penstock_worker.executors.web import Answer, serving

pytestmark = pytest.mark.either_transport

kinds: list[type] = []


@action(pack="post")
async def look_at_id() -> str:
    kinds.append(type(current().execution_id))
    return current().idempotency_token


async def test_an_event_becomes_a_request_and_its_answer_the_result(house: Installation) -> None:
    async with serving() as web:
        web.answer("/orders", Answer(200, b'{"accepted": true}'))
        parcel = Trigger("post.parcel")
        send = http_action(
            "post.send",
            url=web.url("/orders"),
            parameters={"type": "object", "properties": {"order": {"type": "integer"}}},
        )
        rule = Rule("post.send_parcels", trigger=parcel, action=send, params={"order": "{{ payload.order }}"})
        await house.start(parcel, send, rule, executors={"http": {"allow": ["127.0.0.1"]}})
        event = await house.client.publish("post.parcel", {"order": 7})
        [row] = await house.until("select execution_id from enforcement where event_id = $1", event)
        assert await house.client.result(row["execution_id"], timeout=20) == {"accepted": True}
        (request,) = web.requests
        assert request.json["params"] == {"order": 7}
        assert request.json["execution_id"] == str(row["execution_id"])
    await house.sound()


async def test_an_action_sees_ids_of_pythons_own_type(house: Installation) -> None:
    await house.start(look_at_id)
    id = await house.client.start("post.look_at_id")
    assert await house.client.result(id, timeout=20) == str(id)
    assert set(kinds) == {UUID}
