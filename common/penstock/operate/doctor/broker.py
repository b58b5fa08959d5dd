"""RabbitMQ: reachable, of a version that we know, with the topology in place."""

from __future__ import annotations

import time

from penstock.errors import ConfigurationError, PenstockError
from penstock.messaging.transports.rabbitmq import RabbitMQTransport
from penstock.operate.doctor.finding import Finding, bad, ok, warning
from penstock.settings import Settings
from penstock.store import queues

DEADLINE = 5.0
"""Seconds to connect."""


async def findings(settings: Settings) -> list[Finding]:
    if settings.broker_url is None:
        return [ok("transport", "PostgreSQL carries the messages (PENSTOCK_BROKER_URL names no broker)")]
    transport = RabbitMQTransport(
        settings.broker_url.get_secret_value(),
        prefix=settings.prefix,
        declare=False,
        delivery_limit=settings.delivery_limit,
        connect_deadline=DEADLINE,
        client=f"penstock doctor {settings.name}",
    )
    begun = time.perf_counter()
    try:
        await transport.open()
        took = (time.perf_counter() - begun) * 1000
        waiting = {queue: await transport.depth(queue) for queue in queues.QUEUES}
    except ConfigurationError as error:
        start = " If no executor has run here yet, start one: it declares them." * settings.declare_topology
        return [bad("rabbitmq", error.message, f"{error.hint}{start}")]
    except PenstockError as error:
        return [bad("rabbitmq", error.message, error.hint or "Correct PENSTOCK_BROKER_URL.")]
    finally:
        await transport.close()
    return [
        ok("rabbitmq", f"answers, exchanges and queues are in place, connected in {took:.0f} ms"),
        _backlog({queue: count for queue, count in waiting.items() if count}),
    ]


def _backlog(waiting: dict[str, int]) -> Finding:
    said = ", ".join(f"{queue}: {count}" for queue, count in waiting.items()) or "nothing waits"
    if sum(waiting.values()) < 10_000:
        return ok("queues", said)
    return warning(
        "queues", said, "Start more executors: they share the work. See also the line on executors."
    )
