"""Actions are called, started and run with their own parameters and results, which type checkers see (`make check` holds the
`assert_type` of this file to that)."""

from __future__ import annotations

import asyncio
from typing import Any, assert_type
from uuid import UUID

import pytest

from penstock import ActionRef, Client, SyncClient, action, workflow
from penstock.errors import Conflict, NotFound, OutsideRun
from penstock.language.terms.action_ref import ActionCall, connected
from tests.flows.installation import Installation


@action(pack="shop", retry=3)
async def charge(order: int, amount: float = 1.0) -> str:
    return f"{order}: {amount:g}"


@action(pack="shop")
def ship(order: int, **more) -> list[str]:  # type: ignore[no-untyped-def]
    return [f"{order}", *more.values()]


def _charge_in_words(order: int, amount: float = 1.0) -> str:
    raise NotImplementedError


elsewhere = ActionRef("shop.charge", like=_charge_in_words)
untyped: ActionRef[..., Any] = ActionRef("shop.charge")


@workflow(pack="shop")
def sell(order: int):  # type: ignore[no-untyped-def]
    return charge(order=order)


def test_a_call_has_its_parameters_by_name() -> None:
    call = charge.call(7, amount=2.5)
    assert_type(call, ActionCall[str])
    assert (call.ref, call.parameters) == ("shop.charge", {"order": 7, "amount": 2.5})
    assert ship.call(7, to="Bath").parameters == {"order": 7, "to": "Bath"}
    assert elsewhere.call(order=7).parameters == {"order": 7}
    assert untyped.call(order=7).parameters == {"order": 7}


def test_a_call_with_parameters_that_the_action_does_not_take_is_refused() -> None:
    with pytest.raises(TypeError, match="order"):
        charge.call(ordre=7)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="by name"):
        untyped.call(7)


async def test_without_a_client_nothing_is_started() -> None:
    with pytest.raises(OutsideRun, match="no client"):
        await charge.start(order=7)


async def test_a_run_gives_its_result(database: str) -> None:
    async with Installation(database, None) as house:
        await house.start(charge, ship, sell)
        client = house.client
        assert_type(await client.run(charge, {"order": 7}), str)
        assert_type(await client.run(ship.call(7), key="ship-7"), list[str])
        assert await client.run(ship.call(7), key="ship-7", timeout=20) == ["7"]
        assert await client.run(sell, {"order": 8}, timeout=20) == "8: 1"
        async with Client.connect(house.settings()):
            assert_type(await charge.start(order=7), UUID)
            assert_type(await charge.run(order=7, amount=2.5), str)
            assert await elsewhere.run(7, amount=3) == "7: 3"
            assert connected() is not client
            assert await sell.run(order=9) == "9: 1"
        assert connected() is client


async def test_clients_may_be_closed_in_any_order(database: str) -> None:
    async with Installation(database, None) as house:
        first, second = Client.connect(house.settings()), Client.connect(house.settings())
        await first.__aenter__()
        client = await second.__aenter__()
        await first.__aexit__(None, None, None)
        assert connected() is client
        await asyncio.create_task(second.__aexit__(None, None, None))  # in a context of its own
        assert connected() is house.client


async def test_the_client_that_blocks_has_the_same(database: str) -> None:
    async with Installation(database, None) as house:
        await house.start(charge)
        settings = house.settings()

        def script() -> str:
            with SyncClient.connect(settings) as client:
                assert_type(client.run(charge.call(order=7)), str)
                id = client.start(charge, {"order": 8}, key="order-8")
                assert client.get(id).id == id
                with pytest.raises(NotFound, match="no action or workflow"):
                    client.run("shop.nothing")
                return str(client.result(id, timeout=20))

        assert await asyncio.to_thread(script) == "8: 1"


async def test_blocking_client_has_parts_and_complete(database: str) -> None:
    async with Installation(database, None) as house:
        await house.apply(charge)
        settings = house.settings()

        def script() -> list[str]:
            with SyncClient.connect(settings) as client:
                client.limits.set("shop.door", max=3, scope="shop.charge")
                with pytest.raises(Conflict, match="does not wait"):
                    client.complete(client.start(charge, {"order": 8}), by="ada")
                return [limit.ref for limit in client.limits.all()]

        assert await asyncio.to_thread(script) == ["shop.door"]
