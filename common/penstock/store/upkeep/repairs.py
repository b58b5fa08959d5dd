"""Repairs of violated invariants. Each one checks again under the locks, and leaves alone rows that are right by
then."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

from penstock.store.session.database import Transaction

Ids: TypeAlias = Sequence[str]
Repair: TypeAlias = Callable[[Transaction, Ids], Awaitable[None]]
"""A repair of the rows with these ids: executions, workflows or lanes, as the query of the invariant returned them."""


async def take_back_unowned(tx: Transaction, ids: Ids) -> None:
    await tx.stage("select mend_owners($1::uuid[]) as messages", ids)


async def free_slots(tx: Transaction, ids: Ids) -> None:
    await tx.stage("select mend_slots($1::uuid[]) as messages", ids)


async def look_at_gates(tx: Transaction, ids: Ids) -> None:
    await tx.stage("select mend_gates($1::uuid[]) as messages", ids)


async def put_back_into_line(tx: Transaction, ids: Ids) -> None:
    await tx.stage("select mend_lines($1::uuid[]) as messages", ids)


async def start_enforced(tx: Transaction, ids: Ids) -> None:
    await tx.stage("select mend_enforcements($1::uuid[]) as messages", ids)


async def make_live(tx: Transaction, ids: Ids) -> None:
    await tx.stage("select mend_forgotten($1::uuid[]) as messages", ids)


async def make_not_live(tx: Transaction, ids: Ids) -> None:
    await tx.stage("select mend_live($1::uuid[]) as messages", ids)


async def note_lost_outcomes(tx: Transaction, ids: Ids) -> None:
    await tx.stage("select mend_outcomes($1::uuid[]) as messages", ids)


async def take_back_orphans(tx: Transaction, ids: Ids) -> None:
    await tx.stage("select mend_orphans($1::uuid[]) as messages", ids)


async def run_silent_again(tx: Transaction, ids: Ids) -> None:
    await tx.stage("select mend_silent($1::uuid[]) as messages", ids)


async def send_to_archive(tx: Transaction, ids: Ids) -> None:
    await tx.stage("select mend_finished($1::uuid[]) as messages", ids)


async def wake_suspended(tx: Transaction, ids: Sequence[str]) -> None:
    await tx.stage("select mend_suspended($1::uuid[]) as messages", ids)


async def forget_steps(tx: Transaction, ids: Sequence[str]) -> None:
    await tx.stage("select mend_steps($1::uuid[]) as messages", ids)
