"""Breakers: keys at which admission stops while the calls fail, and what is known of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Annotated

import orjson
from pydantic import Field

from penstock.store.session.database import Session, Transaction
from penstock.store.session.rows import rows_as


@dataclass(frozen=True, slots=True)
class BreakerState:
    """A breaker: closed, open or releasing. If it is grouped by parameters, each combination of values has its own breaker."""

    ref: Annotated[str, Field(description="The action with the breaker, or the limit that declares it.")]
    scope: str
    by: Annotated[
        list[str],
        Field(
            description="The parameters and labels that the breaker is grouped by: each combination of values has its own "
            "breaker. Empty: all executions share one breaker."
        ),
    ]
    group_value: Annotated[
        str, Field(description="The values of the parameters and labels in `by`, as text.")
    ]
    state: Annotated[
        str,
        Field(
            description="`closed`: calls start. `open`: none starts. `releasing`: a few start, and then more and more."
        ),
    ]
    since: Annotated[
        datetime | None,
        Field(
            description="The instant at which it opened, or began to release executions; null while it is closed."
        ),
    ]
    failed: Annotated[
        int,
        Field(
            description="The number of failures among `attempts`. While it is open: the number when it opened."
        ),
    ]
    attempts: Annotated[
        int,
        Field(
            description="The number of attempts that count: those among the latest `of` attempts that ended at most "
            "`within` seconds ago. While it is open: the number when it opened."
        ),
    ]
    failures: Annotated[int, Field(description="The number of failures that opens it.")]
    of: Annotated[int, Field(description="The number of latest attempts among which failures are counted.")]
    within: Annotated[float, Field(description="The seconds for which an attempt counts after its end.")]
    probe: Annotated[
        float,
        Field(
            description="The seconds from the opening, or from a failed probe, to the next probe: one call "
            "that tries the service."
        ),
    ]
    probe_in: Annotated[
        float | None, Field(description="The seconds to the next probe; null: none is planned.")
    ]
    probes: Annotated[int, Field(description="The number of failed probes since it opened.")]
    allowed: Annotated[
        int | None,
        Field(
            description="The number of calls that may run at once while the breaker closes; null: it is not closing."
        ),
    ]
    by_whom: Annotated[
        str | None,
        Field(
            description="The author that opened it by hand, such as `user:NAME`; null: it opened by itself, or is closed."
        ),
    ]
    reason: Annotated[
        str | None,
        Field(
            description="The reason that was given when it was opened by hand; null if it opened by itself, or "
            "none was given."
        ),
    ]
    waiting: Annotated[int, Field(description="The number of executions that wait for it.")]
    counts_running: Annotated[
        bool,
        Field(
            description="True: a call that is still running counts as a failure. So at most `failures` calls reach a service "
            "that is down before the breaker opens."
        ),
    ]


STATES = """
select l.ref, l.scope, l.by, k.group_value,
    case when b.limit_id is null then 'closed' when b.releasing_since is null then 'open' else 'releasing' end as state,
    coalesce(b.releasing_since, b.opened_at) as since,
    coalesce(b.failed, a.failed, 0)::integer as failed, coalesce(b.attempts, a.attempts, 0)::integer as attempts,
    (l.breaker ->> 'failures')::integer as failures, (l.breaker ->> 'of')::integer as of,
    (l.breaker ->> 'within')::float8 as within, (l.breaker ->> 'probe')::float8 as probe,
    case when b.releasing_since is null and b.probe_at is not null
        then extract(epoch from greatest(b.probe_at - clock_timestamp(), interval '0'))::float8 end as probe_in,
    coalesce(b.probes, 0) as probes, case when b.releasing_since is not null then b.allowed end as allowed,
    b.by as by_whom, b.reason, (
        select coalesce(sum(w.n), 0)::integer from lane g
        cross join lateral (select count(*) as n from waiter where waiter.lane = g.id) w
        where g.gate_limit = l.id and g.gate_group = k.group_value) as waiting,
    coalesce((l.breaker ->> 'counts_running')::boolean, false) as counts_running
