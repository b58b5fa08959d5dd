"""Executions that wait for each other: `penstock doctor` finds them, and does not take a busy limit for a circle."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID

import pytest

from penstock import DurableContext, Limit, action, current
from penstock.language.workflows import from_yaml
from penstock.operate import doctor
from penstock.operate.doctor.finding import Finding
from tests.flows.installation import Installation

pytestmark = pytest.mark.either_transport

RELEASED = asyncio.Event()
MET = asyncio.Barrier(2)


@action(pack="ring")
async def work() -> str:
    return "done"


@action(pack="ring")
async def holds() -> None:
    await RELEASED.wait()


@action(pack="ring")
async def parent(ctx: DurableContext) -> Any:
    return await ctx.run(work, name="work")


@action(pack="ring")
async def grandparent(ctx: DurableContext) -> Any:
    return await ctx.run(parent, name="parent")


@action(pack="ring")
async def waits_for_holder(ctx: DurableContext) -> Any:
    return await ctx.run(holds, name="holds")


@action(pack="ring")
async def waits_for_signal(ctx: DurableContext) -> Any:
    return await ctx.signal("go")


@action(pack="ring")
async def awaits() -> Any:
    return await current().run(work)


@action(pack="east")
async def goes_west() -> Any:
    await MET.wait()
    return await current().run(arrives_west)


@action(pack="west")
async def goes_east() -> Any:
    await MET.wait()
    return await current().run(arrives_east)


@action(pack="east")
async def arrives_east() -> str:
    return "east"


@action(pack="west")
async def arrives_west() -> str:
    return "west"


@action(pack="tour")
async def meets() -> None:
    await MET.wait()


FLOWS = [
    from_yaml(f"""
workflow: tour.{name}
parameters: {{deep: {{type: boolean, default: false}}}}
tasks:
  meets: {{action: tour.meets, when: "{{{{ parameters.deep }}}}"}}
  inner: {{workflow: tour.{other}, needs: [meets], when: "{{{{ parameters.deep }}}}"}}
