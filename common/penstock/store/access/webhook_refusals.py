"""The rows that count refused calls of webhooks and callbacks, by webhook, reason and hour."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from pydantic import Field

from penstock.store.session.database import Session
from penstock.store.session.rows import rows_as

KEPT_DAYS = 7
"""The days for which refusals are counted and kept."""


@dataclass(frozen=True, slots=True)
class WebhookRefusals:
    """The calls of a webhook, or of callbacks, that were refused for one reason in the last seven days."""

    webhook: Annotated[
        str | None,
        Field(
            description="The name of the webhook; null: no webhook has the called name, or the calls were "
            "callbacks."
        ),
    ]
    reason: Annotated[
        str,
        Field(
            description="The reason, such as `wrong signature`, `unknown webhook` or `too large`. The reasons of callbacks "
            "begin with `callback:`."
        ),
    ]
    calls: Annotated[int, Field(description="The number of calls that were refused in the last seven days.")]
    last_at: Annotated[datetime, Field(description="The instant of the last refused call.")]
    last_name: Annotated[
        str | None,
        Field(
            description="The last called name that no webhook has. null: the calls were those of a webhook or callbacks, "
            "or the name is not valid."
        ),
    ]


COUNT = """
insert into webhook_refusal as r (webhook, reason, hour, calls, last_at, last_name)
select coalesce(w.name, ''), d.reason, date_bin('1 hour', now(), 'epoch'), sum(d.calls), clock_timestamp(),
    max(nullif(d.name, '')) filter (where w.name is null)
from unnest($1::text[], $2::text[], $3::bigint[]) as d (name, reason, calls) left join webhook w on w.name = d.name
group by 1, 2 order by 1, 2
on conflict (webhook, reason, hour) do update
set calls = r.calls + excluded.calls, last_at = excluded.last_at, last_name = coalesce(excluded.last_name, r.last_name)
"""


async def count(session: Session, calls: Mapping[tuple[str, str], int]) -> None:
    """Add the numbers of refused calls, by called name and reason. All names that no webhook has share a row."""
    names, reasons = [name for name, _ in calls], [reason for _, reason in calls]
    await session.fetch(COUNT, names, reasons, list(calls.values()))


LIST = """
select nullif(webhook, '') as webhook, reason, sum(calls)::bigint as calls, max(last_at) as last_at,
    (array_agg(last_name order by hour desc) filter (where last_name is not null))[1] as last_name
from webhook_refusal
where hour > now() - make_interval(days => $1) and ($2::text is null or webhook = $2)
group by webhook, reason order by max(last_at) desc, webhook, reason
"""


async def listed(session: Session, webhook: str | None = None) -> list[WebhookRefusals]:
    """Return the refusals of the last seven days by webhook and reason, the newest first. They are those of all webhooks,
    of unknown names and of callbacks, or those of one webhook."""
    return rows_as(WebhookRefusals, await session.fetch(LIST, KEPT_DAYS, webhook))
