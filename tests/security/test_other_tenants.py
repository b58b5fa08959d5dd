"""Pages tell a caller nothing of other tenants."""

from __future__ import annotations

from penstock.language.terms.ids import new_id
from tests.penstock_api.conftest import THEIRS, Api


async def test_search_does_not_tell_that_an_id_exists(api: Api) -> None:
    theirs = await api.house.client.start("shop.charge", {"order": 1}, tenant=THEIRS, delay=3600)
    ours = await api.house.client.start("shop.charge", {"order": 1}, tenant="ours", delay=3600)
    await api.token("searcher", "read", tenants=("ours",))
    async with api.caller("searcher") as caller:
        headers = {"accept": "text/html"}
        answers = [
            await caller.get(f"/executions?find={id}", headers=headers) for id in (ours, theirs, new_id())
        ]
    assert [answer.status_code for answer in answers] == [303, 200, 200]
    for id in (theirs, ours):
        await api.house.client.cancel(id)
