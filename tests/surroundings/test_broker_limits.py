"""Limits of a virtual host and topic permissions of a user: each is named as what it is."""

from __future__ import annotations

from urllib.parse import quote, unquote, urlsplit

import pytest
from pydantic import SecretStr
from structlog.testing import capture_logs

from penstock.errors import ConfigurationError, ConnectionFailed
from penstock.messaging.transports.rabbitmq import RabbitMQTransport
from penstock.operate.doctor import broker as doctor
from penstock.settings import Settings
from tests.servers import management
from tests.servers.rabbitmq import RabbitMQ
from tests.surroundings.policy_flow import api_of


class Vhost:
    """A virtual host of the test's own, and the management API."""

    def __init__(self, server: RabbitMQ, url: str) -> None:
        self.url = url
        self.name = quote(unquote(urlsplit(url).path[1:]), safe="")
        self.api: management.Api = api_of(server)

    def limit(self, what: str, value: int) -> None:
        self.api.call("PUT", f"vhost-limits/{self.name}/{what}", {"value": value})


@pytest.fixture
def host(rabbitmq_server: RabbitMQ, vhost: str) -> Vhost:
    return Vhost(rabbitmq_server, vhost)


async def test_connection_limit_is_named_and_logged_once(host: Vhost) -> None:
    host.limit("max-connections", 0)
    transport = RabbitMQTransport(host.url, connect_deadline=4)
    with (
        capture_logs() as lines,
        pytest.raises(ConnectionFailed, match=r"connection limit \(0\) is reached") as e,
    ):
        await transport.open()
    assert "list_vhost_limits" in (e.value.hint or "")
    retries = [line for line in lines if line["event"] == "rabbitmq.retry"]
    assert len(retries) == 1  # of five or more


async def test_missing_vhost_is_named_as_missing(host: Vhost) -> None:
    transport = RabbitMQTransport(f"{host.url}-none", connect_deadline=0.1)
    with pytest.raises(ConnectionFailed, match="not found"):
        await transport.open()


async def test_queue_limit_is_named(host: Vhost) -> None:
    host.limit("max-queues", 0)
    transport = RabbitMQTransport(host.url, connect_deadline=4)
    with pytest.raises(ConfigurationError, match="queue limit in vhost") as e:
        await transport.open()
    assert "set_vhost_limits" in (e.value.hint or "")


async def test_doctor_names_topic_permissions_that_are_too_narrow(host: Vhost) -> None:
    user = "narrow-" + host.name
    address = urlsplit(host.url)
    host.api.call("PUT", f"users/{user}", {"password": "secret", "tags": ""})
    everything = {"configure": ".*", "write": ".*", "read": ".*"}
    host.api.call("PUT", f"permissions/{host.name}/{user}", everything)
    ours = RabbitMQTransport(host.url)
    await ours.open()
    for queue in doctor.PROBED:
        await ours.declare(queue)
    await ours.close()
    url = address._replace(netloc=f"{user}:secret@{address.netloc.rpartition('@')[2]}").geturl()
    settings = Settings(broker_url=SecretStr(url))
    [finding, _] = await doctor.findings(settings)
    assert finding.state == "ok"
    narrow = {"exchange": "penstock.events", "write": "^shop", "read": "^shop"}
    host.api.call("PUT", f"topic-permissions/{host.name}/{user}", narrow)
    [finding] = await doctor.findings(settings)
    host.api.call("DELETE", f"users/{user}")
    assert finding.state == "bad"
    assert "set_topic_permissions" in (finding.fix or "")