from catalog c join concurrency_limit l on l.ref = c.ref and l.definition_id = c.definition_id
cross join lateral (
    select b.group_value from breaker b where b.limit_id = l.id
    union select a.group_value from breaker_attempt a
    where a.limit_id = l.id and a.ended_at > clock_timestamp() - make_interval(secs => (l.breaker ->> 'within')::float8)
    union select '' where l.by = '{}'
) k
left join breaker b on b.limit_id = l.id and b.group_value = k.group_value
left join lateral (
    select count(*) as attempts, count(*) filter (where a.failed) as failed from breaker_attempt a
    where a.limit_id = l.id and a.group_value = k.group_value
        and a.ended_at > clock_timestamp() - make_interval(secs => (l.breaker ->> 'within')::float8)
) a on true
where l.breaker is not null and ($1::text is null or l.ref = $1) and (c.kind = 'limit_by_hand'
    or c.kind = 'limit' and not exists (select from catalog h where h.kind = 'limit_by_hand' and h.ref = c.ref))
order by b.limit_id is null, l.ref, k.group_value limit $2
"""


async def states(session: Session, ref: str | None, limit: int) -> list[BreakerState]:
    """Return at most `limit` breakers, or those of one ref: open ones first, then by ref and key."""
    return rows_as(BreakerState, await session.fetch(STATES, ref, limit))


@dataclass(frozen=True, slots=True)
class BreakerKey:
    """The key of a breaker, and whether its breaker is not closed."""

    limit_id: int
    group_value: str
    is_open: bool


LOCK = """
with key as (
    -- The definition of a limit gives no labels, so the key has those of the options alone.
    select l.id as limit_id, case when l.by = '{}' then ''
        else group_values(l.by, null, null, $2::text::jsonb, l.definition_id, $3) end as group_value
    from catalog c
    join concurrency_limit l on l.ref = c.ref and l.definition_id = c.definition_id
    where c.ref = $1 and l.breaker is not null and c.kind in ('limit', 'limit_by_hand')
    order by c.kind desc limit 1
)
select limit_id, group_value, lock_keys(array[(limit_id, group_value)::limit_key])::text as locked from key
"""
IS_OPEN = "select from breaker where limit_id = $1 and group_value = $2"


async def lock(
    tx: Transaction, ref: str, parameters: str, labels: Mapping[str, str] = MappingProxyType({})
) -> BreakerKey | None:
    """Lock the key of a breaker for these parameters (JSON) and labels. Return None if the breaker does not exist."""
    rows = await tx.fetch(LOCK, ref, parameters, orjson.dumps({"labels": dict(labels)}).decode())
    if not rows:
        return None
    limit, group = rows[0]["limit_id"], rows[0]["group_value"]
    # A later statement, so that it sees what the former holder of the lock committed.
    return BreakerKey(limit, group, bool(await tx.fetch(IS_OPEN, limit, group)))


BY_OF = "select by from concurrency_limit where ref = $1 and breaker is not null order by id desc limit 1"


async def parameters_of(db: Session | Transaction, ref: str) -> list[str] | None:
    """Return the parameters and labels by which a breaker is grouped; None if it does not exist."""
    rows = await db.fetch(BY_OF, ref)
    return list(rows[0]["by"]) if rows else None


OPEN = """
select open_breaker($1, $2, $3, coalesce(max(b.failed), 0), coalesce(max(b.attempts), 0),
    $4, $5)
from breaker b where b.limit_id = $1 and b.group_value = $2
"""


async def open_(
    tx: Transaction, key: BreakerKey, probe_at: datetime | None, by: str, reason: str | None
) -> None:
    """Open the breaker of a key by hand. It probes at an instant; None: not before it is closed. The caller has locked the
    key."""
    await tx.fetch(OPEN, key.limit_id, key.group_value, probe_at, by, reason)


CLOSE = "delete from breaker where limit_id = $1 and group_value = $2"
RELEASE = """
update breaker set releasing_since = clock_timestamp(), allowed = 2, passed = 0 where limit_id = $1 and group_value = $2
"""
FORGET = "delete from breaker_attempt where limit_id = $1 and group_value = $2"
WAKE = "insert into wake (limit_id, group_value) values ($1, $2)"


async def close(tx: Transaction, key: BreakerKey, is_gradual: bool) -> None:
    """Close the breaker of a key, or begin its gradual release. Earlier attempts no longer count. The caller has locked
    the key."""
    await tx.fetch(RELEASE if is_gradual else CLOSE, key.limit_id, key.group_value)
    await tx.fetch(FORGET, key.limit_id, key.group_value)
    await tx.fetch(WAKE, key.limit_id, key.group_value)
