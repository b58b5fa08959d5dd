"""The permissions on RabbitMQ that the user of each service needs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from shlex import quote

from penstock.messaging.transports.rabbitmq.topology import Names
from penstock.store.outbox.queues import DEAD, EVENT_RECEIVED, WORK


@dataclass(frozen=True, slots=True)
class Permissions:
    """Regular expressions over names of exchanges and queues, as RabbitMQ's permissions use them."""

    configure: str
    write: str
    read: str


BROKER_SERVICES = ("executor", "worker", "api", "client")
TAKE_WORK = ("worker", "api")
"""The services that consume the queues of routes. The API does so for workers that call it."""


def permissions(prefix: str, service: str, *, declares: bool = True) -> Permissions:
    """Return the permissions of a service's user. `declares`: the service declares the topology at its start. Without
    it (PENSTOCK_DECLARE_TOPOLOGY=false), the service only checks the topology, and configures only its queue for
    broadcasts."""
    names = Names(prefix)
    listening = names.queue("control.") + "*"
    if service == "executor":
        every = f"^{re.escape(prefix)}(\\..*)?$"
        return Permissions(every if declares else _any([listening]), every, every)
    publishes = [names.work_exchange, names.status_exchange, names.control_exchange]
    consumes: list[str] = []
    if service in TAKE_WORK:
        publishes.append(names.dead_exchange)
        consumes = [names.queue(WORK) + "*"]
    hears = [names.control_exchange, listening]
    if not declares:
        return Permissions(_any([listening]), _any([*publishes, listening]), _any([*consumes, *hears]))
    exchanges = [
        names.work_exchange,
        names.events_exchange,
        names.dead_exchange,
        names.control_exchange,
        names.status_exchange,
    ]
    queues = [names.queue(DEAD), names.queue(EVENT_RECEIVED), listening, *consumes]
    # Binding a queue needs the rights to write to the queue and to read from the exchange. Declaring one with a
    # dead-letter exchange needs the rights to read from the queue and to write to that exchange.
    return Permissions(
        _any([*exchanges, *queues]),
        _any([*publishes, names.dead_exchange, *queues]),
        _any([*exchanges, *queues]),
    )


def _any(names: Sequence[str]) -> str:
    """Return an expression for these names; a name with `*` at its end stands for all with that prefix."""
    parts = [re.escape(name[:-1]) + ".*" if name.endswith("*") else re.escape(name) for name in names]
    return f"^({'|'.join(dict.fromkeys(parts))})$"


def topic_permissions(prefix: str, service: str) -> list[tuple[str, str, str]]:
    """Return the topic exchanges to which a user may publish with some routing keys only: (exchange, write, read)."""
    if service == "executor":
        return []
    names = Names(prefix)
    return [
        (names.events_exchange, "^$", ".*"),
        (names.dead_exchange, ".*" if service in TAKE_WORK else "^$", ".*"),
        (names.status_exchange, ".*", "^$"),
    ]


def commands(vhost: str, prefix: str, users: dict[str, str], *, declares: bool = True) -> Iterator[str]:
    """Yield the commands that create each service's user and set its permissions. RabbitMQ asks for the passwords."""
    for service in BROKER_SERVICES:
        user, allowed = users[service], permissions(prefix, service, declares=declares)
        yield f"rabbitmqctl add_user {quote(user)}"
        yield (
            f"rabbitmqctl set_permissions -p {quote(vhost)} {quote(user)} "
            f"{quote(allowed.configure)} {quote(allowed.write)} {quote(allowed.read)}"
        )
        for exchange, write, read in topic_permissions(prefix, service):
            yield (
                f"rabbitmqctl set_topic_permissions -p {quote(vhost)} {quote(user)} "
                f"{quote(exchange)} {quote(write)} {quote(read)}"
            )
