"""Re-runs with other parameters."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID

import orjson
import pytest

from penstock import DurableContext, action
from penstock.errors import Conflict, ExecutionFailed, InvalidInput
from penstock.language.workflows import from_yaml
from tests.flows import inside
from tests.flows.installation import Installation

pytestmark = pytest.mark.either_transport


@action(pack="again")
async def book(name: str) -> str:
    return f"booked for {name}"


@action(pack="again")
async def charge(amount: int) -> int:
    if amount > 10:
        raise ValueError(f"{amount} is too much")
    return amount


@action(pack="again")
async def in_steps(ctx: DurableContext, amount: int) -> int:
    await ctx.step("book", book_step, amount)
    return int(await ctx.step("charge", charge_step, amount))


@action(pack="again")
async def at_once(ctx: DurableContext, amount: int) -> int:
    return int(await ctx.step("charge", charge_step, amount))


def book_step(amount: int) -> str:
    return f"booked {amount}"


def charge_step(amount: int) -> int:
    if amount > 10:
        raise ValueError(f"{amount} is too much")
    return amount


ORDER = from_yaml("""
workflow: again.order
parameters:
  amount: {type: integer, required: true}
  customer: {type: object, default: {name: Bob}}
  limits: {type: array, items: {type: integer}, default: [1, 2]}
vars: {shown: "{{ parameters.customer.name }}"}
tasks:
  book: {action: again.book, input: {name: "{{ parameters.customer.name }}"}}
  charge: {action: again.charge, needs: [book], input: {amount: "{{ parameters.amount }}"}}
output: {booked: "{{ tasks.book.result }}", charged: "{{ tasks.charge.result }}", limits: "{{ parameters.limits }}"}
""")
ALL = (book, charge, in_steps, at_once, ORDER)


async def failed(house: Installation, ref: str, **params: Any) -> UUID:
    id = await house.client.start(ref, params)
    with pytest.raises(ExecutionFailed):
        await house.client.result(id, timeout=30)
    return id


async def params_of(house: Installation, id: UUID) -> Any:
    return orjson.loads((await house.client.get(id)).params or "null")


async def test_rerun_with_changed_parameters(house: Installation) -> None:
    await house.start(*inside.ALL)
    old = await house.client.start("inside.fails", {"n": 1})
    await house.until("select 1 from execution where status = 'failed'")
    ran = await house.client.start("inside.publishes", {"n": 1, "key": "a"})
    await house.client.result(ran, timeout=20)
    new = await house.client.rerun(ran, params={"n": 7}, by="test")
    with pytest.raises(InvalidInput, match="n"):
        await house.client.rerun(ran, params={"n": "many"}, by="test")
    with pytest.raises(InvalidInput, match="unknown"):
        await house.client.rerun(ran, params={"m": 7}, by="test")
    with pytest.raises(InvalidInput, match="n"):
        await house.client.rerun(ran, unset=["n"], by="test")
    without = await house.client.rerun(ran, unset=["key"], by="test")
    again = await house.client.rerun(old, params={"n": 8}, from_failed=True, by="test")
    await house.quiet()
    assert await params_of(house, new) == {"n": 7, "key": "a"}
    assert await params_of(house, without) == {"n": 1}
    assert await params_of(house, again) == {"n": 8}
    commands = await house.rows(
        "select value - 'as' as value from workflow_command where kind = 'rerun' order by id"
    )
    assert [orjson.loads(row["value"]) for row in commands] == [
        {"changed": ["n"]},
        {"unset": ["key"]},
        {"changed": ["n"]},
    ]
    await house.sound()


async def test_from_failed_keeps_tasks_that_read_other_parameters(house: Installation) -> None:
    await house.start(*ALL)
    old = await failed(house, "again.order", amount=20)
    new = await house.client.rerun(
        old, from_failed=True, params={"amount": 9, "limits.1": 5, "customer.name": "Bob"}, by="ada"
    )
    result = await house.client.result(new, timeout=30)
    assert result == {"booked": "booked for Bob", "charged": 9, "limits": [1, 5]}
    rows = await house.rows("select task from execution where parent = $1", new)
    assert [row["task"] for row in rows] == ["charge"]
    await house.quiet()
    await house.sound()


async def test_from_failed_refuses_a_parameter_that_a_kept_task_read(house: Installation) -> None:
    await house.start(*ALL)
    old = await failed(house, "again.order", amount=20, customer={"name": "Eve", "id": 1})
    for options in ({"from_failed": True}, {"from_task": "charge"}):
        with pytest.raises(Conflict, match=r"task book read customer\.name") as refused:
            await house.client.rerun(old, params={"amount": 9, "customer.name": "Ada"}, by="ada", **options)
        assert f"penstock rerun {old} --from book" in str(refused.value.hint)
    with pytest.raises(Conflict, match="task book read customer"):
        await house.client.rerun(old, unset=["customer"], from_failed=True, by="ada")
    changed = {"amount": 9, "customer.id": 2}
    kept = await house.client.rerun(old, params=changed, from_failed=True, by="ada")
    assert (await house.client.result(kept, timeout=30))["booked"] == "booked for Eve"
    fresh = await house.client.rerun(
        old, params={"amount": 9, "customer.name": "Ada"}, from_task="book", by="ada"
    )
    assert (await house.client.result(fresh, timeout=30))["booked"] == "booked for Ada"
    assert await params_of(house, fresh) == {"amount": 9, "customer": {"name": "Ada", "id": 1}}
    await house.quiet()
    await house.sound()


async def test_rerun_of_an_archived_run_checks_its_kept_tasks(house: Installation) -> None:
    await house.start(*ALL)
    old = await failed(house, "again.order", amount=20)
    await house.quiet()
    await house.rows("select * from archive_finished(interval '0', 100)")
    with pytest.raises(Conflict, match=r"task book read customer\.name"):
        await house.client.rerun(old, params={"customer.name": "Ada"}, from_failed=True, by="ada")
    new = await house.client.rerun(old, params={"amount": 3}, from_failed=True, by="ada")
    assert (await house.client.result(new, timeout=30))["charged"] == 3
    rows = await house.rows("select task from execution where parent = $1", new)
    assert [row["task"] for row in rows] == ["charge"]


async def test_durable_function_keeps_no_step_with_other_parameters(house: Installation) -> None:
    await house.start(*ALL)
    old = await failed(house, "again.in_steps", amount=20)
    with pytest.raises(
        Conflict, match="the result of the step book would be reused, but its function may have read amount"
    ):
        await house.client.rerun(old, params={"amount": 9}, from_failed=True, by="ada")
    new = await house.client.rerun(old, params={"amount": 9}, by="ada")
    assert await house.client.result(new, timeout=30) == 9
    empty = await failed(house, "again.at_once", amount=20)
    new = await house.client.rerun(empty, params={"amount": 8}, from_failed=True, by="ada")
    assert await house.client.result(new, timeout=30) == 8
    await house.quiet()


async def test_two_changed_reruns_at_once_are_two_runs(house: Installation) -> None:
    await house.start(*ALL)
    old = await failed(house, "again.order", amount=20)
    ids = await asyncio.gather(
        *(house.client.rerun(old, from_failed=True, params={"amount": n}, by="ada") for n in range(1, 6))
    )
    results = [await house.client.result(id, timeout=30) for id in ids]
    assert [result["charged"] for result in results] == [1, 2, 3, 4, 5]
    assert await params_of(house, old) == {"amount": 20}
    await house.quiet()
    await house.sound()
