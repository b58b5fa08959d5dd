"""A valid submission takes the fast path, and any other FastAPI's: both answer alike."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from penstock_api import fast_path
from tests.penstock_api.auth.test_access import routes
from tests.penstock_api.conftest import THEIRS, Api

V1 = "/api/v1"
START: dict[str, Any] = {"action": "shop.count", "parameters": {"words": "x"}}
EVENT: dict[str, Any] = {"trigger": "shop.order_placed", "payload": {"id": 1}}


@pytest.fixture
def ways(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Return for each request so far whether it took the fast path."""
    taken: list[bool] = []
    real = fast_path.answer

    async def noted(*given: Any) -> Any:
        said = await real(*given)
        taken.append(said is None)
        return said

    monkeypatch.setattr(fast_path, "answer", noted)
    return taken


DEBOUNCED = {**START, "debounce": "1s", "debounce_key": "both", "at_most": 2, "keep": "first"}


@pytest.mark.parametrize(
    ("path", "body"), [("executions", START), ("executions", DEBOUNCED), ("events", EVENT)]
)
async def test_both_ways_answer_alike(
    call: httpx.AsyncClient, ways: list[bool], path: str, body: dict[str, Any]
) -> None:
    key = {"Idempotency-Key": f"both-{path}-{len(body)}"}
    quick = await call.post(f"{V1}/{path}", json=body, headers=key)
    slow = await call.post(
        f"{V1}/{path}",
        content=json.dumps(body),
        headers={**key, "content-type": "application/json; charset=utf-8"},
    )
    assert ways == [True, False]
    assert (quick.status_code, quick.json(), quick.headers["location"]) == (
        slow.status_code,
        slow.json(),
        slow.headers["location"],
    )
    assert quick.headers["content-type"] == slow.headers["content-type"] == "application/json"
    assert quick.headers["content-security-policy"] == slow.headers["content-security-policy"]


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"null", b'{"action": 1}', b'{"action": "shop.count", "x": 1}', b'"\\ud800"', b"\xff"],
)  # fmt: skip
async def test_a_doubtful_submit_is_explained(
    call: httpx.AsyncClient, ways: list[bool], content: bytes
) -> None:
    said = await call.post(f"{V1}/executions", content=content, headers={"content-type": "application/json"})
    assert ways == [False]
    assert said.status_code in (400, 422)
    assert said.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize(
    ("who", "body", "headers", "status"),
    [
        ("all", {**START, "action": "shop.nothing"}, {}, 404),
        ("all", {**START, "parameters": {"word": "x"}}, {}, 422),
        ("all", {**START, "parameters": {"words": "another"}}, {"Idempotency-Key": "refused"}, 409),
        ("their starts", START, {}, 403),
        ("reads", START, {}, 403),
        (None, START, {}, 401),
        ("all", START, {"Authorization": "Bearer pst_nobody"}, 401),
        ("all", START, {"Authorization": "Basic cHN0OnBzdA=="}, 401),
        ("all", START, {"Origin": "https://evil.example"}, 403),
        ("all", START, {"Sec-Fetch-Site": "cross-site"}, 403),
    ],
)
async def test_both_ways_refuse_alike(
    api: Api, ways: list[bool], who: str | None, body: Any, headers: dict[str, str], status: int
) -> None:
    if "reads" not in api.secrets:
        await api.token("reads", "read")
        await api.token("their starts", "operate", tenants=(THEIRS,))
    async with api.caller() as call:
        key = {"Idempotency-Key": "refused"}
        assert (await call.post(f"{V1}/executions", json=START, headers=key)).status_code == 201
    [before] = await api.house.rows("select count(*) from execution")
    async with api.caller(who) as call:
        quick = await call.post(f"{V1}/executions", json=body, headers=headers)
        odd = {**headers, "content-type": "application/json; charset=utf-8"}
        slow = await call.post(f"{V1}/executions", content=json.dumps(body), headers=odd)
    assert (quick.status_code, ways[-1]) == (status, False)
    assert quick.json() == slow.json()
    for name in ("content-type", "content-security-policy", "www-authenticate"):
        assert quick.headers.get(name) == slow.headers.get(name), name
    assert await api.house.rows("select count(*) from execution") == [before]


async def test_a_failure_after_a_possible_store_is_not_tried_again(
    api: Api, call: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[str] = []

    async def start(_: Any, ref: str, *given: Any, **more: Any) -> None:
        tried.append(ref)
        raise RuntimeError("the answer was lost")

    monkeypatch.setattr(type(api.house.client), "start", start)
    with pytest.raises(RuntimeError):  # the server of the app logs it
        async with httpx.AsyncClient(
            transport=httpx.ASGITransport(api.app), base_url="http://penstock", headers=call.headers
        ) as strict:
            await strict.post(f"{V1}/executions", json=START)
    said = await call.post(f"{V1}/executions", json=START)
    assert (said.status_code, said.headers["content-type"]) == (500, "application/problem+json")
    assert said.headers["content-security-policy"]
    assert tried == ["shop.count"] * 2


async def test_a_submit_too_large_or_with_too_long_a_key_is_refused(
    call: httpx.AsyncClient, ways: list[bool]
) -> None:
    large = {**START, "parameters": {"words": "x" * 400_000}}
    assert (await call.post(f"{V1}/executions", json=large)).status_code == 413
    long = await call.post(f"{V1}/executions", json=START, headers={"Idempotency-Key": "k" * 1001})
    assert (long.status_code, ways[-1:]) == (422, [False])


def test_every_frequent_call_has_the_fast_path(api: Api) -> None:
    messages = ("take", "beat", "log", "progress", "finish")
    paths = {f"{V1}/executions", f"{V1}/events", *(f"{V1}/work/{name}" for name in messages)}
    fast = {
        path
        for method, path, route in routes(api.app)
        if method == "POST" and hasattr(route.endpoint, "quick")
    }
    assert fast == paths


@pytest.mark.parametrize("headers", [{}, {"Idempotency-Key": "assigned"}], ids=["plain", "with a key"])
async def test_start_over_http_is_assigned_without_a_message(
    api: Api, call: httpx.AsyncClient, headers: dict[str, str]
) -> None:
    house = api.house
    await house.quiet()
    await house.until("select from permit having count(*) > 0")
    staged = "select last_value from outbox_id_seq"
    before = await house.rows(staged)
    answer = await call.post(f"{V1}/executions", json=START, headers=headers)
    assert answer.status_code == 201
    assert await house.rows(staged) == before
    await house.until(
        "select from execution where id = $1::uuid and status = 'completed'", answer.json()["id"]
    )
    moves = await house.rows(
        "select new from history where execution_id = $1::uuid order by at", answer.json()["id"]
    )
    assert [row["new"] for row in moves] == ["requested", "scheduled", "running", "completed"]
