"""The addresses that an HTTP action, or a call to a subscriber, may reach: the public ones, and those that the
operator allows.

A definition must not make a service connect to addresses that only the service can reach: its own machine, the
private network, the metadata service of the cloud (server-side request forgery). A name is resolved once, and every
address of it is checked. The connection goes to exactly a checked address, so that a name that resolves differently
the second time gains nothing.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

import httpcore
import httpx
from httpcore import AsyncNetworkStream

from penstock.errors import AddressRefused, ConfigurationError
from penstock.run.cut_texts import cut_end

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

# IANA's special-purpose registries (RFC 6890 and later). Not `is_global`: versions of Python differ.
REFUSED: tuple[Network, ...] = tuple(
    ip_network(network)
    for network in (
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.88.99.0/24",
        "192.168.0.0/16",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",
        "240.0.0.0/4",
        "168.63.129.16/32",  # Azure's platform service, on a public address
    )
)
REACHABLE_V6 = ip_network("2000::/3")
"""The range that is assigned as global unicast. All other IPv6 addresses are local, reserved or multicast."""
REFUSED_V6: tuple[Network, ...] = tuple(
    ip_network(network) for network in ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")
)
NAT64 = ip_network("64:ff9b::/96")


@cache
def trusted() -> ssl.SSLContext:
    """Return the trusted certificates: one context for the process, since reading them takes some 20 ms."""
    return httpx.create_ssl_context()


ALLOW_LIST = """the allow-list of the workers: PENSTOCK_EXECUTORS='{"http": {"allow": ["10.1.2.3"]}}'"""
"""The list of the http executor, as errors name it."""


class Addresses:
    """The reachable addresses. `allowed` are host names (exact, or `*.example.org`), addresses and networks that may
    be reached although they are private. `named` is the name of that list in errors. Raises ConfigurationError for an
    invalid entry."""

    def __init__(self, allowed: Iterable[str] = (), named: str = ALLOW_LIST) -> None:
        self._named_list = named
        self._networks: list[Network] = []
        self._names: set[str] = set()
        for entry in allowed:
            try:
                self._networks.append(ip_network(entry, strict=False))
            except ValueError:
                if not entry or "/" in entry or ":" in entry:
                    raise ConfigurationError(
                        f"{entry!r} on {named} is not a host, address or network",
                        hint="Write it like internal.example.org, *.example.org, 10.1.2.3 or 10.0.0.0/8.",
                    ) from None
                self._names.add(entry.lower())

    async def resolve(self, host: str, port: int) -> list[str]:
        """Return the addresses to connect to, best first. Raises AddressRefused if an address may not be reached or the
        name cannot be one of DNS, and OSError for an unknown name."""
        loop = asyncio.get_running_loop()
        try:
            entries = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except UnicodeError:
            raise AddressRefused(
                f"{cut_end(host, 100)} is not the name of a host: a part of it is empty, or has more than 63 characters",
                hint="Use a host name that is valid in DNS.",
            ) from None
        addresses = [str(entry[4][0]) for entry in entries]
        if not self._named(host):
            for address in addresses:
                self.check(host, ip_address(address.partition("%")[0]))
        return addresses

    def check(self, host: str, address: Address) -> None:
        """Raise AddressRefused if `address` must not be reached."""
        inner = _embedded(address)
        if any(inner in network or address in network for network in self._networks):
            return
        if isinstance(inner, IPv6Address):
            refused = inner not in REACHABLE_V6 or any(inner in network for network in REFUSED_V6)
        else:
            refused = any(inner in network for network in REFUSED)
        if refused:
            raise AddressRefused(
                f"{host} is {address}, which is not a public address"
                if host != str(address)
                else f"{host} is not a public address",
                hint=f"If this address is intended, add it or its network to {self._named_list}.",
            )

    def _named(self, host: str) -> bool:
        host = host.lower().rstrip(".")
        parents = host.split(".")
        return host in self._names or any(
            "*." + ".".join(parents[level:]) in self._names for level in range(1, len(parents))
        )


class GuardedNetwork(httpcore.AsyncNetworkBackend):
    """A network backend that connects only to addresses that `addresses` allows, and to exactly the checked address."""

    def __init__(self, addresses: Addresses) -> None:
        self._addresses = addresses
        self._network = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> AsyncNetworkStream:
        try:
            addresses = await asyncio.wait_for(self._addresses.resolve(host, port), timeout)
        except TimeoutError:
            raise httpcore.ConnectTimeout(f"the name {host} was not resolved in time") from None
        except OSError as error:
            raise httpcore.ConnectError(f"the name {host} does not resolve: {error}") from error
        for address in addresses[:-1]:
            with suppress(httpcore.ConnectError, httpcore.ConnectTimeout):
                return await self._network.connect_tcp(address, port, timeout, local_address, socket_options)
        return await self._network.connect_tcp(addresses[-1], port, timeout, local_address, socket_options)

    async def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> AsyncNetworkStream:
        raise AddressRefused(f"{path} is a socket of this machine")

    async def sleep(self, seconds: float) -> None:
        await self._network.sleep(seconds)


def _embedded(address: Address) -> Address:
    """Return the IPv4 address in an IPv6 address that only wraps it (mapped, NAT64), otherwise the address itself."""
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped is not None:
            return address.ipv4_mapped
        if address in NAT64:
            return IPv4Address(address.packed[-4:])
    return address
