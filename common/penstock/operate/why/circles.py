"""The executions that wait for each other, so that none of them goes on: a child for a slot that its parent keeps, and so on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal
from uuid import UUID

from penstock.language.moves import QUEUED, RUNNING, SCHEDULED, WAITING
from penstock.operate.why import presence, queued
from penstock.settings import Settings
from penstock.store.admission import admission_line, full_lines, namespaces, waiting_for
from penstock.store.executions import executions
from penstock.store.executions.executions import Execution
from penstock.store.outbox.queues import WORK
from penstock.store.session.database import Session
from penstock.store.workflows import open_tasks

LINES = 1000
"""The maximum number of lines, and of claims of workers, that a search begins at."""
SEEDS = 100
"""The maximum number of executions that a search begins with."""
MAX_EXECUTIONS = 500
"""The maximum number of executions that a search looks at. Others are taken to go on."""

By = Literal["child", "limit", "worker"]


@dataclass(frozen=True, slots=True)
class Block:
    """The reason why the execution `id` cannot go on before one of the executions `until` does: a child has not ended, the
    slots of a limit are held, or those of the workers of a route (`name`)."""

    id: UUID
    action: str
    by: By
    name: str
    until: frozenset[UUID]


async def circles(session: Session, settings: Settings) -> list[list[Block]]:
    """Return the circles of executions that wait for each other, each once. The search reads what may be blocked, up to the
    bounds above, so an installation without such lines costs two queries."""
    seeds = await full_lines.behind_waiting_holders(session, LINES, SEEDS)
    candidates = closed_circles(await _blocks(session, seeds, settings))
    return [circle for circle in candidates if await _still_holds(session, circle, settings)]


async def _blocks(session: Session, seeds: Iterable[UUID], settings: Settings) -> dict[UUID, Block]:
    """Return the blocks of these executions, and of those that they wait for, at any distance."""
    looked: set[UUID] = set()
    blocks: dict[UUID, Block] = {}
    pending = set(seeds)
    while pending and len(looked) < MAX_EXECUTIONS:
        batch = sorted(pending)[: MAX_EXECUTIONS - len(looked)]
        looked.update(batch)
        for row in await executions.find(session, batch):
            if (block := await block_of(session, row, settings)) is not None:
                blocks[row.id] = block
        pending = {id for block in blocks.values() for id in block.until} - looked
    return blocks


async def _still_holds(session: Session, circle: list[Block], settings: Settings) -> bool:
    """Return whether each execution of a circle is still blocked. Each query has its own snapshot, so a circle may be made of
    facts of different instants. A real one stays."""
    rows = {row.id: row for row in await executions.find(session, [block.id for block in circle])}
    for block, following in zip(circle, circle[1:] + circle[:1], strict=True):
        present = await block_of(session, rows[block.id], settings) if block.id in rows else None
        if present is None or following.id not in present.until:
            return False
    return True


def closed_circles(blocks: Mapping[UUID, Block]) -> list[list[Block]]:
    """Return the circles among blocked executions, each once. An execution is stuck only if all that could let it go on are."""
    stuck = dict(blocks)
    while free := [id for id, block in stuck.items() if not block.until <= stuck.keys()]:
        for id in free:
            del stuck[id]
    visited: set[UUID] = set()
    closed = []
    for first in sorted(stuck):
        way: list[UUID] = []
        id = first
        while id not in visited:
            visited.add(id)
            way.append(id)
            id = min(stuck[id].until)
        if id in way:
            closed.append([stuck[inside] for inside in way[way.index(id) :]])
    return closed


async def block_of(session: Session, row: Execution, settings: Settings) -> Block | None:
    """Return what blocks an execution; None if it goes on by itself, or is let on from outside: by a person, an event, a
    signal or an instant."""
    if row.status == QUEUED:
        return await _queued(session, row)
    if row.status == SCHEDULED:
        return await _scheduled(session, row, settings)
    if row.status == WAITING:
        return await _suspended(session, row)
    if row.status == RUNNING:
        return await _running(session, row)
    return None


async def _queued(session: Session, row: Execution) -> Block | None:
    place = await admission_line.place(session, row.id)
    if place is None or place.gate_kind != "limit":
        return None
    limits = await admission_line.limits(session, place.lane, row.id)
    limit = queued.gate_of(place, limits)
    if limit is None or limit.breaker or not queued.is_full(limit):
        return None
    holders = await admission_line.holders(session, limit, MAX_EXECUTIONS)
    return _block(row, "limit", limit.ref, [holder.id for holder in holders], limit.held)


async def _scheduled(session: Session, row: Execution, settings: Settings) -> Block | None:
    workers = await presence.workers(session, row, settings)
    if not workers.able or workers.busy < workers.slots:
        return None
    held = await presence.held(session, row, settings)
    return _block(row, "worker", row.open_queue.removeprefix(WORK), held, workers.busy)


async def _suspended(session: Session, row: Execution) -> Block | None:
    wait = await waiting_for.suspended(session, row.id, MAX_EXECUTIONS)
    if wait is None or wait.signals or wait.remaining is not None:
        return None
    children = [id for *_, id in wait.children]
    return _block(row, "child", "", children, len(children))


async def _running(session: Session, row: Execution) -> Block | None:
    if row.kind != namespaces.ACTION:
        tasks = await open_tasks.open_ids(session, row.id, MAX_EXECUTIONS)
        return _block(row, "child", "", tasks, len(tasks))
    wait = await waiting_for.awaited_child(session, row.id)
    return None if wait is None else _block(row, "child", "", [wait.child], 1)


def _block(row: Execution, by: By, name: str, until: Iterable[UUID], count: int) -> Block | None:
    """Return a block, or None if its executions are not all known (`count`), or too many."""
    ids = frozenset(until)
    return Block(row.id, row.action, by, name, ids) if ids and len(ids) == count < MAX_EXECUTIONS else None
