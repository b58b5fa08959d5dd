"""The commands `penstock views`, and `penstock executions --view`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import httpx
import pytest

from penstock.language.terms.local_access import LOCAL_ACCESS
from penstock.operate import saved_views
from penstock.operate.access import ANYBODY
from penstock_api.app import make_app
from penstock_api.backend import Backend
from tests.flows import shop
from tests.flows.installation import Installation
from tests.penstock.cli.commands import penstock


async def test_view_is_saved_listed_used_replaced_and_deleted(house: Installation) -> None:
    await house.apply(*shop.ALL)
    start = house.client.start
    acme = str(await start("shop.charge", {"order": 1}, labels={"customer": "acme"}, delay=600))
    bolt = str(await start("shop.charge", {"order": 2}, labels={"customer": "bolt"}, delay=600))
    words = ("--label", "customer=acme", "--since", "24h", "--description", "of acme")
    saved = await penstock("views", "save", "Of acme", *words)
    assert (saved.code, "penstock executions --view 'Of acme'" in saved.out) == (0, True), saved
    [view] = (await penstock("views", "list", "--json")).documents
    assert (view["owner"], view["shared"], view["description"]) == (LOCAL_ACCESS, False, "of acme")
    assert view["filters"] == {"label": ["customer=acme"], "since": "24h"}
    assert "label=customer=acme" in (await penstock("views", "list")).out
    assert "of acme" in (await penstock("views", "show", "Of acme")).out

    async def ids(*more: object) -> list[str]:
        return [row["id"] for row in (await penstock("executions", "--json", *more)).documents]

    assert await ids("--view", "Of acme") == await ids("--view", view["id"]) == [acme]
    assert await ids("--view", "Of acme", "--label", "customer=bolt") == [bolt]
    assert await ids("--view", "Of acme", "--status", "failed") == []
    taken = await penstock("views", "save", "Of acme", "--status", "failed")
    assert (taken.code, "--replace" in taken.err) == (1, True)
    replaced = await penstock(
        "views", "save", "Of acme", "--status", "failed", "--shared", "--replace", "--json"
    )
    assert replaced.document["filters"] == {"status": ["failed"]}
    assert (replaced.document["id"], replaced.document["version"]) == (view["id"], 2)
    assert (replaced.document["description"], replaced.document["shared"]) == (None, True)
    assert (await penstock("views", "delete", "Of acme")).code == 0
    gone = await penstock("executions", "--view", "Of acme")
    assert (gone.code, "no saved view 'Of acme'" in gone.err) == (1, True)
    notes = await house.rows("select operation, target from audit where outcome = 'done' order by at")
    assert [(note["operation"], note["target"]) for note in notes] == [
        ("penstock views save", "Of acme"),
        ("penstock views save", "Of acme"),
        ("penstock views delete", "Of acme"),
    ]


async def test_pages_without_sign_in_and_commands_share_their_views(
    make_house: Callable[..., Installation], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with make_house(api_access="open") as house:
        backend = Backend.of(house.client)
        transport = httpx.ASGITransport(make_app(backend))
        database_url = house.settings().database_url
        assert database_url is not None
        monkeypatch.setenv("PENSTOCK_DATABASE_URL", database_url.get_secret_value())
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as page:
            assert (await penstock("views", "save", "From a command", "--status", "failed")).code == 0
            saved = {"name": "From a page", "filters": {"status": ["failed"]}}
            assert (await page.post("/api/v1/views", json=saved)).is_success
            names = ["From a command", "From a page"]
            listed = (await penstock("views", "list", "--json")).documents
            assert [view["name"] for view in listed] == names
            assert {view["owner"] for view in listed} == {LOCAL_ACCESS}
            assert "From a command" in (await page.get("/executions")).text
            assert (await penstock("executions", "--view", "From a page")).code == 0
            assert (await penstock("views", "delete", "From a page")).code == 0
        await backend.changes.close()


async def test_replace_leaves_a_shared_view_of_another_owner(house: Installation) -> None:
    other = replace(ANYBODY, name="bob")
    theirs = await saved_views.create(house.session, other, "Failed", {"status": ["failed"]}, shared=True)
    assert (await penstock("views", "save", "Failed", "--key", "mine", "--replace")).code == 0
    [same] = [view for view in await house.client.views.all(by="bob") if view.owner == "bob"]
    assert same == theirs
    assert (await penstock("views", "show", "Failed", "--json")).document["filters"] == {"key": "mine"}


async def test_wrong_view_is_refused(house: Installation) -> None:
    for words, message in (
        (("--status", "sleeping"), "unknown status 'sleeping'"),
        (("--since", "yesterday"), "--since: 'yesterday' is neither an instant nor an age"),
        (("--label", "customer"), "--label is not key=value"),
        ((), "a view needs at least one filter"),
        (("--status", "failed", "--by", "user:nobody"), "user:nobody was removed"),
    ):
        refused = await penstock("views", "save", "Wrong", *words)
        assert (refused.code, message in refused.err) == (1, True), refused
    assert await house.client.views.all(by=LOCAL_ACCESS) == []


async def test_view_that_is_no_longer_valid_has_a_hint(house: Installation) -> None:
    assert (await penstock("views", "save", "Old", "--status", "failed")).code == 0
    await house.rows('update saved_view set filters = \'{"status": ["parked"]}\'')
    refused = await penstock("executions", "--view", "Old")
    assert (refused.code, "the view 'Old' is no longer valid: unknown status 'parked'" in refused.err) == (
        1,
        True,
    )
    assert "can change its filters or delete it" in refused.err
    assert (await penstock("views", "list")).code == 0
