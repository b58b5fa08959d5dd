from __future__ import annotations

import asyncio
import socket
from ipaddress import ip_address
from typing import Any

import httpcore
import pytest

from penstock.errors import AddressRefused, ConfigurationError
from penstock.service.http_addresses import Addresses, GuardedNetwork


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "127.255.255.254",
        "0.0.0.0",
        "10.1.2.3",
        "100.100.100.200",
        "169.254.169.254",
        "172.16.0.1",
        "172.31.255.255",
        "192.0.0.192",
        "192.168.1.1",
        "198.18.0.1",
        "224.0.0.1",
        "255.255.255.255",
        "168.63.129.16",
        "::",
        "::1",
        "::127.0.0.1",
        "::ffff:127.0.0.1",
        "::ffff:169.254.169.254",
        "64:ff9b::a9fe:a9fe",
        "64:ff9b:1::1",
        "2001::1",
        "2001:db8::1",
        "2002:7f00:1::",
        "fc00::1",
        "fd00:ec2::254",
        "fe80::1",
        "fec0::1",
        "ff02::1",
    ],
)
def test_an_address_that_is_not_public_is_refused(address: str) -> None:
    with pytest.raises(AddressRefused, match="not a public address"):
        Addresses().check("name", ip_address(address))


@pytest.mark.parametrize(
    "address",
    ["1.1.1.1", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "::ffff:1.1.1.1", "64:ff9b::101:101"],
)
def test_a_public_address_is_not_refused(address: str) -> None:
    Addresses().check("name", ip_address(address))


def test_the_operator_may_allow_networks_and_addresses() -> None:
    addresses = Addresses(["10.1.0.0/16", "127.0.0.1", "fd00::/8"])
    for allowed in ("10.1.2.3", "127.0.0.1", "::ffff:10.1.2.3", "fd00::5"):
        addresses.check("name", ip_address(allowed))
    for refused in ("10.2.0.1", "127.0.0.2", "fe80::1"):
        with pytest.raises(AddressRefused):
            addresses.check("name", ip_address(refused))


@pytest.mark.parametrize("host", ["localhost", "127.1", "2130706433", "0x7f000001", "0177.0.0.1", "::1"])
async def test_every_way_to_write_this_machine_is_refused(host: str) -> None:
    with pytest.raises(AddressRefused):
        await Addresses(["other.example.org"]).resolve(host, 80)


async def test_a_name_may_be_allowed_whatever_it_resolves_to(monkeypatch: pytest.MonkeyPatch) -> None:
    _resolve_to(monkeypatch, ["10.0.0.1"])
    addresses = Addresses(["db.example.org", "*.apps.example.org"])
    for allowed in ("db.example.org", "DB.example.org", "a.apps.example.org", "b.a.apps.example.org"):
        assert await addresses.resolve(allowed, 80) == ["10.0.0.1"]
    for refused in ("apps.example.org", "x.db.example.org", "evil-db.example.org"):
        with pytest.raises(AddressRefused):
            await addresses.resolve(refused, 80)


@pytest.mark.parametrize("entry", ["", "10.0.0.0/33", "https://example.org", "a/b"])
def test_an_allow_list_with_a_mistake_is_refused_at_the_start(entry: str) -> None:
    with pytest.raises(ConfigurationError, match="allow-list"):
        Addresses([entry])


async def test_one_private_address_among_public_ones_is_enough_to_refuse(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _resolve_to(monkeypatch, ["1.1.1.1", "10.0.0.1"])
    with pytest.raises(AddressRefused):
        await Addresses().resolve("two.example.org", 80)


async def test_the_connection_goes_to_the_address_that_was_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    # A name under an attacker's control answers with something harmless first, and then with what it is
    # after. Only 127.0.0.1 listens: a second look at the name would connect to nothing.
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    asked = _resolve_to(monkeypatch, ["127.0.0.1"], ["127.0.0.9"])
    network = GuardedNetwork(Addresses(["127.0.0.0/8"]))
    stream = await network.connect_tcp("rebinding.example.org", port, timeout=5)
    assert asked == ["rebinding.example.org"]
    await stream.aclose()
    server.close()


async def test_the_next_address_is_tried_when_one_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    _resolve_to(monkeypatch, ["127.0.0.9", "127.0.0.1"])
    stream = await GuardedNetwork(Addresses(["127.0.0.0/8"])).connect_tcp("two.example.org", port, timeout=5)
    await stream.aclose()
    server.close()


async def test_a_name_that_does_not_exist_is_no_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(*_: Any, **__: Any) -> None:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", fail)
    with pytest.raises(httpcore.ConnectError, match="does not resolve"):
        await GuardedNetwork(Addresses()).connect_tcp("nowhere.example.org", 80, timeout=5)


@pytest.mark.parametrize("host", ["a" * 64 + ".example", "a..example"])
async def test_impossible_name_is_refused(host: str) -> None:
    with pytest.raises(AddressRefused, match="is not the name of a host"):
        await GuardedNetwork(Addresses()).connect_tcp(host, 80, timeout=5)


def _resolve_to(monkeypatch: pytest.MonkeyPatch, *answers: list[str]) -> list[str]:
    """Answer names with these in turn; what was asked for."""
    asked: list[str] = []
    left = list(answers)
    real = asyncio.get_running_loop().getaddrinfo

    async def getaddrinfo(host: str, port: int, **options: Any) -> list[tuple[Any, ...]]:
        if not host.endswith(".example.org"):  # an address: opening the connection asks as well
            return list(await real(host, port, **options))
        asked.append(host)
        addresses = left.pop(0) if len(left) > 1 else left[0]
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (each, port)) for each in addresses]

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", getaddrinfo)
    return asked
