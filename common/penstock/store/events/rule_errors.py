"""Rules that failed on events. Their enforcements are kept with the error, until they are evaluated again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated
from uuid import UUID

from pydantic import Field

from penstock.store.events.rule_matches import NewEnforcement
from penstock.store.session.database import Session, Transaction
from penstock.store.session.rows import rows_as


@dataclass(frozen=True, slots=True)
class RuleError:
    """A rule that failed on an event, and the error."""

    event_id: UUID
    rule: str
    error: Annotated[str, Field(description="The reason why the rule failed.")]
    at: Annotated[datetime, Field(description="The instant at which it failed.")]
    changed: Annotated[bool, Field(description="True if the rule has another version now.")]
    gone: Annotated[bool, Field(description="True if the rule is disabled or does not exist any more.")]


NEWEST = """
select e.event_id, e.rule, e.error, e.created_at as at, coalesce(c.definition_id <> e.definition_id, false) as changed,
    c.ref is null as gone
from enforcement e left join catalog c on c.kind = 'rule' and c.ref = e.rule and c.enabled
where e.error is not null and ($1::text is null or e.rule = $1)
order by e.event_id desc, e.rule limit $2
"""


async def newest(session: Session, rule: str | None, limit: int) -> list[RuleError]:
    """Return the errors of one rule (None: of all), those of the newest events first."""
    return rows_as(RuleError, await session.fetch(NEWEST, rule, limit))


SINCE = """
select e.event_id, e.rule, e.error, e.created_at as at, false as changed, false as gone
from enforcement e where e.error is not null and e.created_at > $1 order by e.created_at limit $2
"""


async def since(session: Session, at: datetime, limit: int) -> list[RuleError]:
    """Return the errors after the instant `at`, the oldest first."""
    return rows_as(RuleError, await session.fetch(SINCE, at, limit))


@dataclass(frozen=True, slots=True)
class RuleFailures:
    """The number of events on which a rule failed, and the error on the newest of them. `enabled`: the rule still
    matches events."""

    rule: str
    count: int
    error: str
    enabled: bool


COUNTS = """
select e.rule, count(*) as count, (array_agg(e.error order by e.event_id desc))[1] as error,
    coalesce(bool_or(c.enabled), false) as enabled
from enforcement e left join catalog c on c.kind = 'rule' and c.ref = e.rule
where e.error is not null group by e.rule order by 2 desc, 1
"""


async def counts(session: Session) -> list[RuleFailures]:
    """Return the failures by rule, the rule with the most first."""
    return rows_as(RuleFailures, await session.fetch(COUNTS))


Place = tuple[UUID, str]
"""The id of an event, and the ref of a rule."""

AFTER = """
select event_id, rule from enforcement
where error is not null and ($1::text is null or rule = $1) and ($2::uuid is null or event_id = $2)
    and ($3::uuid is null or (event_id, rule) > ($3, $4::text))
order by event_id, rule limit $5 for no key update skip locked
"""


async def hold(
    tx: Transaction, rule: str | None, event: UUID | None, cursor: Place | None, limit: int
) -> list[Place]:
    """Lock the next `limit` failed enforcements after `cursor`, of a rule and an event if these are set. Locked rows
    are skipped."""
    event_id, name = cursor or (None, None)
    rows = await tx.fetch(AFTER, rule, event, event_id, name, limit)
    return [(row["event_id"], row["rule"]) for row in rows]


RERUN = """
select messages, started from rerun_enforcements($1::uuid[], $2::text[], $3::boolean[], $4::uuid[], $5::integer[],
    $6::integer[], $7::integer[], $8::smallint[], $9::text[], $10::text[], $11::text[])
"""


async def rerun(tx: Transaction, results: Sequence[tuple[Place, NewEnforcement | None]]) -> list[UUID]:
    """Store the new results of rules on events; None: the rule does not match any more. Return the executions that
    this starts."""
    new = [enforcement for _, enforcement in results]
    [row] = await tx.stage(
        RERUN,
        [event for (event, _), _ in results],
        [rule for (_, rule), _ in results],
        [enforcement is not None for enforcement in new],
        [enforcement and enforcement.id for enforcement in new],
        [enforcement and enforcement.definition_id for enforcement in new],
        [enforcement and enforcement.namespace_id for enforcement in new],
        [enforcement and enforcement.action_definition_id for enforcement in new],
        [enforcement and enforcement.priority for enforcement in new],
        [enforcement and enforcement.params for enforcement in new],
        [enforcement and enforcement.options for enforcement in new],
        [enforcement and enforcement.error for enforcement in new],
    )
    return list(row["started"])
