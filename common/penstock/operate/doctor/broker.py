"""The checks of RabbitMQ: it is reachable, has a supported version, and the topology exists."""

from __future__ import annotations

import time
from collections.abc import Sequence

from aiormq.exceptions import ChannelNotFoundEntity

from penstock.errors import ConfigurationError, PenstockError
from penstock.language.terms.ids import new_id
from penstock.messaging import envelope
from penstock.messaging.transports import Message
from penstock.messaging.transports.rabbitmq import RabbitMQTransport
from penstock.operate.doctor.finding import Finding, bad, ok, warning
from penstock.settings import Settings
from penstock.store.outbox import queues

DEADLINE = 5.0
"""Seconds for connecting."""


PROBED = tuple(queue for queue in queues.QUEUES if queue not in (queues.EVENT_RECEIVED, queues.DEAD))
"""Queues of envelopes. A probe about an unknown id changes nothing there, and comes back if no queue is bound."""


_NEW = warning(
    "rabbitmq",
    "RabbitMQ answers, but no executor has declared the exchanges and queues yet",
    "Start an executor: it declares the exchanges and the queues.",
)
"""The finding on a broker that no executor has used so far."""

_BLOCKED = bad(
    "rabbitmq",
    "RabbitMQ answers, but accepts no messages: it is short of memory or disk",
    "Find the cause with `rabbitmq-diagnostics alarms`, and free memory or disk. Messages wait in PostgreSQL until then.",
)
"""The finding on a broker with an alarm. It answers no probe, so its bindings are unknown."""


async def findings(
    settings: Settings, routes: Sequence[str] = (), *, is_executor_alive: bool = True
) -> list[Finding]:
    """Return the findings. `routes` are the queues of the routes that workers serve."""
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
    connect_start = time.perf_counter()
    try:
        await transport.open()
        took_ms = (time.perf_counter() - connect_start) * 1000
        waiting = {queue: await transport.depth(queue) for queue in queues.QUEUES}
        missing = await transport.missing([*queues.QUEUES, *routes])
        unbound = [] if missing else await _unbound(transport, [*PROBED, *routes])
        blocked = transport.blocked
        if settings.declare_topology and not missing:
            for queue in (
                queues.EVENT_RECEIVED,
                queues.DEAD,
            ):  # topic permissions can forbid the bindings of these two queues
                await transport.bind(queue)
    except ConfigurationError as error:
        is_new = isinstance(error.__cause__, ChannelNotFoundEntity)
        if is_new and settings.declare_topology and not is_executor_alive:
            return [_NEW]
        return [bad("rabbitmq", error.message, error.hint or "Correct PENSTOCK_BROKER_URL.")]
    except PenstockError as error:
        return [bad("rabbitmq", error.message, error.hint or "Correct PENSTOCK_BROKER_URL.")]
    finally:
        await transport.close()
    is_new = {f"{settings.prefix}.{queue}" for queue in PROBED}.issubset(missing)
    if is_new and settings.declare_topology and not is_executor_alive:
        return [warning("rabbitmq", "; ".join(f"no queue {name}" for name in missing), _NEW.fix or "")]
    return [
        _BLOCKED if blocked else _topology(missing, unbound, settings, took_ms),
        _backlog({queue: count for queue, count in waiting.items() if count}),
    ]


async def _unbound(transport: RabbitMQTransport, names: Sequence[str]) -> list[str]:
    probes = [
        Message(queue, envelope.encode(queues.message_type(queue), [new_id()]), f"doctor-{new_id()}", "probe")
        for queue in names
    ]
    confirmed = await transport.publish(probes)
    return [probe.queue for probe, ok in zip(probes, confirmed, strict=True) if not ok]


def _topology(missing: Sequence[str], unbound: Sequence[str], settings: Settings, took_ms: float) -> Finding:
    if not missing and not unbound:
        return ok(
            "rabbitmq",
            f"RabbitMQ answers (connected in {took_ms:.0f} ms), and the exchanges and queues exist",
        )
    says = [f"no queue {name}" for name in missing]
    says += [f"{settings.prefix}.{name} is not bound to the exchange {settings.prefix}" for name in unbound]
    fix = (
        "Executors and workers declare it again within half a minute: check that they run. "
        if settings.declare_topology
        else "Declare it as described in docs/transports.md. "
    )
    return bad(
        "rabbitmq",
        "; ".join(says),
        f"{fix}Penstock then publishes the lost messages of the queue again.",
    )


def _backlog(waiting: dict[str, int]) -> Finding:
    text = ", ".join(f"{queue}: {count}" for queue, count in waiting.items()) or "nothing waits"
    if sum(waiting.values()) < 10_000:
        return ok("queues", text)
    return warning(
        "queues", text, "Start more executors: they share the work. See also the line about executors."
    )
