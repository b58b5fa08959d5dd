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
    parts = urlsplit(address)
    api = Api(
        parts.hostname or "localhost",
        server.api_port,
        unquote(parts.username or "guest"),
        unquote(parts.password or "guest"),
    )
    if not api.answers():
        return
    vhost = parts.path.lstrip("/")
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
    parts = urlsplit(address)
    api = Api(
        parts.hostname or "localhost",
        server.api_port,
        unquote(parts.username or "guest"),
        unquote(parts.password or "guest"),
    )
    for service in BROKER_SERVICES:
        api.call("DELETE", f"users/{_with_users[address]}_{service}")
    del _with_users[address]


def as_service(address: str, service: str) -> str:
    """Return the address of a vhost for a service; the same address where it has no users."""
    if address not in _with_users or service not in BROKER_SERVICES:
        return address
    parts = urlsplit(address)
    user = f"{quote(_with_users[address], safe='')}_{service}:{service}"
    return parts._replace(netloc=f"{user}@{parts.netloc.rpartition('@')[2]}").geturl()
