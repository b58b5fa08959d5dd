"""An executor replica: consumers of the handlers' queues, and the loops. Any number of identical replicas may run."""

from __future__ import annotations

import asyncio
from functools import partial

import structlog

from penstock.messaging.consumer import Consumer
from penstock.messaging.messages import Due
from penstock.service.assembly import Parts, Stop
from penstock.service.health import serve_health
from penstock.service.heartbeat import Heartbeat, Identity
from penstock.service.startup import assembled_when_ready
from penstock.settings import Settings
from penstock_executor import (
    event_counts,
    expired_rows_export,
    installation_metrics,
    rule_failures,
    subscriber_calls,
    window_matches,
)
from penstock_executor.handlers import ROUTES
from penstock_executor.loop_runner import run_loop
from penstock_executor.loop_wakeups import DelayedWakeup, wake_on_broadcasts
from penstock_executor.loops import LOOPS, fire_schedules, fire_timers
from penstock_executor.schedule_metrics import counters, gauges

log = structlog.get_logger()


async def serve(settings: Settings, stop: Stop) -> None:
    """Run a replica until `stop` is requested. Raises ConfigurationError for an invalid setting, or if it cannot
    write export files."""
    expired_rows_export.check(settings)
    subscriber_calls.addresses(settings)
    async with assembled_when_ready(settings, role="executor") as parts:
        await work(parts, stop)


async def work(parts: Parts, stop: Stop) -> None:
    settings = parts.settings
    identity = Identity(parts.process, "executor", settings.name)
    heartbeat = Heartbeat(settings, identity, parts.supervisor, share=parts.database.limit)
    await heartbeat.start()
    woken: dict[Due, asyncio.Event] = {"schedules": asyncio.Event(), "timers": asyncio.Event()}
    after_a_batch = DelayedWakeup(woken["timers"], fire_timers.AFTER_A_BATCH)
    consumers = [
        Consumer(
            route,
            parts.transport,
            parts.database,
            parts.publisher,
            parts.metrics,
            batch=settings.batch,
            handled=after_a_batch.request,
            process=parts.process,
        )
        for route in ROUTES
    ]
    start = parts.supervisor.start
    running = [start(f"consume {c.route.queue}", c.run) for c in consumers]
    wakes = {fire_schedules.LOOP.name: woken["schedules"], fire_timers.LOOP.name: woken["timers"]}
    running += [
        start(
            f"loop {loop.name}",
            partial(run_loop, loop, parts, stop.requested, wakes.get(loop.name)),
            until=stop.requested,
        )
        for loop in LOOPS
    ]
    listening = start("wakeups", partial(wake_on_broadcasts, parts, woken))
    events = event_counts.tally(parts.database)
    by_label = {
        "rule_errors": rule_failures.tally(parts.database).total,
        "window_events": window_matches.tally(parts.database).total,
        "events": events.evaluated,
        "events_matched": events.matched,
    }
    parts.metrics.show(gauges=gauges(parts), counters=counters(parts), by_label=by_label)
    parts.metrics.registry.register(installation_metrics.shown(parts))
    health = await serve_health(parts)
    log.info("executor.started", transport=parts.transport.name, port=health.port)
    stop.began.set()
    try:
        await parts.supervisor.until(stop.requested)
        parts.supervisor.release(*running)
        for consumer in consumers:
            consumer.stop()
        await asyncio.wait(running, timeout=settings.grace)
        await parts.publisher.flush()
    finally:
        await parts.supervisor.stop(listening, *running)
        await health.close()
        await heartbeat.stop()
    log.info("executor.stopped")
