"""Lists by labels, of open and archived executions, beside a plain list of dicts: each page of the API and of the command."""

from __future__ import annotations

import random
from typing import Any

import httpx
import pytest

from penstock import action, workflow
from penstock.client.client import Client
from penstock.operate.access import create_token
from penstock.service.assembly import assembled
from penstock.store.executions import archive, execution_list
from penstock.store.executions.execution_list import ExecutionFilter
from penstock_api.app import make_app
from penstock_api.backend import Backend
from tests.flows.installation import AS_USED, Installation
from tests.penstock.cli.commands import penstock

STARTS = 120
LISTS = 150
LISTS_OF_COMMAND = 12


@pytest.fixture
def transport() -> str:
    return "postgres"


@action(pack="labelled", run_labels={"team": "billing", "kind": "payment"}, searchable=["customer", "amount"])
async def pay(customer: str, amount: int, fails: bool = False) -> int:
    if fails:
        raise ValueError("no money")
    return amount


@action(pack="labelled")
async def plain(customer: str) -> None: ...


@workflow(pack="labelled")
def order(customer: str) -> object:
    return pay(customer=customer, amount=7)


def expected_labels(
    ref: str, params: dict[str, Any], own: dict[str, str], parent: dict[str, str]
) -> dict[str, str]:
    """Return the labels as the issue describes them: inherited ones, then those of the action, then explicit ones."""
    labels = dict(parent)
    if ref == "labelled.pay":
        labels |= {"team": "billing", "kind": "payment"}
        labels |= {"customer": params["customer"], "amount": str(params["amount"])}
    return labels | own


def matches(row: dict[str, Any], criteria: dict[str, Any]) -> bool:
    return (
        all(row["labels"].get(key) == value for key, value in criteria["labels"].items())
        and (not criteria["status"] or row["status"] in criteria["status"])
        and (criteria["action"] is None or row["action"] == criteria["action"])
        and (criteria["tenant"] is None or row["tenant"] == criteria["tenant"])
        and (
            criteria["key"] is None
            or (row["key"], row["tenant"]) == (criteria["key"], criteria["tenant"] or "public")
        )
        and (criteria["children"] or not row["child"])
    )


async def started(house: Installation, chance: random.Random, number: int) -> dict[str, Any]:
    ref = chance.choice(["labelled.pay", "labelled.pay", "labelled.plain", "labelled.order"])
    params: dict[str, Any] = {"customer": chance.choice(["acme", "bolt", "Ünal & Co"])}
    if ref == "labelled.pay":
        params |= {"amount": chance.randint(1, 3), "fails": chance.random() < 0.3}
    labels: dict[str, str] = {}
    if chance.random() < 0.7:
        labels["env"] = chance.choice(["prod", "prod", "test"])
    if chance.random() < 0.2:
        labels["team"] = "other"
    if chance.random() < 0.03:
        labels["rare"] = "yes"
    tenant = chance.choice(["public", "public", "small"])
    key = f"key-{number % 40}" if chance.random() < 0.2 and number < 40 else None
    delay = 3600 if chance.random() < 0.1 else None
    id = await house.client.start(ref, params, tenant=tenant, key=key, delay=delay, labels=labels or None)
    return {
        "id": str(id), "action": ref, "tenant": tenant, "key": key, "child": False,
        "labels": expected_labels(ref, params, labels, {}), "params": params,
    }  # fmt: skip


async def children_of(house: Installation, parents: list[dict[str, Any]]) -> list[dict[str, Any]]:
    rows = await house.rows(
        "select id, parent from execution where parent is not null union all "
        "select id, parent from archive where parent is not null"
    )
    by_id = {parent["id"]: parent for parent in parents}
    children = []
    for row in rows:
        parent = by_id[str(row["parent"])]
        params = {"customer": parent["params"]["customer"], "amount": 7}
        labels = expected_labels("labelled.pay", params, {}, parent["labels"])
        children.append(
            {
                "id": str(row["id"]),
                "action": "labelled.pay",
                "tenant": parent["tenant"],
                "key": None,
                "child": True,
                "labels": labels,
            }
        )
    return children


