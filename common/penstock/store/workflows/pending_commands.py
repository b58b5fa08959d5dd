"""The commands of users to workflows, and their outcomes."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

import orjson

from penstock.engine.commands import Command
from penstock.store.session.database import Transaction

PENDING = """
select id, execution_id, kind, task, value::text as value from workflow_command
where execution_id = any($1::uuid[]) and obeyed_at is null order by id
"""


async def read_pending(tx: Transaction, workflows: Sequence[UUID]) -> dict[UUID, list[Command]]:
    """Return the commands that these workflows have not obeyed yet, in order."""
    by_workflow: dict[UUID, list[Command]] = {}
    for row in await tx.fetch(PENDING, workflows):
        value = None if row["value"] is None else orjson.loads(row["value"])
        command = Command(row["id"], row["kind"], row["task"], value)
        by_workflow.setdefault(row["execution_id"], []).append(command)
    return by_workflow


MARK_FOLLOWED = """
update workflow_command c set obeyed_at = clock_timestamp(), error = x.error
from unnest($1::bigint[], $2::text[]) as x (id, error) where c.id = x.id
"""


async def mark_followed(tx: Transaction, commands: Sequence[tuple[int, str | None]]) -> None:
    """Mark commands (by id) as obeyed, or as refused for a reason."""
    await tx.fetch(MARK_FOLLOWED, [id for id, _ in commands], [refusal for _, refusal in commands])
