"""The address of a caller, as failed log-ins count it."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Network, ip_address

from fastapi import Request

NETWORK_OF_A_CALLER = 64
"""Bits of an IPv6 address that name a caller: each customer of a provider has at least so many addresses of its own."""


def address_of(request: Request) -> str:
    """Return the address of the caller; of an IPv6 address, its network. A trusted proxy's is replaced before."""
    return grouped(request.client.host if request.client else "")


def grouped(host: str) -> str:
    """Return the text by which addresses of one caller are the same."""
    try:
        address = ip_address(host)
    except ValueError:  # a socket of this machine
        return host
    if isinstance(address, IPv4Address):
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(IPv6Network((int(address), NETWORK_OF_A_CALLER), strict=False))
