"""Ended executions that other actions follow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import orjson

from penstock.language.moves import COMPLETED
from penstock.store.session.database import Transaction
from penstock.tracing import Carrier


@dataclass(slots=True)
class FollowedExecution:
    """An execution that has ended, and the refs of the actions that follow such an end. `trace` is its trace context,
    None if it is not traced. The callbacks in `told_parameters` also receive `parameters`, those of the execution. `chained`: the
    execution belongs to chains, which its callbacks join."""

    id: UUID
    status: str
    tenant: str
    callbacks: list[str]
    result: Any
    error: Any
    trace: Carrier | None = None
    told_parameters: frozenset[str] = frozenset()
    parameters: Any = None
    chained: bool = False


FOLLOWED = """
select e.id, e.status, split_part(n.name, '::', 1) as tenant, r.result::text as result, r.error::text as error,
    d.body -> case when e.status = $2 then 'on_success' else 'on_failure' end as callbacks,
    d.body -> 'local_callbacks' as told_parameters,
    case when d.body ? 'local_callbacks' then (
        select p.params::text from payload p where p.execution_id = e.id) end as parameters,
    (select ((p.origin -> 'trace') - 'links')::text from payload p where p.execution_id = e.id and p.origin ? 'trace') as trace,
    exists (select from chain_step) and exists (select from chain_step s where s.id = root_of(e.id)) as chained
from execution e
join namespace n on n.id = e.namespace_id
join definition d on d.id = e.definition_id
left join result r on r.execution_id = e.id
where e.id = any($1::uuid[])
"""


async def read_followed(tx: Transaction, ids: Sequence[UUID]) -> list[FollowedExecution]:
    """Return these ended executions with their results and callbacks."""
    return [
        FollowedExecution(
            row["id"],
            row["status"],
            row["tenant"],
            list(orjson.loads(row["callbacks"])) if row["callbacks"] else [],
            orjson.loads(row["result"]) if row["result"] else None,
            orjson.loads(row["error"]) if row["error"] else None,
            orjson.loads(row["trace"]) if row["trace"] else None,
            frozenset(orjson.loads(row["told_parameters"]) if row["told_parameters"] else ()),
            orjson.loads(row["parameters"]) if row["parameters"] else None,
            row["chained"],
        )
        for row in await tx.fetch(FOLLOWED, ids, COMPLETED)
    ]


JOIN_CHAINS = "select join_chains($1::uuid[], $2::uuid[])"


async def join_chains(tx: Transaction, causes: Sequence[UUID], ids: Sequence[UUID]) -> None:
    """Let the callbacks `ids` join the chains of the executions that they follow. Cause i belongs to id i."""
    await tx.fetch(JOIN_CHAINS, list(causes), list(ids))
