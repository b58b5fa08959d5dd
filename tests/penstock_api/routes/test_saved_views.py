"""Saved views over HTTP and with every client: their owners, their readers, their bounds, and changes at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import pytest
from httpx import ASGITransport

from penstock.client.http_client import HttpClient
from penstock.client.saved_views import Views
from penstock.errors import Conflict, InvalidInput, NotAllowed, NotFound
from penstock.operate import access, people, saved_views
from penstock.operate.access import ANYBODY, Caller
from penstock.operate.list_filters import as_texts
from penstock.store.access import saved_views as rows
from penstock.store.session.database import Session
from tests.penstock_api.conftest import THEIRS, Api

V1 = "/api/v1"
FAILED = {"status": ["failed"], "since": "24h"}


@pytest.fixture(autouse=True)
async def callers(api: Api) -> AsyncIterator[None]:
    """Callers with several rights, and no view before and after each test."""
    for name, role, tenants in (
        ("views-all", "operator", ()),
        ("views-viewer", "viewer", ()),
        ("views-acme", "operator", ("acme",)),
        ("views-acme-two", "operator", ("acme",)),
        ("views-both", "operator", ("acme", "bolt")),
        ("views-bolt", "viewer", ("bolt",)),
    ):
        if name not in api.secrets:
            await api.token(name, role, tenants=tenants)
    await api.house.rows("delete from saved_view")
    yield
    await api.house.rows("delete from saved_view")


async def saved(api: Api, who: str, name: str, filters: Any = FAILED, **more: Any) -> dict[str, Any]:
    async with api.caller(who) as caller:
        answer = await caller.post(f"{V1}/views", json={"name": name, "filters": filters, **more})
    assert answer.status_code == 201, answer.text
    view: dict[str, Any] = answer.json()
    assert answer.headers["location"] == f"{V1}/views/{view['id']}"
    return view


async def names(api: Api, who: str) -> list[str]:
    async with api.caller(who) as caller:
        return [view["name"] for view in (await caller.get(f"{V1}/views")).json()]


async def test_view_is_saved_shown_changed_and_deleted(api: Api) -> None:
    view = await saved(api, "views-all", "Failed today", description="for the morning")
    assert view["filters"] == {"status": ["failed"], "since": "24h"}
    assert (view["owner"], view["shared"], view["version"]) == ("token:views-all", False, 1)
    async with api.caller("views-all") as caller:
        path = f"{V1}/views/{view['id']}"
        assert (await caller.get(path)).json() == view
        assert (await caller.get(f"{V1}/views/named?name=Failed today")).json() == view
        listed = await caller.get(f"{V1}/executions", params=as_texts(view["filters"]))
        assert listed.status_code == 200, listed.text
        changed = await caller.patch(path, json={"version": 1, "name": "Broken", "filters": {"key": "k"}})
        assert changed.status_code == 200, changed.text
        after = changed.json()
        assert (after["name"], after["filters"], after["version"]) == ("Broken", {"key": "k"}, 2)
        assert after["description"] == "for the morning"
        removed = await caller.patch(path, json={"version": 2, "description": ""})
        assert removed.json()["description"] is None
        assert (await caller.delete(path)).status_code == 204
        for request in (caller.get(path), caller.delete(path), caller.patch(path, json={"version": 3})):
            assert (await request).status_code == 404


async def test_private_view_is_only_for_its_owner(api: Api) -> None:
    view = await saved(api, "views-all", "Mine")
    for who in ("views-viewer", "views-acme", "all"):
        assert "Mine" not in await names(api, who)
        async with api.caller(who) as caller:
            path = f"{V1}/views/{view['id']}"
            assert (await caller.get(path)).status_code == 404
            assert (await caller.patch(path, json={"version": 1, "name": "x"})).status_code == 404
            assert (await caller.delete(path)).status_code == 404
            assert (await caller.get(f"{V1}/views/named?name={view['id']}")).status_code == 404


@pytest.mark.parametrize(
    ("author", "filters", "readers"),
    [
        ("views-all", FAILED, {"views-all", "views-viewer"}),
        (
            "views-all",
            {"tenant": "acme"},
            {"views-all", "views-viewer", "views-acme", "views-acme-two", "views-both"},
        ),
        ("views-acme", FAILED, {"views-all", "views-viewer", "views-acme", "views-acme-two", "views-both"}),
        ("views-both", FAILED, {"views-all", "views-viewer", "views-both"}),
        ("views-both", {"tenant": "bolt"}, {"views-all", "views-viewer", "views-both", "views-bolt"}),
    ],
)
async def test_shared_view_is_seen_with_all_of_its_tenants(
    api: Api, author: str, filters: dict[str, Any], readers: set[str]
) -> None:
    view = await saved(api, author, "Ours", filters, shared=True)
    for who in ("views-all", "views-viewer", "views-acme", "views-acme-two", "views-both", "views-bolt"):
        assert (await names(api, who) == ["Ours"]) == (who in readers), who
        async with api.caller(who) as caller:
            shown = await caller.get(f"{V1}/views/{view['id']}")
            assert shown.status_code == (200 if who in readers else 404)
            page = await caller.get(f"/executions?view={view['id']}", headers={"accept": "text/html"})
            assert page.status_code == (200 if who in readers else 404)


async def test_view_widens_no_rights(api: Api) -> None:
    """A reader with fewer tenants than the author lists only executions of its own tenants."""
    for tenant in ("acme", "bolt"):
        await api.house.client.start("shop.count", {"words": "a"}, tenant=tenant, labels={"view": "rights"})
    view = await saved(api, "views-acme", "Ours", {"label": ["view=rights"]}, shared=True)
    for who, number in (("views-acme", 1), ("views-acme-two", 1), ("views-both", 2)):
        async with api.caller(who) as caller:
            listed = (await caller.get(f"{V1}/executions", params={"label": "view=rights"})).json()["items"]
            assert len(listed) == number
            page = await caller.get(f"/executions?view={view['id']}", headers={"accept": "text/html"})
            assert page.text.count("<tr data-row>") == number
    async with api.caller("views-acme") as caller:
        body = {"name": "Theirs", "filters": {"tenant": "bolt"}}
        assert (await caller.post(f"{V1}/views", json=body)).status_code == 403
        changed = await caller.patch(
            f"{V1}/views/{view['id']}", json={"version": 1, "filters": {"tenant": "bolt"}}
        )
        assert changed.status_code == 403


async def test_view_of_a_lost_tenant_lists_nothing_of_it(api: Api) -> None:
    await people.create(api.house.session, "sam", "a long password of sam", ["operator"], ["acme"], by="test")
    sam = Caller("user:sam", frozenset(access.ROLES["operator"]), frozenset({"acme"}))
    view = await saved_views.create(api.house.session, sam, "Acme", {"tenant": "acme"})
    await api.token("views-sam-now", "operator", tenants=("bolt",))
    await api.house.rows("update saved_view set owner = 'token:views-sam-now' where id = $1", view.id)
    async with api.caller("views-sam-now") as caller:
        page = await caller.get(f"/executions?view={view.id}", headers={"accept": "text/html"})
        assert (page.status_code, "may not use tenant &#39;acme&#39;" in page.text) == (200, True)
        assert "<tr data-row>" not in page.text
    await people.delete(api.house.session, "sam")


async def test_sharing_needs_the_right_to_operate(api: Api) -> None:
    async with api.caller("views-viewer") as caller:
        body = {"name": "Ours", "filters": FAILED, "shared": True}
        refused = await caller.post(f"{V1}/views", json=body)
        assert (refused.status_code, "may not share" in refused.text) == (403, True)
    view = await saved(api, "views-viewer", "Mine")
    async with api.caller("views-viewer") as caller:
        path = f"{V1}/views/{view['id']}"
        assert (await caller.patch(path, json={"version": 1, "shared": True})).status_code == 403
        assert (await caller.patch(path, json={"version": 1, "name": "Still mine"})).status_code == 200


async def test_person_shares_only_where_it_operates(api: Api) -> None:
    """A viewer of all tenants, and operator of one, shares views of that one."""
    mixed = Caller.of(
        "local",
        (
            access.Grant(frozenset(access.ROLES["viewer"])),
            access.Grant(frozenset(access.ROLES["operator"]), frozenset({THEIRS})),
        ),
    ).within(access.READ)
    session = api.house.session
    with pytest.raises(NotAllowed):
        await saved_views.create(session, mixed, "All", FAILED, shared=True)
    view = await saved_views.create(session, mixed, "Theirs", {**FAILED, "tenant": THEIRS}, shared=True)
    assert view.tenants == [THEIRS]
    with pytest.raises(NotAllowed):
        await saved_views.update(session, mixed, view.id, 1, filters=FAILED)


async def test_shared_view_is_changed_by_its_owner_and_administrators(api: Api) -> None:
    view = await saved(api, "views-acme", "Ours", shared=True)
    path = f"{V1}/views/{view['id']}"
    for who in ("views-acme-two", "views-all"):
        async with api.caller(who) as caller:
            assert (await caller.patch(path, json={"version": 1, "name": "x"})).status_code == 403
            assert (await caller.delete(path)).status_code == 403
    async with api.caller("all") as administrator:
        renamed = (await administrator.patch(path, json={"version": 1, "name": "Of acme"})).json()
        assert (renamed["owner"], renamed["tenants"]) == ("token:views-acme", ["acme"])
        assert renamed["changed_by"] == "token:all"
    assert await names(api, "views-acme-two") == ["Of acme"]
    async with api.caller("all") as administrator:
        assert (await administrator.delete(path)).status_code == 204


@pytest.mark.parametrize(
    "body",
    [
        {"filters": {"statsu": ["failed"]}},
        {"filters": {"status": ["sleeping"]}},
        {"filters": {"status": []}},
        {"filters": {"since": "yesterday"}},
        {"filters": {"event": "7"}},
        {"filters": {"label": ["customer"]}},
        {"filters": {"label": ["customer=a,b=c"]}},
        {"filters": {"params": {"order": 7}}},
        {"filters": {"action": "x" * 9000}},
        {"filters": {"children": False}},
        {"filters": {}},
        {"name": ""},
        {"name": " padded"},
        {"name": "x" * 101},
        {"name": "two\nlines"},
        {"name": "\u202eturned"},
        {"name": str(UUID(int=7))},
        {"description": "x" * 501},
        {"shared": "yes"},
        {"owner": "user:ada"},
    ],
    ids=str,
)
async def test_wrong_view_is_refused_at_both_doors(api: Api, body: dict[str, Any]) -> None:
    view = await saved(api, "all", "Right")
    async with api.caller("all") as caller:
        made = await caller.post(f"{V1}/views", json={"name": "Wrong", "filters": FAILED, **body})
        changed = await caller.patch(f"{V1}/views/{view['id']}", json={"version": 1, **body})
        assert (made.status_code, changed.status_code) == (422, 422), (made.text, changed.text)
        assert made.json()["hint"]
        assert (await caller.get(f"{V1}/views")).json() == [view]


async def test_owner_has_at_most_a_number_of_views(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(saved_views, "MAX_VIEWS", 2)
    for name in ("one", "two"):
        await saved(api, "all", name)
    async with api.caller("all") as caller:
        full = await caller.post(f"{V1}/views", json={"name": "three", "filters": FAILED})
        assert (full.status_code, "at most 2" in full.text) == (409, True)
        again = await caller.post(f"{V1}/views", json={"name": "two", "filters": FAILED, "replace": True})
        assert again.status_code == 201, again.text
    await saved(api, "views-all", "three")


async def own_session(api: Api) -> Session:
    """Return a session with connections of its own: a session runs one transaction at a time."""
    return (await api.house.parts()).database.session()


async def at_once(api: Api, *works: Any) -> list[Any]:
    """Run each work with a connection of its own, all after the lock that the test holds is released."""
    waiting = "select 1 from pg_stat_activity where wait_event = 'advisory' and datname = current_database()"
    async with (await own_session(api)).transaction() as tx:
        await tx.fetch("select pg_advisory_xact_lock(hashtextextended('penstock.saved_views:ada', 0))")
        tasks = [asyncio.create_task(work) for work in works]
        await api.house.until(f"{waiting} having count(*) >= {len(works)}")
    return await asyncio.gather(*tasks, return_exceptions=True)


async def test_of_two_saves_of_one_name_at_once_one_is_stored(api: Api) -> None:
    views = [Views(await own_session(api)) for _ in range(2)]
    answers = await at_once(
        api,
        *(client.create("Twice", {"key": str(number)}, by="ada") for number, client in enumerate(views)),
    )
    assert sorted(type(answer).__name__ for answer in answers) == ["Conflict", "SavedView"]
    assert len(await api.house.rows("select from saved_view where owner = 'ada'")) == 1


async def test_of_two_changes_of_one_version_at_once_one_is_stored(api: Api) -> None:
    view = await Views(api.house.session).create("Once", FAILED, by="ada")
    first, second = [Views(await own_session(api)) for _ in range(2)]
    answers = await at_once(
        api,
        first.update(view.id, 1, by="ada", name="first"),
        second.update(view.id, 1, by="ada", name="second"),
    )
    assert sorted(type(answer).__name__ for answer in answers) == ["Conflict", "SavedView"]
    [row] = await api.house.rows("select name, version from saved_view where owner = 'ada'")
    assert (row["name"] in ("first", "second"), row["version"]) == (True, 2)


async def test_bound_holds_for_saves_at_once(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(saved_views, "MAX_VIEWS", 1)
    views = [Views(await own_session(api)) for _ in range(2)]
    answers = await at_once(
        api, *(client.create(f"View {number}", FAILED, by="ada") for number, client in enumerate(views))
    )
    assert sorted(type(answer).__name__ for answer in answers) == ["Conflict", "SavedView"]


async def test_view_that_is_deleted_during_a_change_is_not_found(api: Api) -> None:
    view = await Views(api.house.session).create("Short", FAILED, by="ada")
    first, second = [Views(await own_session(api)) for _ in range(2)]
    deleted, changed = await at_once(
        api, first.delete(view.id, by="ada"), second.update(view.id, 1, by="ada", name="Long")
    )
    assert deleted is None or isinstance(deleted, NotFound)
    assert isinstance(changed, Conflict | NotFound) or changed.version == 2
    assert await api.house.rows("select from saved_view where owner = 'ada'") == []


@pytest.mark.parametrize("kind", ["user", "token"])
async def test_removed_owner_leaves_only_its_shared_views(api: Api, kind: str) -> None:
    session = api.house.session

    async def add() -> None:
        if kind == "user":
            await people.create(session, "leaver", "a long password of it", ["operator"], by="test")
        else:
            await access.create_token(session, "leaver", ["operator"], by="test")

    async def remove() -> None:
        await (people.delete(session, "leaver") if kind == "user" else access.revoke_token(session, "leaver"))

    leaver = Caller(f"{kind}:leaver", frozenset(access.ROLES["operator"]))
    await add()
    await saved_views.create(session, leaver, "Private", FAILED)
    shared = await saved_views.create(session, leaver, "Shared", FAILED, shared=True)
    await remove()
    [left] = await saved_views.listed(session, ANYBODY)
    assert (left.id, left.owner, left.version) == (shared.id, None, 2)
    with pytest.raises(NotFound, match="was removed"):
        await saved_views.create(session, leaver, "Late", FAILED)
    await add()  # another one with the same name
    with pytest.raises(NotAllowed):
        await saved_views.delete(session, leaver, shared.id)
    with pytest.raises(InvalidInput, match="has no owner"):
        await saved_views.update(session, ANYBODY, shared.id, 2, shared=False)
    await saved_views.delete(session, ANYBODY, shared.id)
    await remove()


async def test_removal_waits_for_a_save_of_its_owner(api: Api) -> None:
    session = await own_session(api)
    await access.create_token(session, "racer", ["operator"], by="test")
    racer = Caller("token:racer", frozenset(access.ROLES["operator"]))
    await saved_views.create(session, racer, "First", FAILED)
    blocked = "select 1 from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()"
    async with (await own_session(api)).transaction() as tx:
        await rows.lock_names(tx, racer.name)
        assert await rows.keep_owner(tx, racer.name)
        removal = asyncio.create_task(access.revoke_token(session, "racer"))
        await api.house.until(blocked)
        await tx.execute("update saved_view set name = 'Second' where owner = 'token:racer'")
    await removal
    assert await api.house.rows("select from saved_view") == []


async def test_own_view_comes_before_a_shared_one_of_the_name(api: Api) -> None:
    await saved(api, "views-all", "Same", {"key": "all"}, shared=True)
    async with api.caller("views-viewer") as caller:
        named = await caller.get(f"{V1}/views/named?name=Same")
        assert named.json()["filters"] == {"key": "all"}
        await saved(api, "all", "Same", {"key": "admin"}, shared=True)
        several = await caller.get(f"{V1}/views/named?name=Same")
        assert (several.status_code, "2 shared views" in several.text) == (409, True)
        await saved(api, "views-viewer", "Same", {"key": "own"})
        assert (await caller.get(f"{V1}/views/named?name=Same")).json()["filters"] == {"key": "own"}
        missing = await caller.get(f"{V1}/views/named?name=Sam")
        assert (missing.status_code, missing.json()["hint"]) == (404, "Did you mean 'Same'?")


async def test_changes_are_audited_without_labels_and_keys(api: Api) -> None:
    view = await saved(
        api, "all", "Audited", {"status": ["failed"], "label": ["customer=ada"], "key": "k-77"}
    )
    async with api.caller("all") as caller:
        path = f"{V1}/views/{view['id']}"
        await caller.patch(path, json={"version": 1, "shared": True})
        await caller.delete(path)
    notes = await api.house.rows(
        "select operation, outcome, by, details::text as details from audit where target like '/api/v1/views%' "
        "order by at desc limit 3"
    )
    assert [row["operation"] for row in notes] == ["views_delete", "views_update", "views_create"]
    assert {row["by"] for row in notes} == {"token:all"}
    details = "".join(row["details"] for row in notes)
    assert "Audited" in details
    assert not [text for text in ("ada", "k-77") if text in details.replace("token", "")]


async def test_clients_have_the_same_views(api: Api) -> None:
    transport = ASGITransport(api.app, raise_app_exceptions=False)
    direct = Views(api.house.session)
    async with HttpClient("http://penstock", token=api.secrets["all"], transport=transport) as client:
        view = await client.views.create("Both", FAILED, description="one", shared=True)
        assert await direct.get("Both", by="token:all") == view
        assert await client.views.all() == await direct.all(by="token:all") == [view]
        changed = await client.views.update(view.id, 1, filters={"key": "k"})
        assert (changed.version, changed.description) == (2, "one")
        with pytest.raises(Conflict):
            await client.views.update(view.id, 1, name="Late")
        with pytest.raises(Conflict):
            await client.views.create("Both", FAILED)
        replaced = await client.views.create("Both", FAILED, replace=True)
        assert (replaced.id, replaced.version, replaced.shared) == (view.id, 3, False)
        listed = await client.executions(saved_views.filter_of(replaced))
        assert all(row.status == "failed" for row in listed)
        await client.views.delete(view.id)
        with pytest.raises(NotFound):
            await direct.get("Both", by="token:all")
