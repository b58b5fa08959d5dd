"""The rights of callers: every route of the table is asked, so that a new one cannot forget to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import httpx
import pytest
from fastapi import FastAPI
from fastapi.routing import iter_route_contexts
from pydantic import ValidationError

from penstock.language.terms.ids import new_id
from penstock.operate.access import IMPLIED_BY, NARROW, SCOPES, WORK
from penstock.settings import Settings
from penstock_api.app import make_app
from penstock_api.auth.access import Guard
from penstock_api.backend import Backend
from penstock_api.routes.router import Router
from tests.penstock_api.conftest import Api

OPEN = {
    *("/api/v1/openapi.json", "/docs", "/docs/description.css", "/hooks/{name}", "/api/v1/session"),
    "/callbacks/{signed}",
    "/api/v1/session/code",
    *(
        "/sign-in",
        "/sign-in/code",
        "/sign-in/provider",
        "/sign-in/provider/back",
        "/sign-out",
        "/static/{version}/{name}",
        "/schemas/{name}",
    ),
}
"""What needs no token: the descriptions, what its caller signs, logging in and out, and what pages look like."""
V1 = "/api/v1"
ELSEWHERE = "elsewhere"
"""A tenant of which no other test makes anything."""


@dataclass(frozen=True, slots=True)
class Guarded:
    method: str
    path: str
    scope: str
    everywhere: bool

    def address(self, id: UUID) -> str:
        return self.path.format(id=id, ref="shop.count", name="nobody", pattern="x")


def routes(app: FastAPI) -> Iterator[tuple[str, str, Any]]:
    for found in iter_route_contexts(app.routes):
        route: Any = found
        for method in sorted(route.methods):
            yield method, route.path, found.original_route


def guarded(app: FastAPI) -> list[Guarded]:
    """The routes that are guarded; the others are those of OPEN."""
    found, unguarded = [], set()
    for method, path, route in routes(app):
        guards = [one for one in getattr(route, "dependencies", ()) if isinstance(one.dependency, Guard)]
        if guards:
            [guard] = guards
            [scope] = guard.scopes
            found.append(Guarded(method, path, scope, guard.dependency.everywhere))
        else:
            unguarded.add(path)
    assert unguarded == OPEN
    return found


async def ask(caller: httpx.AsyncClient, route: Guarded, id: UUID) -> httpx.Response:
    return await caller.request(route.method, route.address(id), json={})


async def test_each_route_refuses_a_caller_without_token_or_scope(api: Api) -> None:
    for scope in (*SCOPES, *NARROW, WORK):
        lacking_scopes = {scope, IMPLIED_BY.get(scope)}
        await api.token(f"all but {scope}", *(other for other in SCOPES if other not in lacking_scopes))
    await api.token("over", "administrator", seconds=0.000001)
    api.secrets["made up"] = "pst_" + "x" * 43
    table = guarded(api.app)
    assert len(table) > 60
    for route in table:
        for name in (None, "made up", "over"):
            async with api.caller(name) as stranger:
                refused = await ask(stranger, route, new_id())
            assert refused.status_code == 401, (route, name, refused.text)
            assert refused.headers["www-authenticate"].startswith("Bearer")
        async with api.caller(f"all but {route.scope}") as lacking:
            refused = await ask(lacking, route, new_id())
            unknown = {"no-such-parameter": "x"}
            also = await lacking.request(route.method, route.address(new_id()), json={}, params=unknown)
        assert also.status_code == 403, (route, also.text)
        assert refused.status_code == 403, (route, refused.text)
        assert route.scope in refused.json()["detail"]


async def test_a_caller_of_one_tenant_meets_nothing_of_another(api: Api, call: httpx.AsyncClient) -> None:
    await api.token("theirs", "administrator", tenants=(ELSEWHERE,))
    ours = await api.house.client.start("shop.count", {"words": "ours"})
    event = await api.house.client.publish("shop.order_placed", {"id": 1})
    async with api.caller("theirs") as theirs:
        for route in guarded(api.app):
            if route.everywhere:
                assert (await ask(theirs, route, ours)).status_code == 403, route
            elif "{id}" in route.path:
                answer = await ask(theirs, route, event if "/events/" in route.path else ours)
                assert answer.status_code == 404, (route, answer.text)
                assert "ours" not in answer.text
        for wanted in ({"action": "shop.count", "tenant": "public"}, {"action": "shop.count"}):
            refused = await theirs.post(f"{V1}/executions", json={**wanted, "parameters": {"words": "x"}})
            assert refused.status_code == 403
        said = {"trigger": "shop.order_placed", "payload": {"id": 2}}
        assert (await theirs.post(f"{V1}/events", json=said)).status_code == 403
        for listing in ("executions", "events", "inquiries", "stream"):
            seconds = {"seconds": 0.1} if listing == "stream" else {}
            refused = await theirs.get(f"{V1}/{listing}", params={"tenant": "public", **seconds})
            assert refused.status_code == 403, listing
        for listing in ("executions", "events"):
            assert (await theirs.get(f"{V1}/{listing}")).json()["items"] == []
        assert (await theirs.get(f"{V1}/inquiries", params={"answered": True})).json() == []
        mine = await theirs.post(
            f"{V1}/executions",
            json={"action": "shop.count", "parameters": {"words": "x"}, "tenant": ELSEWHERE},
        )
        listed = (await theirs.get(f"{V1}/executions")).json()["items"]
        assert [row["id"] for row in listed] == [mine.json()["id"]]
        assert (await theirs.get(f"{V1}/executions/{mine.json()['id']}")).status_code == 200


async def test_a_token_is_made_used_and_revoked(api: Api, call: httpx.AsyncClient) -> None:
    made = await call.post(f"{V1}/tokens", json={"name": "ci", "scopes": ["operator"], "seconds": 3600})
    api.secrets["ci"] = secret = made.json()["secret"]
    kept = await api.house.rows("select t::text from api_token t where name = 'ci'")
    assert secret not in kept[0][0]
    assert made.json()["token"]["scopes"] == ["read", "operate"]
    assert (await call.post(f"{V1}/tokens", json={"name": "ci", "scopes": ["read"]})).status_code == 409
    assert (await call.post(f"{V1}/tokens", json={"name": "x", "scopes": ["root"]})).status_code == 422
    assert secret not in (await call.get(f"{V1}/tokens")).text
    async with api.caller("ci") as ci:
        assert (await ci.get(f"{V1}/actions")).status_code == 200
        assert (await call.delete(f"{V1}/tokens/ci")).status_code == 204
        assert (await ci.get(f"{V1}/actions")).status_code == 401
    assert (await call.delete(f"{V1}/tokens/ci")).status_code == 404


async def test_a_change_is_kept_with_caller_and_reason(api: Api, call: httpx.AsyncClient) -> None:
    rule = f"{V1}/rules/shop.big_orders"
    assert (await call.post(f"{rule}/disable", headers={"x-reason": "a flood"})).status_code == 200
    assert (await call.post(f"{rule}/enable", content=b"{no JSON, and nobody reads it")).status_code == 200
    assert (await call.post(f"{V1}/rules/shop.nothing/enable")).status_code == 404
    started = await call.post(
        f"{V1}/executions", json={"action": "shop.charge", "parameters": {"order": 1}, "delay": 60}
    )
    await call.post(f"{V1}/executions/{started.json()['id']}/cancel", json={"reason": "no more"})
    page = (await call.get(f"{V1}/audit", params={"by": "token:all", "limit": 3})).json()
    assert [(one["operation"], one["target"].rpartition("/")[2], one["reason"]) for one in page["items"]] == [
        ("executions_cancel", "cancel", "no more"),
        ("definitions_enable", "enable", None),
        ("definitions_disable", "disable", "a flood"),
    ]
    more = (await call.get(f"{V1}/audit", params={"before": page["next"]})).json()
    assert all(one["id"] < int(page["next"]) for one in more["items"])


def test_a_route_without_a_guard_cannot_be_made() -> None:
    router = Router("tests")
    with pytest.raises(TypeError, match="who may call it"):

        @router.get("/forgotten")
        async def forgotten() -> None: ...


async def test_where_access_is_open_only_this_machine_and_no_other_page_gets_in(api: Api) -> None:
    backend = Backend.of(api.house.client)
    backend.settings = api.house.settings(api_access="open")
    transport = httpx.ASGITransport(make_app(backend))
    tried = {"payload": {"id": 1}}
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000") as caller:
        assert (await caller.get(f"{V1}/actions")).status_code == 200
        address = f"{V1}/triggers/shop.order_placed/try"
        assert (await caller.post(address, json=tried)).status_code == 200
        own = {"origin": "http://127.0.0.1:8000", "sec-fetch-site": "same-origin"}
        assert (await caller.post(address, json=tried, headers=own)).status_code == 200
        for foreign in (
            {"origin": "http://evil.example"},
            {"origin": "null"},
            {"sec-fetch-site": "cross-site"},
            {"sec-fetch-site": "same-site"},
            {"host": "evil.example:8000"},
        ):
            assert (await caller.post(address, json=tried, headers=foreign)).status_code == 403, foreign
        assert (await caller.get(f"{V1}/actions", headers={"host": "evil.example"})).status_code == 403
    with pytest.raises(ValidationError, match="not a loopback address"):
        Settings(api_access="open", api_host="0.0.0.0")
