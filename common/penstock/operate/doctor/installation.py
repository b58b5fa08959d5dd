"""Penstock's own tables, services and messages."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import orjson

from penstock.errors import PenstockError
from penstock.language import labels
from penstock.operate.doctor.finding import Finding, bad, ok, warning
from penstock.operate.doctor.postgres import Connection
from penstock.settings import Settings
from penstock.store import migrate
from penstock.store.database import Database
from penstock.store.schedules import health

PARTITIONED = ("event", "history", "archive", "log_line", "fire")
ANY_DAY = frozenset({"fire"})
"""Those whose default partition is in use: a backfill makes fires of days long past."""
STUCK = 60.0
"""Seconds after which a staged message should have been published."""

PARTITIONS = (
    "select unnest($1::text[]) except select relname::text from pg_class where pg_table_is_visible(oid)"
)
ALIVE = """
select kind, count(*) as count from process
where state <> 'dead' and beat_at > clock_timestamp() - make_interval(secs => $1) group by kind
"""
UNSERVED = """
select n.queue, count(*) as count, max(d.body ->> 'labels') as labels
from live l join execution e on e.id = l.execution_id
join namespace n on n.id = e.namespace_id join definition d on d.id = e.definition_id
where e.status = 'scheduled' and n.kind = 'action' and not exists (
    select from process p where p.kind = 'worker' and substr(n.queue, 6) = any(p.routes) and n.action = any(p.actions)
        and p.state = 'active' and p.beat_at > clock_timestamp() - make_interval(secs => $1))
group by n.queue, d.body -> 'labels' order by 2 desc limit 5
"""
OUTBOX = """
select queue, count(*) as count, max(tries) as tries,
    extract(epoch from clock_timestamp() - min(created_at))::float8 as age, max(error) as error
from outbox where created_at < clock_timestamp() - make_interval(secs => $1) and queue not like 'work.%'
group by queue order by 2 desc limit 5
"""


async def findings(connection: Connection, settings: Settings) -> list[Finding]:
    schema = await _schema(connection)
    if schema.state != "ok":
        return [schema]
    return [
        schema,
        *await _partitions(connection),
        *await _services(connection, settings),
        *await _unserved(connection, settings),
        *await _outbox(connection),
        await _dead_letters(connection),
        await _schedules(settings),
    ]


async def _schema(connection: Connection) -> Finding:
    current = await migrate.current(connection.fetch)
    try:
        missing = await migrate.missing(connection.fetch)
    except PenstockError as error:
        return bad("schema", str(error), error.hint or "")
    if not missing:
        return ok("schema", f"at {current}, as this version needs")
    return bad(
        "schema", f"at {current or 'nothing'}, lacks {migrate.named(missing)}", "Run `penstock migrate`."
    )


async def _partitions(connection: Connection) -> list[Finding]:
    today = datetime.now(UTC).date()
    wanted = [f"{table}_{day:%Y%m%d}" for table in PARTITIONED for day in (today, today + timedelta(days=1))]
    missing = sorted(row[0] for row in await connection.fetch(PARTITIONS, wanted))
    found = [
        bad(
            "partitions",
            f"missing: {', '.join(missing)}",
            "Run an executor: it makes them once an hour. Or at once, in psql: select make_partitions(7)",
        )
        if missing
        else ok("partitions", f"those of today and tomorrow are there ({', '.join(PARTITIONED)})")
    ]
    full = [
        table
        for table in PARTITIONED
        if table not in ANY_DAY and await connection.fetchval(f"select exists (select from {table}_default)")
    ]
    found.append(
        warning(
            "default partitions",
            f"rows of days that had no partition are in {', '.join(f'{table}_default' for table in full)}",
            "They are read as ever, and go with their time, row by row. Keep an executor running, so that days get "
            "their partitions in time.",
        )
        if full
        else ok("default partitions", "empty")
    )
    return found


async def _services(connection: Connection, settings: Settings) -> list[Finding]:
    alive = {row["kind"]: row["count"] for row in await connection.fetch(ALIVE, settings.stale_threshold)}
    found = []
    for kind, does, start in (
        ("executor", "nothing is scheduled", "penstock executor"),
        ("worker", "nothing is run", "penstock worker --module FILE"),
    ):
        if alive.get(kind):
            found.append(ok(f"{kind}s", f"{alive[kind]} alive"))
        else:
            fix = f"Start one with `{start}`, or everything with `penstock dev`."
            found.append(warning(f"{kind}s", f"none is alive: {does}", fix))
    return found


async def _unserved(connection: Connection, settings: Settings) -> list[Finding]:
    found = []
    for row in await connection.fetch(UNSERVED, settings.stale_threshold):
        asked = labels.written(orjson.loads(row["labels"] or "{}"))
        what = f", carries {asked}" if asked else ""
        more = f" --labels {asked}" if asked else ""
        found.append(
            bad(
                row["queue"],
                f"{row['count']} executions wait for a worker that has their action{what} and serves this route",
                f"Start one: `penstock worker --module FILE --routes {row['queue'].removeprefix('work.')}{more}`.",
            )
        )
    return found


async def _outbox(connection: Connection) -> list[Finding]:
    rows = await connection.fetch(OUTBOX, STUCK)
    if not rows:
        return [ok("outbox", "nothing waits to be published")]
    return [
        warning(
            f"outbox {row['queue']}",
            f"{row['count']} messages are up to {row['age']:.0f} s old, tried {row['tries']} times"
            + (f" ({row['error']})" if row["error"] else ""),
            "An executor publishes them once it runs and the broker takes them: see the lines on both.",
        )
        for row in rows
    ]


async def _schedules(settings: Settings) -> Finding:
    database = Database(settings, role="doctor")
    try:
        found = await health.troubles(database.session())
    finally:
        await database.close()
    if not found:
        return ok("schedules", "all are well")
    named = ", ".join(dict.fromkeys(f"{one.schedule or 'all'} {one.kind}" for one in found[:5]))
    more = f" and {len(found) - 5} more" if len(found) > 5 else ""
    return warning("schedules", f"{named}{more}", "`penstock schedule health` says what to do.")


async def _dead_letters(connection: Connection) -> Finding:
    count = await connection.fetchval("select count(*) from dead_letter")
    if not count:
        return ok("dead letters", "none")
    return warning(
        "dead letters", f"{count}", "See why with `penstock dead-letters list`; then replay or drop them."
    )
