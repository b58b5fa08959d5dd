"""The rows of subscriptions, and of the calls that are to be made to them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

import orjson
from pydantic import Field

from penstock.store.session.database import Session, Transaction
from penstock.store.session.rows import rows_as


@dataclass(frozen=True, slots=True)
class Subscription:
    """A subscription, without its secret."""

    name: Annotated[str, Field(description="The name of the subscription.")]
    url: Annotated[str, Field(description="The URL that receives the requests.")]
    statuses: Annotated[list[str], Field(description="The statuses of executions that are reported.")]
    tenant: Annotated[str | None, Field(description="Only executions of this tenant. null: of all tenants.")]
    action: Annotated[
        str | None, Field(description="Only executions of these actions, such as `shop.*`. null: of all.")
    ]
    workflow: Annotated[
        str | None,
        Field(
            description="Only executions of this workflow and, if `tasks` is true, of its tasks. null: no restriction."
        ),
    ]
    tasks: Annotated[bool, Field(description="True: tasks of workflows are reported, too.")]
    labels: Annotated[
        dict[str, str],
        Field(description="Only executions that have all of these labels. Empty: no restriction."),
    ]
    created_by: str
    created_at: datetime
    delivered_at: Annotated[
        datetime | None, Field(description="The instant of the last delivered call; null: there was none.")
    ]
    failing_since: Annotated[
        datetime | None,
        Field(description="The instant since which no call has been delivered; null: the last call was."),
    ]
    error: Annotated[str | None, Field(description="The error of the last call; null: it was delivered.")]
    dropped: Annotated[int, Field(description="The number of calls that were dropped.")]
    disabled_at: Annotated[
        datetime | None,
        Field(
            description="The instant at which it was disabled because its calls failed for too long or its URL is gone; "
            "null: it is enabled."
        ),
    ]
    disabled_because: Annotated[
        str | None, Field(description="The reason why it was disabled; null: it is enabled.")
    ]
    waiting: Annotated[int, Field(description="The number of calls that were not delivered yet.")]


COLUMNS = """name, url, statuses, tenant, action, workflow, tasks, labels::text as labels, created_by, created_at,
    delivered_at, failing_since, error, dropped, disabled_at, disabled_because,
    (select count(*) from delivery d where d.subscription = s.name) as waiting"""
PUT = f"""
insert into subscription as s (name, url, statuses, tenant, action, workflow, tasks, labels, created_by)
values ($1, $2, $3, $4, $5, $6, $7, $8::text::jsonb, $9)
on conflict (name) do update set url = excluded.url, statuses = excluded.statuses,
    tenant = excluded.tenant, action = excluded.action, workflow = excluded.workflow, tasks = excluded.tasks,
    labels = excluded.labels, failing_since = null, error = null, disabled_at = null, disabled_because = null
