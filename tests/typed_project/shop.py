"""A user's project, as type checkers see it: nothing of this is run. `tests/test_typed_project.py` has it checked."""

from dataclasses import dataclass
from typing import Any, assert_type
from uuid import UUID

from penstock import (
    ActionRef,
    Batch,
    Client,
    HttpClient,
    Item,
    SyncClient,
    SyncHttpClient,
    action,
    each,
    workflow,
)
from penstock.language.terms.action_ref import ActionCall


@action(pack="shop", retry=3, timeout="10s")
async def charge(order: int, amount: float = 1.0) -> str:
    return f"{order}: {amount:g}"


@action
def pack_parcel(item: str) -> list[str]:
    return [item]


@dataclass
class Text:
    text: str


@action(pack="shop", batch=Batch(100, within="200ms", by="text"))
async def embed(items: list[Item[Text]]) -> list[list[float] | Exception]:
    assert_type(items[0].input, Text)
    assert_type(items[0].execution_id, UUID)
    return [[float(len(item.input.text))] for item in items]


@action(pack="shop", batch={"size": 5})
def measure(items: list[Item[Text]]) -> list[int]:
    return [len(item.input.text) for item in items]


def charge_in_words(order: int, amount: float = 1.0) -> str:
    raise NotImplementedError


elsewhere = ActionRef("shop.charge", like=charge_in_words)


@workflow(pack="shop")
def fulfil(order: int, items: list[str]) -> object:
    charged = charge(order=order)
    assert_type(each(items), str)
    assert_type(each(items, batch_size=2), list[str])
    assert_type(each("{{ parameters.items }}"), Any)
    return [charged, pack_parcel(item=each(items))]


async def use() -> None:
    assert_type(charge.call(7, amount=2.5), ActionCall[str])
    assert_type(elsewhere.call(order=7), ActionCall[str])
    assert_type(await charge.start(order=7), UUID)
    assert_type(await charge.run(order=7), str)
    assert_type(await embed.run(text="a"), list[float])
    assert_type(await measure.run(text="a"), int)
    assert_type(await elsewhere.run(7), str)
    async with Client.connect() as client:
        assert_type(await client.run(charge, {"order": 7}), str)
        assert_type(await client.run(pack_parcel.call("pen")), list[str])
        assert_type(await client.start(charge, {"order": 7}), UUID)
    with SyncClient.connect() as blocking:
        assert_type(blocking.run(charge.call(order=7)), str)
    async with HttpClient("https://penstock.example.org") as http:
        assert_type(http, HttpClient)
        assert_type(await http.run(charge, {"order": 7}), str)
    with SyncHttpClient("https://penstock.example.org") as both:
        assert_type(both, SyncHttpClient)
        assert_type(both.run(charge.call(order=7)), str)


def misuse() -> None:
    charge.call(ordre=7)  # type: ignore[call-arg]
    charge.call("seven")  # type: ignore[arg-type]
    elsewhere.call(order="seven")  # type: ignore[arg-type]
    pack_parcel(item=each([1, 2]))  # type: ignore[arg-type]
    HttpClient(7)  # type: ignore[arg-type]
    from penstock import Clinet  # type: ignore[attr-defined]  # noqa: F401
