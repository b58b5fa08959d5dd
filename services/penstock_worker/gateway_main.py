"""The process of a worker that calls a gateway: it has a token, and neither the database nor the broker."""

from __future__ import annotations

import asyncio
import contextlib
from functools import partial

import structlog

from penstock.errors import ConfigurationError
from penstock.language.definitions.action import Action
from penstock.language.loading import Definitions
from penstock.language.terms import labels
from penstock.language.terms.ids import new_id
from penstock.messaging.metrics import Metrics
from penstock.messaging.supervision import Supervisor
from penstock.run.run import executor_name
from penstock.service.assembly import Stop
from penstock.service.health import listen
from penstock.service.heartbeat import Identity
from penstock.service.process_secrecy import credentials
from penstock.settings import Settings
from penstock_worker.attempts.runner import WRITTEN, Runner
from penstock_worker.control import heartbeat_answer
from penstock_worker.control.executor_metrics import ExecutorCollector
from penstock_worker.executors import executors
from penstock_worker.gateway.gateway_backend import GatewayBackend
from penstock_worker.gateway.gateway_client import GatewayClient, gateway_addresses
from penstock_worker.gateway.gateway_heartbeat import Answer, GatewayHeartbeat
from penstock_worker.gateway.gateway_session import GatewaySession, say_hello
from penstock_worker.records.worker_state import WorkerState

log = structlog.get_logger()

BYE_S = 3.0
"""Seconds for the last call of a worker."""


async def work_over_gateway(
    settings: Settings, definitions: Definitions, stop: Stop, servers: str, token: str | None
) -> None:
    """Run a worker that calls gateways until `stop` is requested. Raises ConfigurationError if a setting is not valid,
    and Refused if a gateway does not accept its hello."""
    if not token:
        raise ConfigurationError(
            "a worker that calls a gateway needs a token",
            hint="Create one with `penstock tokens create NAME --scope work`, and set PENSTOCK_TOKEN.",
        )
    addresses = gateway_addresses(servers)
    serves = [route.strip() for route in settings.routes.split(",") if route.strip()]
    of_route = _route_executor(settings, serves)
    carries = labels.parse_labels(settings.labels)
    supervisor, metrics = Supervisor(), Metrics()
    structlog.contextvars.bind_contextvars(service="worker", replica=settings.name)
    async with (
        executors(settings, settings.executors) as task_executors,
        contextlib.AsyncExitStack() as stack,
    ):
        runnable = {
            ref: action
            for ref, action in _single_calls(definitions).items()
            if executor_name(action, of_route) in task_executors
            and labels.carries_all(action.choices.labels, carries)
        }
        if not runnable:
            raise ConfigurationError(
                "none of these actions can run on a worker that calls a gateway",
                hint="Durable functions and actions with batches need a worker with PENSTOCK_DATABASE_URL. The "
                "log names the omitted actions.",
            )
        worker = Identity(
            new_id(), "worker", settings.name, serves, sorted(runnable), carries, settings.concurrency
        )
        client = GatewayClient(addresses, token)
        stack.push_async_callback(client.close)
        session = await say_hello(client, worker, runnable)
        state = WorkerState.of(task_executors, settings.concurrency)
        backend = GatewayBackend(
            client,
            session,
            runnable.get,
            state,
            metrics,
            route=serves[0],
            of_route=of_route,
            own_secrets=[token, *credentials(settings)],
            patience=settings.grace + WRITTEN,
            say_hello=partial(say_hello, client, worker, runnable),
        )
        runner = Runner(settings, metrics, task_executors, state, backend)
        replacing: set[asyncio.Task[None]] = set()

        def answered(answer: Answer) -> None:
            heartbeat_answer.follow(runner, answer.lost_attempts, answer.cancel, cordoned=answer.drain)

        def unknown(session: GatewaySession) -> None:
            task = asyncio.create_task(backend.replace(session), name="another session")
            replacing.add(task)
            task.add_done_callback(replacing.discard)

        heartbeat = GatewayHeartbeat(
            addresses,
            token,
            session,
            supervisor,
            holding=runner.slots.held,
            is_cordoned=lambda: runner.slots.cordoned,
            is_taking=lambda: backend.is_taking,
            answer=answered,
            silent=partial(heartbeat_answer.silent, runner),
            unknown=unknown,
        )
        backend.began, backend.taken = heartbeat.begin, heartbeat.note_taken
        backend.ended = lambda: runner.lose(runner.slots.held(), confirmed=True)
        metrics.show(
            gauges={"running": lambda: len(runner.running), "free_slots": lambda: runner.slots.free},
            counters={"claims_lost": lambda: backend.lost},
        )
        metrics.registry.register(ExecutorCollector(task_executors))

        async def unready() -> str | None:
            return None if client.is_answered else "no gateway answers"

        health = await listen(settings, supervisor, metrics, unready)
        heartbeat.start()
        taking = supervisor.start("take", backend.take)
        running = [supervisor.start("attempts", runner.run), supervisor.start("logs", backend.logs.run)]
        log.info(
            "worker.started",
            routes=serves,
            actions=len(runnable),
            labels=labels.format_labels(carries),
            gateways=addresses,
            worker_id=str(session.worker),
            port=health.port,
        )
        stop.began.set()
        try:
            await supervisor.until(stop.requested)
            supervisor.release(taking)
            runner.stop()
            await runner.drain(settings.grace if stop.patience is None else stop.patience, stop.at_once)
        finally:
            await supervisor.stop(taking, *running, *replacing, *backend.reporting)
            await health.close()
            await heartbeat.stop()
            with contextlib.suppress(Exception):  # without a bye, the session ends by its timeout
                async with asyncio.timeout(BYE_S):
                    await client.call("bye", {}, backend.session.secret)
    log.info("worker.stopped")


def _single_calls(definitions: Definitions) -> dict[str, Action[..., object]]:
    """Return the actions that are neither durable functions nor take batches. The protocol has no messages for the steps of a
    durable function, and its slots are for single attempts."""
    actions = {ref: action for ref, action in definitions.actions.items() if isinstance(action, Action)}
    durable = sorted(ref for ref, action in actions.items() if action.durable)
    batching = sorted(ref for ref, action in actions.items() if action.choices.batch is not None)
    if durable:
        log.warning(
            "worker.durable_functions_left_out",
            actions=durable,
            hint="They need a worker with PENSTOCK_DATABASE_URL.",
        )
    if batching:
        log.warning(
            "worker.batches_left_out",
            actions=batching,
            hint="They need a worker with PENSTOCK_DATABASE_URL.",
        )
    return {
        ref: action
        for ref, action in definitions.actions.items()
        if ref not in durable and ref not in batching
    }


def _route_executor(settings: Settings, routes: list[str]) -> str | None:
    """Return the task executor of the routes of this worker. Raises ConfigurationError if they have several."""
    names = {settings.route_executors.get(route) for route in routes}
    if len(names) > 1:
        raise ConfigurationError(
            "all routes of a worker that calls a gateway must have the same task executor",
            hint="Set the same task executor for each of its routes in PENSTOCK_ROUTE_EXECUTORS, or start a worker for each "
            "route.",
        )
    return names.pop()
