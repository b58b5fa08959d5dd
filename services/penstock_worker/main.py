"""The process of a worker, with its actions, its task executors, its routes and its heartbeat."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from uuid import UUID

import structlog

from penstock.errors import ConfigurationError
from penstock.language.loading import Definitions, load_all
from penstock.language.moves.processes import DRAINING
from penstock.language.terms import labels
from penstock.language.terms.executor_names import refuse_batches_elsewhere, refuse_unknown_executors
from penstock.operate import routes
from penstock.run.run import executor_name
from penstock.service.assembly import Parts, Stop
from penstock.service.health import serve_health
from penstock.service.heartbeat import Heartbeat, Identity, Pulse
from penstock.service.startup import assembled_when_ready
from penstock.settings import Settings
from penstock.store.executions import log_lines
from penstock.store.executions.log_lines import NewLine
from penstock.store.outbox.queues import ASSIGNED
from penstock.store.session.database import Session, backoff, retried
from penstock_worker.attempts.runner import Runner
from penstock_worker.control import heartbeat_answer
from penstock_worker.control.broadcasts import obey_broadcasts
from penstock_worker.control.executor_metrics import ExecutorCollector, measured
from penstock_worker.direct.direct_backend import DirectBackend
from penstock_worker.ending.slow_actions import ActionDurations
from penstock_worker.executors import executors
from penstock_worker.gateway_main import work_over_gateway
from penstock_worker.records.run_logs import RunLogs
from penstock_worker.records.worker_state import WorkerState

log = structlog.get_logger()


async def serve(
    settings: Settings, stop: Stop, *, server: str | None = None, token: str | None = None
) -> None:
    """Run a worker until `stop` is requested. With `server`, the addresses of gateways separated by commas, it calls these and
    uses neither the database nor the broker. Raises ConfigurationError if it has nothing to run."""
    definitions = load_all(settings.modules)
    if not definitions.actions:
        raise ConfigurationError(
            "this worker has no actions to run",
            hint="Name the files of its actions: `penstock worker --module FILE.py` (or a folder of YAML "
            "packs), or PENSTOCK_MODULES.",
        )
    refuse_unknown_executors(definitions.actions.values(), settings.executors)
    if server is not None:
        await work_over_gateway(settings, definitions, stop, server, token)
        return
    async with assembled_when_ready(settings, role="worker") as parts:
        await work(parts, definitions, stop)


async def work(parts: Parts, definitions: Definitions, stop: Stop) -> None:
    settings = parts.settings
    serves = [route.strip() for route in settings.routes.split(",") if route.strip()]
    carries = labels.parse_labels(settings.labels)
    relaxed = parts.database.session(relaxed=True)
    logs, durations = (
        RunLogs(partial(_store_lines, relaxed, parts.process, settings.name)),
        ActionDurations(relaxed),
    )
    async with executors(settings, settings.executors) as task_executors:
        runnable = {
            ref: action
            for ref, action in definitions.actions.items()
            if all(
                executor_name(action, settings.route_executors.get(route)) in task_executors
                for route in serves
            )
            and labels.carries_all(action.choices.labels, carries)
        }
        refuse_batches_elsewhere(runnable.values(), settings.route_executors, serves)
        identity = Identity(
            parts.process,
            "worker",
            settings.name,
            serves,
            sorted(runnable),
            labels=carries,
            concurrency=settings.concurrency,
        )
        state = WorkerState.of(task_executors, settings.concurrency)
        backend = DirectBackend(parts, identity, runnable.get, state, durations=durations, sink=logs.add)
        runner = Runner(settings, parts.metrics, task_executors, state, backend)

        def answered(pulse: Pulse) -> None:
            heartbeat_answer.answered(runner, pulse)
            heartbeat.tell(measured(task_executors))

        heartbeat = Heartbeat(
            settings,
            identity,
            parts.supervisor,
            holding=runner.slots.held,
            answer=answered,
            share=parts.database.limit,
            silent=partial(heartbeat_answer.silent, runner),
            hears={
                backend.permits.channel: backend.assignments.heard,
                f"{ASSIGNED}{identity.id}": lambda _: backend.assignments.look_soon(0.0),
            },
            listens=backend.listens,
        )
        await heartbeat.start()
        for use in await retried(lambda: routes.table(parts.database.session(), settings)):
            if use.route in serves and use.amiss and use.meant:
                log.warning("worker.nothing_goes_there", route=use.route, hint=use.meant)
        start = parts.supervisor.start
        running = [
            start("attempts", runner.run),
            start("reports", backend.reports.run),
            start("logs", logs.run),
            start("durations", durations.run),
            start(
                "broadcasts",
                partial(
                    obey_broadcasts, parts.transport, parts.database.session(), runner, backend.parked.parked
                ),
            ),
        ]
        consuming = [start(f"consume {route}", partial(backend.consume, route)) for route in serves]
        consuming.append(start("parked work", backend.parked_work.run))
        consuming.append(start("permits", partial(backend.keep_permits, sorted(runnable))))
        parts.metrics.show(
            gauges={"running": lambda: len(runner.running), "free_slots": lambda: runner.slots.free},
            counters={"claims_lost": lambda: backend.reports.lost},
        )
        parts.metrics.registry.register(ExecutorCollector(task_executors))
        health = await serve_health(parts)
        log.info(
            "worker.started",
            routes=serves,
            actions=len(runnable),
            labels=labels.format_labels(carries),
            port=health.port,
        )
        stop.began.set()
        try:
            await parts.supervisor.until(stop.requested)
            parts.supervisor.release(*consuming)
            heartbeat.say(DRAINING)
            runner.stop()
            await asyncio.wait(consuming, timeout=settings.grace)
            await runner.drain(settings.grace if stop.patience is None else stop.patience, stop.at_once)
            await logs.flush()
            await parts.publisher.flush()
        finally:
            await parts.supervisor.stop(*consuming, *running)
            await health.close()
            await heartbeat.stop()
    log.info("worker.stopped")


async def _store_lines(session: Session, worker: UUID, name: str, lines: Sequence[NewLine]) -> None:
    async for attempt in backoff(deadline=60):
        with attempt:
            await log_lines.store(session, lines, worker, name)
