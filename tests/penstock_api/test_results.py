"""A request that waits for a result over HTTP is answered when it is there. It holds up no other request, and no process
that is to stop."""

from __future__ import annotations

import asyncio

import httpx
import pytest

from penstock.language.terms.ids import new_id
from penstock_api.app import make_app
from penstock_api.backend import Backend
from tests.penstock_api.conftest import THEIRS, Api

WAITERS = 30
"""More than there are sessions for requests."""


async def later(call: httpx.AsyncClient, **more: object) -> str:
    """An execution that does not end by itself."""
    body = {"action": "shop.count", "parameters": {"words": "a"}, "delay": 3600, **more}
    return str((await call.post("/api/v1/executions", json=body)).json()["id"])


async def test_the_result_of_an_ended_execution_is_answered_at_once(call: httpx.AsyncClient) -> None:
    started = await call.post(
        "/api/v1/executions", json={"action": "shop.count", "parameters": {"words": "a b"}}
    )
    found = await call.get(f"{started.headers['location']}/result", params={"wait": 20})
    assert found.status_code == 200
    assert found.json() == {
        "id": started.json()["id"],
        "status": "completed",
        "finished": True,
        "result": 2,
        "error": None,
        "failure": None,
    }
    assert (await call.get(f"{started.headers['location']}/result")).json() == found.json()


async def test_the_result_of_an_open_execution_is_answered_with_202(call: httpx.AsyncClient) -> None:
    id = await later(call)
    for wait in (0, 0.1):
        found = await call.get(f"/api/v1/executions/{id}/result", params={"wait": wait})
        assert (found.status_code, found.json()["finished"]) == (202, False)
    assert (await call.get(f"/api/v1/executions/{id}/result", params={"wait": 61})).status_code == 422
    assert (await call.get(f"/api/v1/executions/{new_id()}/result", params={"wait": 5})).status_code == 404


async def test_many_waiting_requests_hold_up_no_other(call: httpx.AsyncClient, api: Api) -> None:
    await api.token("ours", "operate", "read", tenants=("acme",))
    async with api.caller("ours") as limited:
        id = await later(limited, tenant="acme")
        waiting = [
            asyncio.create_task(caller.get(f"/api/v1/executions/{id}/result", params={"wait": 30}))
            for caller in (call, limited)
            for _ in range(WAITERS)
        ]
        for _ in range(20):
            assert (await call.get("/api/v1/workers")).status_code == 200
        assert not any(task.done() for task in waiting)
        await call.post(f"/api/v1/executions/{id}/cancel", json={"reason": "enough"})
        found = [(answer.status_code, answer.json()["status"]) for answer in await asyncio.gather(*waiting)]
    assert found == [(200, "cancelled")] * 2 * WAITERS


async def test_a_request_for_another_tenant_does_not_wait(call: httpx.AsyncClient, api: Api) -> None:
    await api.token("strangers", "read", tenants=(THEIRS,))
    id = await later(call)
    async with api.caller("strangers") as stranger:
        answer = await stranger.get(f"/api/v1/executions/{id}/result", params={"wait": 30})
    assert answer.status_code == 404


async def test_a_stopping_process_answers_its_waiting_requests(call: httpx.AsyncClient, api: Api) -> None:
    backend = Backend.of(api.house.client)
    transport = httpx.ASGITransport(make_app(backend))
    headers = {"authorization": f"Bearer {api.secrets['all']}"}
    async with httpx.AsyncClient(transport=transport, base_url="http://penstock", headers=headers) as other:
        id = await later(call)
        waiting = asyncio.create_task(other.get(f"/api/v1/executions/{id}/result", params={"wait": 60}))
        await asyncio.sleep(0.2)
        await backend.changes.close()
        async with asyncio.timeout(20):
            assert (await waiting).status_code == 202
    await backend.close()


@pytest.mark.parametrize("wait", ["-1", "nan", "inf", "soon"])
async def test_how_long_is_a_number(call: httpx.AsyncClient, wait: str) -> None:
    answer = await call.get(f"/api/v1/executions/{new_id()}/result", params={"wait": wait})
    assert answer.status_code == 422
