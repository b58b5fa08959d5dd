"""Who lives that could help: executors, and workers that serve a route and have an action."""

from __future__ import annotations

from penstock.operate.why.answer import count
from penstock.settings import Settings
from penstock.store.database import Row, Session
from penstock.store.queues import WORK

EXECUTORS = """
select count(*) from process
where kind = 'executor' and state <> 'dead' and beat_at > clock_timestamp() - make_interval(secs => $1)
"""
WORKERS = """
select count(*) as live,
    count(*) filter (where $2 = any (routes)) as on_route,
    count(*) filter (where $3 = any (actions)) as with_action,
    count(*) filter (where fits and state <> 'active') as leaving,
    count(*) filter (where fits and state = 'active') as able,
    coalesce(sum(concurrency) filter (where fits and state = 'active'), 0)::integer as slots,
    coalesce(sum(cardinality(holding)) filter (where fits and state = 'active'), 0)::integer as busy
from (select *, $2 = any (routes) and $3 = any (actions) as fits from process
      where kind = 'worker' and state <> 'dead' and beat_at > clock_timestamp() - make_interval(secs => $1)) p
"""
NO_EXECUTOR = (
    "No executor is alive, so nothing is scheduled. Start one with `penstock executor`, or everything with "
    "`penstock dev`."
)


async def executors(session: Session, settings: Settings) -> int:
    """How many live."""
    return int((await session.fetch(EXECUTORS, settings.stale_threshold))[0][0])


async def workers(session: Session, row: Row, settings: Settings) -> Row:
    """Counts of the workers that live; `able` are those that serve its route, have its action and take work, with their
    `slots`, of which so many were `busy` at their last heartbeats."""
    return (
        await session.fetch(WORKERS, settings.stale_threshold, row["queue"].removeprefix(WORK), row["action"])
    )[0]


def missing(row: Row, found: Row) -> str:
    """Says which worker is missing, and what to start."""
    route = row["queue"].removeprefix(WORK)
    if found["leaving"]:
        near = f"{count(found['leaving'], 'worker')} could, and will take no more work"
    elif found["on_route"]:
        near = f"{count(found['on_route'], 'worker')} of that route without the action"
    elif found["with_action"]:
        near = f"{count(found['with_action'], 'worker')} with the action on other routes"
    else:
        near = (
            f"{count(found['live'], 'other worker')} alive" if found["live"] else "no worker is alive at all"
        )
    return (
        f"Waits for a worker that serves the route {route} and has {row['action']}: there is none ({near}). "
        f"Start one: penstock worker --module FILE --routes {route}"
    )
