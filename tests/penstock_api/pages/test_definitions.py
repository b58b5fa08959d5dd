"""The page of an action says what keeps its executions from starting."""

from __future__ import annotations

import re

import httpx
import pytest

from penstock import action
from tests.penstock_api.conftest import Api

V1 = "/api/v1"
HTML = {"accept": "text/html"}


@action(pack="stopped")
async def work() -> None: ...


@action(pack="stopped_too")
async def other() -> None: ...


async def text_of(call: httpx.AsyncClient, ref: str) -> str:
    page = await call.get(f"/actions/{ref}", headers=HTML)
    assert page.status_code == 200, page.text
    return re.sub(r"(<[^>]*>|\s)+", " ", page.text)


@pytest.mark.parametrize(("kind", "name"), [("action", "stopped.work"), ("pack", "stopped")])
async def test_page_of_held_action_names_the_hold(
    api: Api, call: httpx.AsyncClient, kind: str, name: str
) -> None:
    await api.house.apply(work, other)
    assert "on hold" not in await text_of(call, "stopped.work")
    hold = {"kind": kind, "name": name, "reason": "an audit"}
    assert (await call.post(f"{V1}/holds", json=hold)).status_code == 204
    text = await text_of(call, "stopped.work")
    assert f"The {kind} {name} is on hold. It was put on hold by token:all " in text
    assert (
        f": an audit. Its executions do not start until they are released: penstock release {kind} {name} . All holds"
        in text
    )
    assert "on hold" not in await text_of(call, "stopped_too.other")
    assert (await call.post(f"{V1}/holds/release", json={"kind": kind, "name": name})).status_code == 204
    assert "on hold" not in await text_of(call, "stopped.work")
