"""Compiled definitions: a request has those that it looked up, also while another request of the process clears the cache."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from penstock.advance.open_workflows import read_plans
from penstock.store.definitions import catalog
from penstock.store.events import rule_matches
from penstock.store.session.database import Transaction

CACHED, MISSING = 1, 2


class ClearedBetween(SimpleNamespace):
    """A transaction whose process applies a definition, and so clears the cache, during each statement."""

    async def fetch(self, sql: str, *args: Any) -> list[dict[str, Any]]:
        self.cache.clear()
        return [{"id": id, "kind": "action", "ref": "shop.charge", "body": "{}"} for id in args[0]]


def cleared_between(name: str) -> Transaction:
    """Return a transaction with one cached form."""
    fake = ClearedBetween(cache={(name, CACHED): "cached"}, settings=SimpleNamespace(payload_cap=1000))
    return cast(Transaction, fake)


def rules(tx: Transaction, ids: Sequence[int]) -> Awaitable[Any]:
    return rule_matches.compiled(tx, cast(Any, [SimpleNamespace(definition_id=id) for id in ids]))


LOOK_UPS: dict[str, Callable[[Transaction, Sequence[int]], Awaitable[Any]]] = {
    "schema": catalog.parameter_schemas,
    "rule": rules,
    "plan": read_plans,
}


@pytest.mark.parametrize("name", LOOK_UPS)
async def test_look_up_keeps_a_form_that_another_request_drops(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.store.events.rule_matches.compile_rule", lambda body: "new")
    monkeypatch.setattr("penstock.advance.open_workflows.Plan", lambda *_: "new")
    monkeypatch.setattr("penstock.advance.open_workflows.Workflow", SimpleNamespace(model_validate=dict))
    monkeypatch.setattr("penstock.store.definitions.catalog.Schema", lambda *_: "new")
    assert await LOOK_UPS[name](cleared_between(name), [CACHED, MISSING]) == {
        CACHED: "cached",
        MISSING: "new",
    }


async def test_definitions_are_read_and_compiled_once() -> None:
    read: list[list[int]] = []

    async def fetch(sql: str, ids: list[int]) -> list[dict[str, Any]]:
        read.append(ids)
        return [{"id": id, "kind": "action", "ref": "shop.charge", "body": "{}"} for id in ids if id != 9]

    tx = cast(Transaction, SimpleNamespace(fetch=fetch, cache={("other", 1): "another form"}))

    def refs(ids: Sequence[int]) -> Awaitable[dict[int, object]]:
        return catalog.compiled(tx, "ref", ids, lambda body: [body["ref"]])

    first = await refs([1, 2])
    again = await refs([2, 1, 3, 9])
    assert again == {1: ["shop.charge"], 2: ["shop.charge"], 3: ["shop.charge"]}, "9 does not exist"
    assert again[1] is first[1]
    assert read == [[1, 2], [3, 9]]
    assert await refs([]) == {}
    assert await refs([3]) == {3: ["shop.charge"]}
    assert read == [[1, 2], [3, 9]]
    assert tx.cache["other", 1] == "another form"
