"""Executions that are brought by hand to where they are damaged, and what must hold of each damage."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from penstock import AskInquiry, Limit, action
from penstock.language.terms.ids import new_id
from penstock.operate.check import check
from penstock.operate.repair import repair
from penstock.service.assembly import Parts
from tests.flows import shop
from tests.flows.installation import Installation
from tests.penstock.store.admission.desk import CLAIM

LOST = "clock_timestamp() - interval '1 hour'"


@action(pack="shop", limits=[Limit(1)])
async def alone(n: int) -> int:
    return n


@action(pack="shop")
async def ask() -> str:
    raise AskInquiry("Anybody?")


async def broken(house: Installation) -> set[str]:
    return {finding.name for finding in await check(house.session) if finding.violations}


async def mend(house: Installation, parts: Parts, name: str, *more: str) -> None:
    """Exactly these are violated; they are proposed, which changes nothing, and then mended."""
    assert await broken(house) == {name, *more}
    proposed = await repair(parts.database.session(), parts.publisher, apply=False)
    assert {(one.name, one.state) for one in proposed} == {(n, "proposed") for n in (name, *more)}
    assert await broken(house) == {name, *more}
    done = await repair(parts.database.session(), parts.publisher, apply=True)
    assert [one.state for one in done if one.name == name] == ["mended"]
    assert await broken(house) == set()
    assert await repair(parts.database.session(), parts.publisher, apply=True) == []


async def requested(house: Installation, ref: str = "shop.charge", **params: Any) -> UUID:
    return await house.client.start(ref, params or {"order": 7})


async def scheduled(house: Installation, ref: str = "shop.charge", **params: Any) -> UUID:
    id = await requested(house, ref, **params)
    await house.rows("select * from schedule_executions(array[$1::uuid])", id)
    return id


async def hire(house: Installation) -> UUID:
    """Insert a worker that is only a row."""
    worker = new_id()
    await house.rows(
        "insert into process (id, kind, name, routes, actions) "
        "values ($1, 'worker', 'w', '{default}', '{shop.alone}') returning 1",
        worker,
    )
    return worker


async def running(house: Installation, ref: str = "shop.charge", **params: Any) -> tuple[UUID, UUID]:
    """An execution and the worker that has claimed it."""
    worker = await hire(house)
    id = await scheduled(house, ref, **params)
    [row] = await house.rows("select definition_id from execution where id = $1", id)
    await house.rows(CLAIM, worker, new_id(), [id], "work.default", [row[0]])
    return id, worker


async def goes_on(house: Installation, id: UUID) -> None:
    await house.executor()
    await house.worker(*shop.ALL, alone, ask)
    await house.client.result(id, timeout=20)
    await house.quiet()
    await house.sound()