where not $10
returning {COLUMNS}, (xmax = 0) as is_new
"""
SUBSCRIBE = "select subscribe_cluster()"


@dataclass(frozen=True, slots=True)
class NewSubscription:
    name: str
    url: str
    statuses: Sequence[str]
    tenant: str | None
    action: str | None
    workflow: str | None
    tasks: bool
    labels: Mapping[str, str]


async def put(
    tx: Transaction, subscription: NewSubscription, by: str, only_new: bool = False
) -> tuple[Subscription, bool] | None:
    """Insert or change a subscription, and enable it. Return it, and True if it is new. With `only_new`, return None if it
    exists, and change nothing."""
    rows = await tx.fetch(
        PUT,
        subscription.name,
        subscription.url,
        list(subscription.statuses),
        subscription.tenant,
        subscription.action,
        subscription.workflow,
        subscription.tasks,
        orjson.dumps(dict(subscription.labels)).decode(),
        by,
        only_new,
    )
    if not rows:
        return None
    await tx.fetch(SUBSCRIBE)
    values = dict(rows[0])
    is_new = values.pop("is_new")
    return _subscriptions([values])[0], is_new


def _subscriptions(rows: Iterable[Any]) -> list[Subscription]:
    return rows_as(Subscription, [{**row, "labels": orjson.loads(row["labels"])} for row in rows])


LIST = f"select {COLUMNS} from subscription s order by name"


async def listed(session: Session) -> list[Subscription]:
    return _subscriptions(await session.fetch(LIST))


DELETE = """
with forgotten as (delete from secret where tenant = '' and name = 'subscription:' || $1)
delete from subscription where name = $1 returning name
"""


async def delete(tx: Transaction, name: str) -> bool:
    """Delete a subscription with its secret and its waiting calls. Return False if it does not exist."""
    deleted = bool(await tx.fetch(DELETE, name))
    await tx.fetch(SUBSCRIBE)
    return deleted


ENABLE = f"""
update subscription s set disabled_at = null, disabled_because = null, failing_since = null, error = null where name = $1
returning {COLUMNS}
"""


async def enable(tx: Transaction, name: str) -> Subscription | None:
    """Enable a subscription again, and return it; None if it does not exist."""
    enabled = _subscriptions(await tx.fetch(ENABLE, name))
    await tx.fetch(SUBSCRIBE)
    return enabled[0] if enabled else None


SUBSCRIBED = "select subscribed from cluster"


async def subscribed(session: Session) -> list[str]:
    """Return the statuses that at least one enabled subscription names."""
    statuses: list[str] = (await session.fetch(SUBSCRIBED))[0]["subscribed"]
    return statuses


MAKE = "select make_deliveries($1, $2) as moves"


async def make_deliveries(session: Session, moves: int, waiting: int) -> int:
    """Turn at most `moves` recorded moves into calls, unless a subscription has `waiting` calls already. Return the
    number of moves."""
    move_count: int = (await session.fetch(MAKE, moves, waiting))[0]["moves"]
    return move_count


@dataclass(frozen=True, slots=True)
class Delivery:
    """A call to make. `tries` counts this try. `now` is the database's clock."""

    id: UUID
    subscription: str
    url: str
    body: str
    tries: int
    now: datetime


LEASE = """
select c.id, c.subscription, c.url, c.body, c.tries, c.now
from (select count(*)::integer as number from subscription where disabled_at is null) s
cross join lateral lease_calls($1, greatest(1, least($2, $3 / greatest(1, s.number))), $4, $5) c
"""


async def lease_calls(
    session: Session, busy: Collection[str], per_subscription: int, shared: int, limit: int, seconds: float
) -> list[Delivery]:
    """Lease at most `limit` due calls, and none of the subscriptions `busy`. A subscription gets its equal share of
    `shared`, at least 1 and at most `per_subscription`. A call that is not settled within `seconds` can be leased again
    by another executor."""
    return rows_as(Delivery, await session.fetch(LEASE, list(busy), per_subscription, shared, limit, seconds))


@dataclass(frozen=True, slots=True)
class Called:
    """The outcome of a call. Without an `error` it was answered. Otherwise it is retried in `delay` seconds, or
    dropped (None). `gone`: the subscriber answered that it is gone."""

    delivery: Delivery
    error: str | None = None
    delay: float | None = None
    gone: bool = False


SETTLE = "select settle_deliveries($1, $2, $3, $4, $5, $6) as disabled"


async def settle(session: Session, calls: Sequence[Called], patience: float) -> list[str]:
    """Record the outcomes of calls. Return the names of the subscriptions that were disabled, for instance after
    `patience` seconds without a delivered call."""
    disabled: list[str] | None = (
        await session.fetch(
            SETTLE,
            [call.delivery.id for call in calls],
            [call.delivery.subscription for call in calls],
            [call.error for call in calls],
            [call.delay for call in calls],
            [call.gone for call in calls],
            patience,
        )
    )[0]["disabled"]
    return disabled or []
