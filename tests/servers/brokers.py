"""Users of RabbitMQ, one a service, with the permissions that `penstock roles` prints."""

from __future__ import annotations

from urllib.parse import quote, unquote, urlsplit

from penstock.operate.broker_users import BROKER_SERVICES, permissions, topic_permissions
from tests.servers.management import Api
from tests.servers.rabbitmq import RabbitMQ

PREFIX = "penstock"
_with_users: dict[str, str] = {}
"""What the names of the services' users begin with, by the address of a vhost."""


def give_users(server: RabbitMQ, address: str) -> None:
    """Give each service a user of this vhost. Does nothing where no management API is known."""
    api = _api(server, address)
    if not api.answers():
        return
    vhost = urlsplit(address).path.lstrip("/")
    for service in BROKER_SERVICES:
        user = f"{unquote(vhost)}_{service}"
        api.call("PUT", f"users/{user}", {"password": service, "tags": ""})
        allowed = permissions(PREFIX, service)
        given = {"configure": allowed.configure, "write": allowed.write, "read": allowed.read}
        api.call("PUT", f"permissions/{vhost}/{user}", given)
        for exchange, write, read in topic_permissions(PREFIX, service):
            body = {"exchange": exchange, "write": write, "read": read}
            api.call("PUT", f"topic-permissions/{vhost}/{user}", body)
    _with_users[address] = unquote(vhost)


def drop_users(server: RabbitMQ, address: str) -> None:
    """Drop the users of a vhost."""
    if address not in _with_users:
        return
    api = _api(server, address)
    for service in BROKER_SERVICES:
        api.call("DELETE", f"users/{_with_users[address]}_{service}")
    del _with_users[address]


def connections(server: RabbitMQ, address: str, service: str) -> int | None:
    """Return how many connections the user of a service has; None where it has no user."""
    if address not in _with_users:
        return None
    rows: list[dict[str, object]] = _api(server, address).call(
        "GET", f"vhosts/{urlsplit(address).path.lstrip('/')}/connections"
    )
    return sum(row.get("user") == f"{_with_users[address]}_{service}" for row in rows)


def limit_connections(server: RabbitMQ, address: str, service: str, most: int) -> None:
    """Let the user of a service open no connection beyond so many."""
    limit = f"user-limits/{_with_users[address]}_{service}/max-connections"
    _api(server, address).call("PUT", limit, {"value": most})


def _api(server: RabbitMQ, address: str) -> Api:
    parts = urlsplit(address)
    return Api(
        parts.hostname or "localhost",
        server.api_port,
        unquote(parts.username or "guest"),
        unquote(parts.password or "guest"),
    )


def as_service(address: str, service: str) -> str:
    """Return the address of a vhost for a service; the same address where it has no users."""
    if address not in _with_users or service not in BROKER_SERVICES:
        return address
    parts = urlsplit(address)
    user = f"{quote(_with_users[address], safe='')}_{service}:{service}"
    return parts._replace(netloc=f"{user}@{parts.netloc.rpartition('@')[2]}").geturl()