""")
    for name, other in (("one", "two"), ("two", "one"))
]
ACTIONS = (work, holds, parent, grandparent, waits_for_holder, waits_for_signal, awaits)
CROSSWISE = (goes_west, goes_east, arrives_west, arrives_east)


def limited(flow: str) -> Limit:
    return Limit(1, ref=f"{flow}_runs", scope=flow)


def kept(slots: int, scope: str = "ring") -> Limit:
    return Limit(slots, ref=f"{scope}.door", scope=scope, while_waiting="keep")


QUEUED = "select id from execution where status = 'queued' and parent = $1"


@pytest.fixture(autouse=True)
def _not_released() -> None:
    RELEASED.clear()


async def findings(house: Installation) -> list[Finding]:
    return [finding for finding in await doctor.examine(house.settings()) if finding.what == "waits"]


async def queued_child(house: Installation, of: UUID) -> UUID:
    [row] = await house.until(QUEUED, of)
    return UUID(str(row["id"]))


async def test_child_that_waits_for_the_slot_of_its_parent_is_named(house: Installation) -> None:
    await house.start(*ACTIONS, kept(1))
    first = await house.client.start("ring.parent")
    child = await queued_child(house, first)
    await house.until("select from suspended where execution_id = $1", first)
    [finding] = await findings(house)
    assert finding.state == "warning"
    assert f"{first} (ring.parent) waits for its child {child}" in finding.says
    assert f"{child} (ring.work) waits for a slot of the limit ring.door, which {first} holds" in finding.says
    assert "penstock limit set ring.door MAX" in str(finding.fix)
    assert f"penstock cancel {first}" in str(finding.fix)
    await house.client.limits.set("ring.door", max=2)
    assert await house.client.result(first, timeout=20) == "done"
    assert await findings(house) == []
    await house.quiet()
    await house.sound()


async def test_circle_of_three_is_named_in_order(house: Installation) -> None:
    await house.start(*ACTIONS, kept(2))
    first = await house.client.start("ring.grandparent")
    [row] = await house.until("select id from execution where parent = $1", first)
    second = UUID(str(row["id"]))
    third = await queued_child(house, second)
    await house.until("select from suspended having count(*) = 2")
    [finding] = await findings(house)
    assert finding.says.endswith(
        f": {first} (ring.grandparent) waits for its child {second}; "
        f"{second} (ring.parent) waits for its child {third}; "
        f"{third} (ring.work) waits for a slot of the limit ring.door, which {first} holds"
    )
    await house.client.cancel(first, reason="the test is over")
    await house.quiet()
    assert await findings(house) == []


async def test_attempts_whose_children_wait_crosswise_are_one_circle(house: Installation) -> None:
    await house.start(*ACTIONS, *CROSSWISE, kept(1, "east"), kept(1, "west"))
    both = [await house.client.start(ref) for ref in ("east.goes_west", "west.goes_east")]
    children = []
    for id in both:
        [row] = await house.until("select id from effect where parent = $1", id)
        children.append(UUID(str(row["id"])))
        await house.until("select from awaited where execution_id = $1", children[-1])
    await house.until("select from execution where status = 'queued' having count(*) = 2")
    [finding] = await findings(house)
    for id in (*both, *children):
        assert finding.says.count(str(id)) == 2
    assert "penstock limit set east.door MAX" in str(finding.fix)
    await house.client.cancel(both[0], reason="the test is over")
    assert await house.client.result(both[1], timeout=20) == "east"


async def test_workflows_that_contain_each_other_are_one_circle(house: Installation) -> None:
    await house.start(*ACTIONS, meets, *FLOWS, limited("tour.one"), limited("tour.two"))
    both = [await house.client.start(ref, {"deep": True}) for ref in ("tour.one", "tour.two")]
    inner = [await queued_child(house, id) for id in both]
    [finding] = await findings(house)
    for id in (*both, *inner):
        assert finding.says.count(str(id)) == 2
    assert "a slot of the limit tour.one_runs" in finding.says
    assert "a slot of the limit tour.two_runs" in finding.says
    await house.client.cancel(both[0], reason="the test is over")
    await house.quiet()
    assert await findings(house) == []


async def test_attempt_that_holds_the_only_slot_of_its_childs_route_is_named(house: Installation) -> None:
    await house.start(*ACTIONS, concurrency=1)
    first = await house.client.start("ring.awaits")
    [row] = await house.until("select id from effect where parent = $1", first)
    child = UUID(str(row["id"]))
    await house.until("select from awaited where execution_id = $1", child)
    await house.until("select from execution where id = $1 and status = 'scheduled'", child)
    await house.until("select from process where cardinality(holding) = 1")
    [finding] = await findings(house)
    slot = "a slot of a worker of the route default"
    assert f"{child} (ring.work) waits for {slot}, which {first} holds" in finding.says
    assert "another route" in str(finding.fix)
    await house.client.cancel(first)
    assert await house.client.result(child, timeout=20) == "done"


@pytest.mark.parametrize(
    ("ref", "slots"),
    [("holds", 1), ("waits_for_holder", 2), ("waits_for_signal", 1), ("waits_for_signal", 3)],
)
async def test_full_limit_whose_holders_go_on_gives_no_warning(
    house: Installation, ref: str, slots: int
) -> None:
    """They run, wait for a child that runs, or for a signal. Others are queued behind them."""
    await house.start(*ACTIONS, kept(slots))
    ids = [await house.client.start(f"ring.{ref}")]
    held = "select from slot having count(*) = $1"
    await house.until(held, 2 if ref == "waits_for_holder" else 1)
    ids += [await house.client.start(f"ring.{ref}") for _ in range(5)]
    await house.until(held, slots)
    await house.until("select from execution where status = 'queued'")
    if ref != "holds":
        await house.until("select from suspended")
    assert await findings(house) == []
    await house.client.cancel(*ids, reason="the test is over")
    RELEASED.set()
    await house.quiet()


async def test_child_behind_one_slot_that_runs_is_no_circle(house: Installation) -> None:
    await house.start(*ACTIONS, kept(2))
    await house.client.start("ring.holds")
    await house.until("select from execution where status = 'running'")
    first = await house.client.start("ring.parent")
    await queued_child(house, first)
    await house.until("select from suspended where execution_id = $1", first)
    assert await findings(house) == []
    RELEASED.set()
    assert await house.client.result(first, timeout=20) == "done"
