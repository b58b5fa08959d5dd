"""A worker process: its actions, its task executors, its routes, its heartbeat."""

from __future__ import annotations

import asyncio
from functools import partial

import structlog

from penstock.errors import ConfigurationError
from penstock.language import labels
from penstock.language.loading import Definitions, load_all
from penstock.messaging import messages
from penstock.service.assembly import Parts, Stop, assembled, cancel, migrated, supervise
from penstock.service.health import serve_health
from penstock.service.heartbeat import Heartbeat, Identity
from penstock.settings import Settings
from penstock_worker import heartbeat_answer
from penstock_worker.action_durations import ActionDurations
from penstock_worker.executors import executors
from penstock_worker.run_logs import RunLogs
from penstock_worker.runner import Runner

log = structlog.get_logger()


async def serve(settings: Settings, stop: Stop) -> None:
    """Run a worker until `stop` is asked. Raises ConfigurationError if there is nothing that it could run."""
    definitions = load_all(settings.modules)
    if not definitions.actions:
        raise ConfigurationError(
            "a worker needs actions to run",
            hint="Name them: `penstock worker --module FILE.py` (or a folder of YAML packs), or PENSTOCK_MODULES.",
        )
    async with assembled(settings, role="worker") as parts:
        await migrated(parts.database)
        await work(parts, definitions, stop)


async def work(parts: Parts, definitions: Definitions, stop: Stop) -> None:
    settings = parts.settings
    routes = [route.strip() for route in settings.routes.split(",") if route.strip()]
    carries = labels.parse_labels(settings.labels)
    relaxed = parts.database.session(relaxed=True)
    logs, durations = RunLogs(relaxed), ActionDurations(relaxed)
    async with executors(settings, settings.executors) as found:
        runnable = {
            ref: action
            for ref, action in definitions.actions.items()
            if action.executor in found and labels.carries_all(action.choices.labels, carries)
        }
        identity = Identity(
            parts.process,
            "worker",
            settings.name,
            routes,
            sorted(runnable),
            labels=carries,
            concurrency=settings.concurrency,
        )
        runner = Runner(parts, identity, runnable.get, found, durations=durations, sink=logs.add)
        heartbeat = Heartbeat(
            settings,
            identity,
            holding=runner.slots.held,
            answer=partial(heartbeat_answer.answered, runner),
            silent=partial(heartbeat_answer.silent, runner),
        )
        await heartbeat.start()
        running = [
            asyncio.create_task(supervise("reports", runner.reports.run), name="reports"),
            asyncio.create_task(supervise("logs", logs.run), name="logs"),
            asyncio.create_task(supervise("durations", durations.run), name="durations"),
            asyncio.create_task(
                supervise("cancellations", lambda: _cancel_on_broadcasts(parts, runner)), name="cancellations"
            ),
        ]
        consuming = [
            asyncio.create_task(supervise(route, partial(runner.consume, route)), name=f"consume {route}")
            for route in routes
        ]
        parts.metrics.show(
            gauges={"running": lambda: len(runner.running), "free_slots": lambda: runner.slots.free},
            counters={"claims_lost": lambda: runner.reports.lost},
        )
        health = await serve_health(parts)
        log.info(
            "worker.started",
            id=str(identity.id),
            routes=routes,
            actions=len(runnable),
            labels=labels.format_labels(carries),
            port=health.port,
        )
        stop.began.set()
        try:
            await stop.asked.wait()
            heartbeat.say("draining")
            runner.stop()
            await asyncio.wait(consuming, timeout=settings.grace)
            await runner.drain(settings.grace, stop.at_once)
            await logs.flush()
            await parts.publisher.flush()
        finally:
            await cancel(*consuming, *running)
            await health.close()
            await heartbeat.stop()
    log.info("worker.stopped")


async def _cancel_on_broadcasts(parts: Parts, runner: Runner) -> None:
    """End at once what is broadcast to be cancelled; what is missed here comes with the heartbeat."""
    subscription = await parts.transport.listen()
    try:
        while True:
            for delivery in await subscription.receive(100):
                try:
                    runner.cancel(messages.CancelRequested.model_validate_json(delivery.body).ids)
                except ValueError:
                    log.debug("worker.unknown_broadcast")
    finally:
        await subscription.close()
