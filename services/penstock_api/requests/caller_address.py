"""The address of a caller, by which failed sign-ins are counted."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Network, ip_address

from fastapi import Request

NETWORK_OF_A_CALLER = 64
"""The bits of an IPv6 address that identify a caller. Each customer of a provider has at least that many addresses."""


def address_of(request: Request) -> str:
    """Return the address of the caller, or the network of an IPv6 address. The address of a trusted proxy was replaced
    before."""
    return grouped(request.client.host if request.client else "")


def grouped(host: str) -> str:
    """Return a text that is equal for all addresses of one caller."""
    try:
        address = ip_address(host)
    except ValueError:  # a Unix socket
        return host
    if isinstance(address, IPv4Address):
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(IPv6Network((int(address), NETWORK_OF_A_CALLER), strict=False))
