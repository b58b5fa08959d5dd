"""Tokens that may start or answer alone, that are rotated, that expire, and that show when they were used."""

from __future__ import annotations

from datetime import datetime, timedelta

import httpx
import pytest

from penstock.language.terms.ids import new_id
from tests.penstock_api.conftest import Api

V1 = "/api/v1"


async def started(api: Api, token: str, action: str, parameters: dict[str, object]) -> int:
    async with api.caller(token) as caller:
        body = {"action": action, "parameters": parameters}
        return (await caller.post(f"{V1}/executions", json=body)).status_code


@pytest.mark.parametrize(
    ("scope", "count", "charge"),
    [
        ("start", 201, 201),
        ("start:shop.count", 201, 403),
        ("start:shop.*", 201, 201),
        ("start:other.*", 403, 403),
        ("start:shop.coun", 403, 403),
        ("answer", 403, 403),
        ("operate", 201, 201),
    ],
)
async def test_start_scope_starts_the_actions_that_it_names(
    api: Api, scope: str, count: int, charge: int
) -> None:
    name = f"starts by {scope}"
    await api.token(name, scope)
    assert await started(api, name, "shop.count", {"words": "x"}) == count
    assert await started(api, name, "shop.charge", {"order": 1}) == charge
    async with api.caller(name) as caller:
        assert (await caller.get(f"{V1}/executions")).status_code == 403
        event = {"trigger": "shop.order_placed", "payload": {"id": 1}}
        assert (await caller.post(f"{V1}/events", json=event)).status_code == (
            201 if scope == "operate" else 403
        )
        cancelled = await caller.post(f"{V1}/executions/{new_id()}/cancel", json={})
        assert cancelled.status_code == (404 if scope == "operate" else 403)


async def test_answer_scope_answers_and_does_nothing_else(api: Api) -> None:
    await api.token("answers", "answer")
    id = await api.house.client.start("shop.approved")
    [row] = await api.house.until(
        "select id from execution where parent = $1 and status = 'waiting'", id, seconds=30
    )
    async with api.caller("answers") as caller:
        assert (await caller.post(f"{V1}/executions/{id}/cancel", json={})).status_code == 403
        answered = await caller.post(f"{V1}/inquiries/{row['id']}/answer", json={"response": True})
        assert answered.status_code == 204, answered.text


async def test_rotated_token_has_two_secrets_for_a_while(api: Api, call: httpx.AsyncClient) -> None:
    await api.token("turned", "read")
    first = api.secrets["turned"]

    async def status(secret: str) -> int:
        api.app.state.backend.forget_callers()
        headers = {"authorization": f"Bearer {secret}"}
        async with api.caller(None) as caller:
            return (await caller.get(f"{V1}/session", headers=headers)).status_code

    answer = await call.post(f"{V1}/tokens/turned/rotate", json={"seconds": 1000})
    assert answer.status_code == 200, answer.text
    second, token = answer.json()["secret"], answer.json()["token"]
    assert token["rotated_at"] is not None
    assert token["old_until"] is not None
    assert [await status(first), await status(second)] == [200, 200]
    await api.house.rows("update api_token set old_until = now() where name = 'turned'")
    assert [await status(first), await status(second)] == [401, 200]
    third = (await call.post(f"{V1}/tokens/turned/rotate", json={"overlap": 0})).json()["secret"]
    assert [await status(first), await status(second), await status(third)] == [401, 401, 200]
    assert (await call.post(f"{V1}/tokens/nothing/rotate", json={})).status_code == 404
    await call.delete(f"{V1}/tokens/turned")
    assert [await status(second), await status(third)] == [401, 401]


async def test_rotation_makes_no_expired_secret_good_again(api: Api, call: httpx.AsyncClient) -> None:
    await api.token("late", "read", seconds=0.000001)
    await call.post(f"{V1}/tokens/late/rotate", json={})
    async with api.caller("late") as caller:
        assert (await caller.get(f"{V1}/session")).status_code == 401


async def test_token_expires_unless_its_creator_says_never(call: httpx.AsyncClient) -> None:
    token = (await call.post(f"{V1}/tokens", json={"name": "short", "scopes": ["read"]})).json()["token"]
    lifetime = datetime.fromisoformat(token["expires_at"]) - datetime.fromisoformat(token["created_at"])
    assert abs(lifetime - timedelta(days=90)) < timedelta(minutes=1)
    forever = {"name": "long", "scopes": ["read"], "seconds": None}
    assert (await call.post(f"{V1}/tokens", json=forever)).json()["token"]["expires_at"] is None


async def test_use_of_a_token_is_noted_once_in_ten_minutes(api: Api) -> None:
    await api.token("used", "read")
    notes = "select used_at, xmin::text from api_token where name = 'used'"
    assert (await api.house.rows(notes))[0]["used_at"] is None
    rows = []
    for _ in range(3):
        api.app.state.backend.forget_callers()
        async with api.caller("used") as caller:
            assert (await caller.get(f"{V1}/session")).status_code == 200
        rows += await api.house.rows(notes)
    assert rows[0]["used_at"] is not None
    assert len({tuple(row) for row in rows}) == 1
    await api.house.rows("update api_token set used_at = now() - interval '11 minutes' where name = 'used'")
    api.app.state.backend.forget_callers()
    async with api.caller("used") as caller:
        await caller.get(f"{V1}/session")
    assert await api.house.rows(
        "select 1 from api_token where name = 'used' and used_at > now() - interval '1 minute'"
    )


async def test_creation_warns_of_a_scope_without_an_action(api: Api) -> None:
    await api.token("makes tokens", "admin")
    async with api.caller("makes tokens") as caller:
        new = {"name": "slips", "scopes": ["start:shop.cuont", "start:shop.*"]}
        created = await caller.post(f"{V1}/tokens", json=new)
        assert created.status_code == 201, created.text
        [warning] = created.json()["warnings"]
        assert warning.startswith("start:shop.cuont matches no applied action. The token is valid")
        created = await caller.post(f"{V1}/tokens", json={"name": "fits", "scopes": ["start:shop.count"]})
        assert created.json()["warnings"] == []
