"""Workers that call a gateway, and what they must not reach: work of other tenants, routes and packs, and attempts, sessions and
secrets of other workers."""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest
from fastapi.routing import iter_route_contexts

from penstock.operate import secrets
from penstock_api.app import make_app
from penstock_api.backend import Backend
from tests.penstock_api.conftest import Api
from tests.penstock_api.routes.test_worker_protocol import V1, Worker, key, remote, status, working

VERBS = ("take", "beat", "log", "progress", "finish", "bye")


def messages(attempt: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return a message of each verb about an attempt."""
    return {
        "take": {"request": str(uuid4()), "slots": 1},
        "beat": {"holding": [key(attempt)]},
        "log": {"lines": [{**key(attempt), "seq": 1, "line": "theirs"}]},
        "progress": {"reports": [{**key(attempt), "seq": 1, "done": 1}]},
        "finish": {"ends": [{**key(attempt), "outcome": "completed", "result": "theirs"}]},
        "bye": {},
    }


async def tokens(api: Api) -> None:
    """Create a token for each of two tenants."""
    for tenant in ("acme", "globex"):
        if tenant not in api.secrets:
            await api.token(tenant, "work", tenants=(tenant,))


async def test_worker_gets_work_of_its_tenants_alone(api: Api) -> None:
    await tokens(api)
    ref = await remote(api)
    async with working(api, ref, "acme") as acme, working(api, ref, "globex") as globex:
        theirs = await api.house.client.start(ref, {"n": 1}, tenant="globex")
        own = await api.house.client.start(ref, {"n": 2}, tenant="acme")
        [attempt] = await acme.take(slots=10)
        assert (attempt["execution"], attempt["tenant"]) == (str(own), "acme")
        assert await acme.take(slots=10, wait=1) == []
        [other] = await globex.take(slots=10)
        assert (other["execution"], other["tenant"]) == (str(theirs), "globex")
        for worker, held in ((acme, attempt), (globex, other)):
            assert (await worker.finish(held, result=1)).status_code == 200
    await api.house.client.result(own, timeout=20)
    await api.house.client.result(theirs, timeout=20)


@pytest.mark.parametrize("verb", VERBS)
async def test_session_is_of_no_use_with_another_token(api: Api, verb: str) -> None:
    await tokens(api)
    ref = await remote(api)
    async with working(api, ref, "acme") as acme:
        id = await api.house.client.start(ref, tenant="acme")
        attempt = await acme.one()
        async with api.caller("globex") as thief:
            answer = await thief.post(f"{V1}/work/{verb}", json=messages(attempt)[verb], headers=acme.headers)
        assert (answer.status_code, answer.json()["type"]) == (404, "urn:penstock:error:UnknownSession")
        assert await status(api, id) == ("running", 1)
        assert (await acme.finish(attempt, result="own")).status_code == 200
        assert await api.house.client.result(id, timeout=20) == "own"
        assert not await api.house.rows("select from log_line where execution_id = $1", id)


@pytest.mark.parametrize("verb", ["log", "progress", "finish", "beat"])
async def test_attempt_of_another_worker_is_out_of_reach(api: Api, verb: str) -> None:
    await tokens(api)
    ref = await remote(api)
    async with working(api, ref, "acme") as acme, working(api, ref, "globex") as thief:
        id = await api.house.client.start(ref, tenant="acme")
        attempt = await acme.one()
        answer = await thief.post(verb, messages(attempt)[verb])
        if verb == "beat":
            assert answer.json()["lost"] == [str(id)]
        else:
            assert (answer.status_code, answer.json()["type"]) == (409, "urn:penstock:error:ClaimLost")
        assert await status(api, id) == ("running", 1)
        assert (await acme.finish(attempt, result="own")).status_code == 200
        assert await api.house.client.result(id, timeout=20) == "own"


@pytest.mark.parametrize("verb", ["log", "progress", "finish", "beat"])
async def test_message_about_two_attempts_reaches_the_own_one(api: Api, verb: str) -> None:
    await tokens(api)
    ref = await remote(api)
    async with working(api, ref, "acme") as acme, working(api, ref, "globex") as thief:
        id = await api.house.client.start(ref, tenant="acme")
        attempt = await acme.one()
        own = await api.house.client.start(ref, tenant="globex")
        held = await thief.one()
        both: dict[str, Any] = {}
        for message in (messages(held)[verb], messages(attempt)[verb]):
            for name, items in message.items():
                both.setdefault(name, []).extend(items)
        assert (await thief.ok(verb, both))["lost"] == [str(id)]
        assert await status(api, id) == ("running", 1)
        assert not await api.house.rows("select from log_line where execution_id = $1", id)
        for worker, other in ((acme, attempt), (thief, held)):
            await worker.finish(other, result="own")
        assert await api.house.client.result(id, timeout=20) == "own"
        expected = "theirs" if verb == "finish" else "own"
        assert await api.house.client.result(own, timeout=20) == expected


async def test_hello_tells_nothing_of_other_packs(api: Api) -> None:
    """The differences of schemas show parts of a definition, so a token must get none of another pack."""
    await api.token("other_pack", "work", packs=("site",))
    schema = {"type": "object", "properties": {"account_number": {"type": "integer"}}}
    ref = await remote(api, parameters=schema)
    unknown = f"remote.a{uuid4().hex[:12]}"
    answers = []
    async with api.caller("other_pack") as caller:
        for name in (ref, unknown):
            action = {"ref": name, "parameters": {"type": "object", "required": ["a"]}}
            message = {"name": "x", "language": "y", "sdk": "z", "slots": 1, "routes": ["default"]}
            labels = {"tenant": "globex"}
            answer = await caller.post(
                f"{V1}/work/hello", json={**message, "labels": labels, "actions": [action]}
            )
            assert answer.status_code == 403, answer.text
            answers.append(answer.json()["detail"])
    assert answers[0] == answers[1], "the answer tells whether the action exists"
    assert "account_number" not in answers[0]


async def test_label_of_another_tenant_brings_none_of_its_work(api: Api) -> None:
    await tokens(api)
    ref = await remote(api)
    async with working(api, ref, "acme", labels={"tenant": "globex"}, name="globex") as acme:
        theirs = await api.house.client.start(ref, tenant="globex")
        assert await acme.take(slots=10, wait=1) == []
        async with working(api, ref, "globex") as globex:
            [attempt] = await globex.take(slots=10)
            assert attempt["execution"] == str(theirs)
            await globex.finish(attempt, result=1)


async def test_token_is_for_its_routes_and_packs(api: Api) -> None:
    ref = await remote(api)
    await api.token("narrow", "work", routes=("meters",), packs=("site",))
    hello = {"name": "x", "language": "y", "sdk": "z", "slots": 1}
    async with api.caller("narrow") as caller:
        for routes, word in ((["default"], "route"), (["meters"], "pack")):
            message = {**hello, "routes": routes, "actions": [{"ref": ref}]}
            answer = await caller.post(f"{V1}/work/hello", json=message)
            assert answer.status_code == 403, answer.text
            assert f"may not use the {word}" in answer.json()["detail"]


async def test_revoked_token_ends_its_sessions(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock_api.backend.KNOWN_FOR", 0.0)
    ref = await remote(api)
    await api.token("revoked", "work")
    async with working(api, ref, "revoked") as worker:
        assert (await worker.post("beat", {})).status_code == 200
        await api.house.rows("delete from api_token where name = 'revoked' returning 1")
        assert (await worker.post("beat", {})).status_code == 401


async def test_worker_token_reads_nothing_else(api: Api) -> None:
    if "worker" not in api.secrets:
        await api.token("worker", "work")
    async with api.caller("worker") as caller:
        for path in ("/executions", "/actions", "/events", "/workers", "/secrets", "/logs", "/stream"):
            assert (await caller.get(f"{V1}{path}")).status_code in (403, 404), path
        started = await caller.post(f"{V1}/executions", json={"action": "shop.count", "parameters": {}})
        assert started.status_code == 403


async def test_secret_reaches_its_attempt_and_no_output(api: Api) -> None:
    await secrets.put(api.house.session, "public", "meter_pin", "SECRET-77aa", by="test")
    ref = await remote(api)
    async with working(api, ref) as worker:
        id = await api.house.client.start(ref, secrets={"pin": "meter_pin"})
        attempt = await worker.one()
        assert attempt["parameters"]["pin"] == "SECRET-77aa"
        line = {**key(attempt), "seq": 1, "line": "pin SECRET-77aa"}
        assert (await worker.post("log", {"lines": [line]})).status_code == 200
        assert (await worker.finish(attempt, result={"pin": "SECRET-77aa"})).status_code == 200
        assert "SECRET-77aa" not in str(await api.house.client.result(id, timeout=20))
        [row] = await api.house.rows("select line from log_line where execution_id = $1", id)
        assert "SECRET-77aa" not in row["line"]


async def test_gateway_alone_has_the_routes_of_workers_alone(api: Api) -> None:
    backend = Backend.of(api.house.client)
    app = make_app(backend, only_work=True)
    paths = {context.path for context in iter_route_contexts(app.routes) if context.path}
    verbs = {path.removeprefix(f"{V1}/work/") for path in paths if path.startswith(f"{V1}/work/")}
    assert verbs == {"hello", *VERBS}, "a verb has no test of other tenants"
    assert {path for path in paths if "work" not in path} == {
        "/docs",
        "/docs/description.css",
        "/schemas/{name}",
        "/api/v1/openapi.json",
    }
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://penstock") as caller:
        assert (await caller.get(f"{V1}/executions")).status_code == 404
    await backend.close()


async def test_session_secret_is_stored_as_a_digest(api: Api) -> None:
    ref = await remote(api)
    async with working(api, ref) as worker:
        assert isinstance(worker, Worker)
        id = UUID(worker.welcome["worker"])
        [row] = await api.house.rows("select p::text as text from process p where id = $1", id)
        assert worker.welcome["session"] not in row["text"]
