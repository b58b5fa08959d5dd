"""The checks of Penstock's own tables, services and messages."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import UTC, timedelta
from importlib import import_module

import orjson

from penstock.errors import PenstockError
from penstock.language.terms import labels
from penstock.operate import routes
from penstock.operate.doctor import (
    connections,
    durable,
    master_keys,
    policies,
    remote_workers,
    restores,
    waits,
)
from penstock.operate.doctor.finding import Finding, bad, ok, warning
from penstock.operate.why.answer import count
from penstock.settings import Settings
from penstock.store.access import subscriptions
from penstock.store.events import rule_errors
from penstock.store.outbox import dead_letters, outbox, queues
from penstock.store.processes import presence
from penstock.store.schedules import health
from penstock.store.schema import partitions
from penstock.store.session import clock
from penstock.store.session.database import Session
from penstock.store.upkeep import retention

ANY_DAY = frozenset({"fire"})
"""Tables that use their default partition regularly: a backfill records fires of days long past."""
STUCK = 60.0
"""Seconds after which a staged message should have been published."""


async def findings(session: Session, settings: Settings) -> list[Finding]:
    schema = await _schema(session)
    if schema.state != "ok":
        return [schema]
    return [
        schema,
        *await _partitions(session),
        *await restores.findings(session),
        await _retention(session, settings),
        *await _services(session, settings),
        *await remote_workers.findings(session, settings),
        await connections.finding(session, settings),
        *await _unserved(session, settings),
        *await _routes(session, settings),
        *await _unlike(session, settings),
        *await _outbox(session),
        await _dead_letters(session),
        *await policies.findings(session, settings),
        await _rules(session),
        await _schedules(session),
        *await durable.findings(session),
        *await waits.findings(session, settings),
        await _subscriptions(session),
        *await master_keys.findings(session, settings),
    ]


async def is_migrated(session: Session) -> bool:
    """Return True if the schema is as this version needs it."""
    return (await _schema(session)).state == "ok"


async def is_executor_alive(session: Session, settings: Settings) -> bool:
    """Return whether an executor is alive; False if there is no schema yet."""
    if (await _schema(session)).state != "ok":
        return False
    return bool((await presence.by_kind(session, settings.stale_threshold)).get("executor"))


async def served_queues(session: Session, settings: Settings) -> list[str]:
    """Return the queues of the routes that workers serve; none if there is no schema yet."""
    if (await _schema(session)).state != "ok":
        return []
    served = await presence.served_routes(session, settings.stale_threshold)
    return [queues.WORK + route for route in served]


async def _schema(session: Session) -> Finding:
    # Alembic takes a third of a second to load: it is loaded only when it is needed, and in a thread, so that no
    # other request waits.
    await asyncio.to_thread(import_module, "penstock.store.schema.migrate")
    from penstock.store.schema import migrate

    current = await migrate.current(session.fetch)
    try:
        missing = await migrate.missing(session.fetch)
    except PenstockError as error:
        return bad("schema", str(error), error.hint or "")
    if not missing:
        return ok("schema", f"at {current}, as this version needs")
    return bad(
        "schema", f"at {current or 'nothing'}, lacks {migrate.named(missing)}", "Run `penstock migrate`."
    )


async def _partitions(session: Session) -> list[Finding]:
    today = (await clock.now(session)).astimezone(UTC).date()
    tables = await partitions.tables(session)
    names = [f"{table}_{day:%Y%m%d}" for table in tables for day in (today, today + timedelta(days=1))]
    missing = await partitions.missing(session, names)
    findings = [
        bad(
            "partitions",
            f"missing: {', '.join(missing)}",
            "Run an executor: it creates the partitions once an hour. To create them at once, in psql: "
            "select make_partitions(7)",
        )
        if missing
        else ok("partitions", f"the partitions of today and tomorrow exist ({', '.join(tables)})")
    ]
    full = [table for table in tables if table not in ANY_DAY and await partitions.has_strays(session, table)]
    findings.append(
        warning(
            "default partitions",
            f"rows of days that had no partition are in {', '.join(f'{table}_default' for table in full)}",
            "These rows are still read, and are deleted one by one when their retention is over. Keep an "
            "executor running, so that partitions are created in time.",
        )
        if full
        else ok("default partitions", "empty")
    )
    return findings


async def _retention(session: Session, settings: Settings) -> Finding:
    held = [
        f"{name} ({', '.join(f'{need.rows} rows for {need.needed_by}' for need in needs)})"
        for table, days in retention.partitioned(settings).items()
        for name in await partitions.old(session, table, days)
        if (needs := await partitions.needs(session, name))
    ]
    if not held:
        return ok("retention", "no old partition is held back")
    suffix = f"; and {len(held) - 5} more" if len(held) > 5 else ""
    return warning(
        "retention",
        "partitions are kept past their retention, because stored work still needs rows in them: "
        f"{'; '.join(held[:5])}{suffix}",
        "Run executors until this work is done: they match events, close bursts, and record the ends of "
        "fires. `unmatched` means events whose rules have not been evaluated, and `payload` means open "
        "reruns. Each other word is the table that refers to the rows.",
    )


async def _services(session: Session, settings: Settings) -> list[Finding]:
    alive = await presence.by_kind(session, settings.stale_threshold)
    findings = []
    for kind, does, start in (
        ("executor", "nothing is scheduled", "penstock executor"),
        ("worker", "nothing is run", "penstock worker --module FILE"),
    ):
        if alive.get(kind):
            findings.append(ok(f"{kind}s", f"{alive[kind]} alive"))
        else:
            fix = f"Start one with `{start}`, or everything with `penstock dev`."
            findings.append(warning(f"{kind}s", f"no process of this kind is online: {does}", fix))
    return findings


async def _unserved(session: Session, settings: Settings) -> list[Finding]:
    findings = []
    for row in await presence.unserved(session, settings.stale_threshold):
        label_text = labels.format_labels(orjson.loads(row.labels or "{}"))
        carries = f", carries {label_text}" if label_text else ""
        option = f" --labels {label_text}" if label_text else ""
        findings.append(
            bad(
                row.queue,
                f"{row.count} executions wait for a worker that has their action{carries} and serves this route",
                f"Start one: `penstock worker --module FILE --routes {row.queue.removeprefix(queues.WORK)}{option}`.",
            )
        )
    return findings


async def _routes(session: Session, settings: Settings) -> list[Finding]:
    """Return warnings of routes that no worker serves, and of workers on routes that no work goes to, before any work
    waits there."""
    table = await routes.table(session, settings)
    if not any(use.workers for use in table):
        return []
    return [
        warning(
            f"route {use.route}",
            f"no live worker serves this route, but it is named by {', '.join(use.named_by[:5])}"
            if use.named_by
            else f"{count(use.workers, 'worker')} {'serves' if use.workers == 1 else 'serve'} it, but no definition names it",
            " ".join(filter(None, [use.meant, "`penstock routes list` shows the routes and their workers."])),
        )
        for use in table
        if use.amiss
    ] or [ok("routes", "a live worker serves every route that a definition names")]


async def _unlike(session: Session, settings: Settings) -> list[Finding]:
    """Return warnings of routes on which workers differ in actions or labels: some work is first offered to workers
    that cannot run it."""
    by_route: dict[str, list[presence.RouteWorkers]] = {}
    for row in await presence.workers_by_route(session, settings.stale_threshold):
        by_route.setdefault(row.route, []).append(row)
    findings = []
    for route, groups in by_route.items():
        workers = sum(group.count for group in groups)
        have: Counter[str] = Counter()
        for group in groups:
            carried = labels.format_labels(orjson.loads(group.labels))
            for feature in (*group.actions, *([f"the labels {carried}"] if carried else [])):
                have[feature] += group.count
        differing = [
            f"{some} of {workers} have {feature}" for feature, some in sorted(have.items()) if some < workers
        ]
        if differing:
            suffix = f", and so on: {len(differing)} differences" if len(differing) > 5 else ""
            findings.append(
                warning(
                    f"workers of {route}",
                    f"its workers differ: {', '.join(differing[:5])}{suffix}",
                    "Executions wait for a worker with their action and labels, while other workers of "
                    "the route are free. Give each kind of worker a route of its own, or give all workers "
                    "the same modules and labels.",
                )
            )
    return findings


async def _outbox(session: Session) -> list[Finding]:
    rows = await outbox.stuck(session, STUCK)
    if not rows:
        return [ok("outbox", "no message waits to be published")]
    return [
        warning(
            f"outbox {row.queue}",
            f"{row.count} messages are up to {row.age:.0f} s old, tried {row.tries} times"
            + (f" ({row.error})" if row.error else ""),
            "A running executor publishes them once the broker accepts them: see the lines about executors and the broker.",
        )
        for row in rows
    ]


async def _rules(session: Session) -> Finding:
    failed = [failure for failure in await rule_errors.counts(session) if failure.enabled]
    if not failed:
        return ok("rules", "no rule has failed on a stored event")
    named = "; ".join(
        f"{failure.rule} on {failure.count} events, the last with {failure.error}" for failure in failed[:5]
    )
    suffix = f"; and {len(failed) - 5} more" if len(failed) > 5 else ""
    return warning(
        "rules",
        f"failed: {named}{suffix}",
        "List the errors with `penstock rules errors`. Correct the rules and apply them, then run "
        "`penstock rules rerun RULE`.",
    )


async def _schedules(session: Session) -> Finding:
    troubles = await health.troubles(session)
    if not troubles:
        return ok("schedules", "all are well")
    named = ", ".join(
        dict.fromkeys(f"{trouble.schedule or 'all'} {trouble.kind}" for trouble in troubles[:5])
    )
    suffix = f" and {len(troubles) - 5} more" if len(troubles) > 5 else ""
    return warning(
        "schedules", f"{named}{suffix}", "`penstock schedule health` lists the problems, and what to do."
    )


async def _subscriptions(session: Session) -> Finding:
    amiss = []
    for subscription in await subscriptions.listed(session):
        if subscription.disabled_at is not None:
            amiss.append(f"{subscription.name} is disabled: {subscription.disabled_because}")
        elif subscription.failing_since is not None:
            amiss.append(
                f"the calls of {subscription.name} fail ({subscription.error}), and {subscription.waiting} calls wait"
            )
        elif subscription.dropped:
            amiss.append(f"{subscription.dropped} calls of {subscription.name} were dropped")
    if not amiss:
        return ok("subscriptions", "all subscriptions are enabled, and none fails")
    suffix = f"; and {len(amiss) - 5} more" if len(amiss) > 5 else ""
    return warning(
        "subscriptions",
        "; ".join(amiss[:5]) + suffix,
        "List the subscriptions with `penstock subscriptions list`. Repair the receiver, then run "
        "`penstock subscriptions enable NAME`.",
    )


async def _dead_letters(session: Session) -> Finding:
    count = await dead_letters.count(session, dead_letters.LetterFilter())
    if not count:
        return ok("dead letters", "none")
    return warning(
        "dead letters",
        f"{count}",
        "See the reasons with `penstock dead-letters counts`. Then replay or drop the dead letters.",
    )
