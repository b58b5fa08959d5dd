"""Addresses are checked before anything connects, and never show a password."""

from __future__ import annotations

import pytest

from penstock.errors import ConfigurationError
from penstock.messaging.transports.rabbitmq.address import parse, shown


def test_one_address_gets_its_defaults() -> None:
    [address] = parse("amqp://me:pw@host/v", heartbeat=10, client="worker-1")
    assert dict(address.query) == {"heartbeat": "10", "name": "worker-1"}


def test_options_in_the_address_itself_stay() -> None:
    [address] = parse("amqps://host?heartbeat=3&name=mine&cafile=/etc/ca.pem", heartbeat=10, client="x")
    assert dict(address.query) == {"heartbeat": "3", "name": "mine", "cafile": "/etc/ca.pem"}


def test_several_addresses_come_as_a_list_or_separated_by_commas() -> None:
    both = ("amqp://me:a,b@one/v", "amqps://me:c@two:5671/v")
    assert parse(both, heartbeat=1, client="x") == parse(", ".join(both), heartbeat=1, client="x")
    assert [address.password for address in parse(both, heartbeat=1, client="x")] == ["a,b", "c"]


@pytest.mark.parametrize(
    "url", ["", "redis://me:hidden@host", "amqp://", "host:5672", "amqp://me:hid/den@host", "amqp://h:hidden"]
)
def test_an_invalid_address_is_refused_without_showing_it(url: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        parse(url, heartbeat=10, client="x")
    assert "hid" not in str(caught.value)
    assert caught.value.hint is not None


def test_no_address_at_all_is_refused() -> None:
    with pytest.raises(ConfigurationError):
        parse([], heartbeat=10, client="x")


def test_a_shown_address_has_no_credentials_and_no_options() -> None:
    [address] = parse("amqps://me:hidden@host/v?keyfile=/k", heartbeat=10, client="x")
    assert shown(address) == "amqps://host:5671 (vhost v)"
