"""Recent moves of executions, for watchers. The moves are read from the history, so that a move costs nothing more."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from penstock.store.session.database import Session
from penstock.store.session.rows import rows_as


@dataclass(frozen=True, slots=True)
class Change:
    """A move of an execution from one status (None: it is new) to another."""

    id: UUID
    at: datetime
    old: str | None
    new: str
    attempt: int
    reason: str | None
    namespace: str
    action: str
    parent: UUID | None
    task: str | None

    @property
    def tenant(self) -> str:
        return self.namespace.partition("::")[0]


SETTLED = """
select greatest(
    -- Sessions of other roles (without a state), and those of a standby's primary, cannot be seen.
    case when not pg_is_in_recovery() and not coalesce(bool_or(a.state is null), false) then least(
        statement_timestamp(),
        -- A session with a transaction id may have moved rows since its transaction began. A session that runs a statement
        -- may have moved rows since that statement began.
        min(case when a.backend_xid is not null then a.xact_start when a.state = 'active' then a.query_start end)) end,
    statement_timestamp() - make_interval(secs => $1)) - interval '1 microsecond' as at
from pg_stat_activity a
where a.datname = current_database() and a.backend_type = 'client backend' and a.pid <> pg_backend_pid()
"""


async def settled(session: Session, max_seconds: float) -> datetime:
    """Return the instant up to which a later query sees every move. Older moves are committed, except in transactions
    that have been open for longer than `max_seconds`."""
    at: datetime = (await session.fetch(SETTLED, max_seconds))[0]["at"]
    return at


AFTER = "select id, at, old, new, attempt, reason, namespace, action, parent, task from moves_after($1, $2)"


async def after(session: Session, at: datetime, limit: int) -> list[Change]:
    """Return the moves after an instant, oldest first; if there are more than `limit`, any `limit` of them. Moves of
    archived executions are left out."""
    return rows_as(Change, await session.fetch(AFTER, at, limit))
