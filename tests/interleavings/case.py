"""The case of a small race, and the parts that all cases share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from penstock import AskInquiry, Limit, Rule, Schedule, Trigger, action
from penstock.language.workflows import from_yaml
from tests.interleavings.scene import Scene
from tests.interleavings.stage import Order, Work
from tests.penstock.store.admission.desk import charge, refund, send


@action(pack="shop")
async def ask() -> None:
    raise AskInquiry("Go on?")


placed = Trigger("shop.placed")
on_placed = Rule("shop.on_placed", trigger=placed, action=charge)
ticking = Schedule("shop.ticking", action=charge, every=3600)
join = from_yaml("""
workflow: shop.join
tasks:
  left: {action: shop.charge}
  right: {action: shop.refund}
  both: {action: mail.send, needs: [left, right]}
""")
ACTIONS = (charge, refund, send, ask)
ONE = Limit(1, ref="shop.one", scope="shop.charge")
TWO = Limit(2, ref="shop.two", scope="shop.charge")
LIMITED = (*ACTIONS, ONE)
ALL = Limit(1, ref="ops.all", scope="*")
NEWEST = Limit(1, ref="shop.newest", scope="shop.charge", when_full="cancel_running")

Check = Callable[[Scene, Order], Awaitable[None]]


@dataclass(frozen=True)
class Case:
    name: str
    prepare: Callable[[Scene], Awaitable[Sequence[Work]]]
    """Sets the scene, and gives the works that race."""
    check: Check | None = None
    """What must be true besides that all ended well."""
    definitions: tuple[Any, ...] = ()
    after: Callable[[Scene], Awaitable[None]] | None = None
    """What happens once the race is over, and before everything goes on in peace."""


async def count(scene: Scene, sql: str, *args: Any) -> int:
    return int((await scene.session.fetch(sql, *args))[0][0])


RUNS = "select count(*) from history where new = 'running' and attempt > 0"


async def running(scene: Scene, ref: str = "shop.charge", number: int = 1) -> list[UUID]:
    """Executions that the scene's worker runs."""
    ids = await scene.start(number, ref)
    assert set(await scene.claim(ids)) == set(ids)
    await scene.session.fetch("delete from outbox")
    return ids


async def each_ran_once(scene: Scene, order: Order) -> None:
    assert await count(scene, RUNS) == await count(
        scene,
        "select count(*) from execution e join namespace n on n.id = e.namespace_id where n.kind = 'action'",
    )


async def completed_once(scene: Scene, order: Order) -> None:
    ends = "select count(*) from history where new in ('completed', 'failed', 'timeout', 'cancelled', 'abandoned')"
    assert await count(scene, ends) == await count(scene, "select count(*) from execution")


async def one_execution(scene: Scene, order: Order) -> None:
    assert await count(scene, "select count(*) from execution") == 1