def wanted_by(chance: random.Random, rows: list[dict[str, Any]]) -> dict[str, Any]:
    source = chance.choice([row for row in rows if row["labels"]])["labels"]
    labels = dict(chance.sample(sorted(source.items()), chance.randint(1, min(3, len(source)))))
    if chance.random() < 0.1:
        labels[next(iter(labels))] = "nothing"
    if chance.random() < 0.2:
        labels = {}
    keyed = [row for row in rows if row["key"]]
    key = chance.choice(keyed) if chance.random() < 0.1 else None
    return {
        "labels": labels,
        "status": chance.choice(
            [
                [],
                [],
                ["failed"],
                ["failed", "cancelled"],
                ["completed"],
                ["requested"],
                ["completed", "failed"],
            ]
        ),
        "action": chance.choice([None, None, "labelled.pay", "labelled.order", "labelled.nothing"]),
        "tenant": key["tenant"] if key else chance.choice([None, None, "public", "small", "nobody"]),
        "key": key and key["key"],
        "children": chance.random() < 0.4,
    }


async def api_pages(api: httpx.AsyncClient, criteria: dict[str, Any], limit: int) -> list[list[str]]:
    query = {
        **{name: criteria[name] for name in ("action", "tenant", "key", "status") if criteria[name]},
        "label": [f"{key}={value}" for key, value in criteria["labels"].items()],
        "children": criteria["children"],
        "limit": limit,
    }
    pages: list[list[str]] = []
    cursor: str | None = None
    while True:
        answer = await api.get(
            "/api/v1/executions", params={**query, **({"before": cursor} if cursor else {})}
        )
        assert answer.status_code == 200, answer.text
        page = answer.json()
        pages.append([row["id"] for row in page["items"]])
        cursor = page["next"]
        if cursor is None:
            return pages


async def command_pages(criteria: dict[str, Any], limit: int) -> list[list[str]]:
    words = [f"--{name}={criteria[name]}" for name in ("action", "tenant", "key") if criteria[name]]
    words += [f"--status={status}" for status in criteria["status"]]
    words += [f"--label={key}={value}" for key, value in criteria["labels"].items()]
    words += ["--children"] if criteria["children"] else []
    pages: list[list[str]] = []
    while True:
        paging = [f"--before={pages[-1][-1]}"] if pages else []
        done = await penstock("executions", "--json", f"--limit={limit}", *words, *paging)
        pages.append([row["id"] for row in done.documents])
        if len(pages[-1]) < limit:
            return pages


def model_pages(rows: list[dict[str, Any]], criteria: dict[str, Any], limit: int) -> list[list[str]]:
    ids = sorted((row["id"] for row in rows if matches(row, criteria)), reverse=True)
    return [ids[at : at + limit] for at in range(0, len(ids) + 1, limit)]


@pytest.mark.parametrize("seed", [1, 2])
async def test_lists_by_label_agree_with_a_plain_list(house: Installation, seed: int) -> None:
    chance = random.Random(seed)
    await house.start(pay, plain, order)
    session = house.session
    rows = []
    for number in range(STARTS):
        rows.append(await started(house, chance, number))
        if number == STARTS // 2:
            await house.until(
                "select 1 where not exists (select from execution where finished_at is null and not_before is null)"
            )
            await archive.archive_finished(session, 0, 1000, 0)
            assert (await house.rows("select count(*) as n from archived_label"))[0]["n"] > 20
    await house.until(
        "select 1 where not exists (select from execution where finished_at is null and not_before is null)"
    )
    rows += await children_of(house, rows)
    statuses = await house.rows("select id, status from execution union all select id, status from archive")
    by_id = {str(row["id"]): row["status"] for row in statuses}
    for row in rows:
        row["status"] = by_id[row["id"]]
    assert len(by_id) == len(rows)
    assert {"completed", "failed", "requested"} <= set(by_id.values())

    async with assembled(house.settings(**AS_USED), role="api") as parts:
        backend = Backend.of(Client(parts.settings, parts.database, parts.publisher))
        _, secret = await create_token(session, "lists", ["read"], tenants=(), by="test")
        transport = httpx.ASGITransport(make_app(backend), raise_app_exceptions=False)
        headers = {"authorization": f"Bearer {secret}"}
        async with httpx.AsyncClient(transport=transport, base_url="http://penstock", headers=headers) as api:
            for number in range(LISTS):
                criteria, limit = wanted_by(chance, rows), chance.randint(1, 60)
                expected = model_pages(rows, criteria, limit)
                assert await api_pages(api, criteria, limit) == expected, criteria
                if number < LISTS_OF_COMMAND:
                    limit = max(limit, 20)
                    assert await command_pages(criteria, limit) == model_pages(rows, criteria, limit), (
                        criteria
                    )
                filters = ExecutionFilter(
                    status=criteria["status"] or None, action=criteria["action"], tenant=criteria["tenant"],
                    key=criteria["key"], labels=criteria["labels"] or None, children=criteria["children"],
                )  # fmt: skip
                assert await execution_list.count(session, filters) == sum(map(len, expected)), criteria
        await backend.close()
