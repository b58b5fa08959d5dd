"""Paused workflows and the executions that contain them are found by a filter, from every client."""

from __future__ import annotations

from uuid import UUID

import httpx
import pytest

from penstock import HttpClient, action, workflow
from penstock.errors import InvalidInput
from penstock.operate.access import create_token
from penstock.store.executions.execution_list import ExecutionFilter
from penstock_api.app import make_app
from penstock_api.backend import Backend
from tests.flows.installation import Installation
from tests.penstock.cli.commands import penstock


@action(pack="halt", route="nowhere")
async def never() -> None: ...


@workflow(pack="halt")
def inner():  # type: ignore[no-untyped-def]
    never()


@workflow(pack="halt")
def outer():  # type: ignore[no-untyped-def]
    inner()


INNER = """
select e.id from execution e join execution t on t.parent = e.id where e.parent = '{}' and t.status = 'scheduled'
"""
PAUSED = "select from paused_workflow where execution_id = '{}'"


@pytest.fixture
def transport() -> str:
    return "postgres"


async def test_paused_workflows_are_listed_with_the_runs_around_them(
    house: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    await house.start(never, inner, outer)
    client = house.client
    running, around, paused = [await client.start("halt.outer") for _ in range(3)]
    for id in (running, around, paused):
        await house.until(INNER.format(id))
    [[inside]] = await house.rows(INNER.format(around))
    [[below]] = await house.rows(INNER.format(paused))
    for id in (inside, paused):
        await client.command(UUID(int=id.int), "pause", by="ada")
    for id in (inside, paused, below):  # a pause reaches the workflows inside a little later
        await house.until(PAUSED.format(id))

    only = ExecutionFilter(paused=True)
    rows = await client.executions(only)
    assert {row.id: row.paused for row in rows} == {around: False, paused: True}
    tasks = await client.executions(ExecutionFilter(paused=True, children=True))
    assert len(tasks) == 4  # the two, and the workflows inside them
    assert UUID(int=inside.int) in {row.id for row in tasks if row.paused}
    assert await client.executions(ExecutionFilter(paused=True, tenant="another")) == []
    assert await client.executions(ExecutionFilter(paused=True, waits_for_answer=True)) == []
    assert await client.executions(ExecutionFilter(paused=True, status=["completed"])) == []

    database_url = house.settings().database_url
    assert database_url is not None
    monkeypatch.setenv("PENSTOCK_DATABASE_URL", database_url.get_secret_value())
    listed = {document["id"] for document in (await penstock("executions", "--paused", "--json")).documents}
    assert listed == {str(around), str(paused)}
    refused = await penstock("executions", "--status", "paused")
    assert refused.code != 0
    assert "--paused" in refused.err

    _, secret = await create_token(house.session, "reads", ["read"], tenants=(), by="test")
    backend = Backend.of(house.client)
    transport = httpx.ASGITransport(make_app(backend))
    async with HttpClient("http://penstock", token=secret, transport=transport) as remote:
        assert {row.id for row in await remote.executions(only)} == {around, paused}
        with pytest.raises(InvalidInput, match="unknown status") as error:
            await remote.executions(ExecutionFilter(status=["paused"]))
        assert "paused=true" in str(error.value.hint)
    headers = {"authorization": f"Bearer {secret}"}
    async with httpx.AsyncClient(transport=transport, base_url="http://penstock", headers=headers) as caller:
        page = (await caller.get("/executions", params={"paused": "true"})).text
    await backend.changes.close()
    assert f'href="/executions/{paused}"' in page
    assert f'href="/executions/{running}"' not in page
    assert 'name="paused" value="true" checked' in page
