"""The hosts of one database. Each is tried separately, so that a host that hangs does not block the others."""

from __future__ import annotations

import re

import asyncpg

from penstock.errors import ConnectionFailed, ServerFull
from penstock.settings import Settings
from penstock.store.session.connecting import Row, connect

READ_WRITE, STANDBY = "read-write", "standby"
"""Session attributes that a host among several must have."""


class Hosts:
    """The hosts of an address, the one that gave the last connection first. Each host has an equal share of the
    timeout."""

    def __init__(self, url: str) -> None:
        self._urls = one_by_one(url)

    async def connect(self, settings: Settings, *, role: str, timeout: float = 10) -> asyncpg.Connection[Row]:
        """Open a connection to a suitable host. Raises ConnectionFailed if there is none (ServerFull if a host is
        full), without the URL's password. Raises ConfigurationError if a setting is not valid."""
        failures: list[ConnectionFailed] = []
        for url in tuple(self._urls):
            try:
                connection = await connect(url, settings, role=role, timeout=timeout / len(self._urls))
            except ConnectionFailed as error:
                failures.append(error)
                continue
            self._urls.sort(key=lambda other: other != url)
            return connection
        raise _all_of(failures)


def one_by_one(url: str) -> list[str]:
    """Return an address for each host of `postgresql://user:password@one:5432,other:5432/database?...`."""
    match = re.fullmatch(r"(?P<before>\w+://(?:[^/?#]*@)?)(?P<hosts>[^/?#@]*)(?P<after>.*)", url, re.DOTALL)
    hosts = [host for host in match["hosts"].split(",") if host] if match else []
    # `prefer-standby` compares all hosts: one host by itself does not show whether there is a better one.
    if match is None or len(hosts) < 2 or "target_session_attrs=prefer-standby" in url:
        return [url]
    return [f"{match['before']}{host}{match['after']}" for host in hosts]


def wanting(url: str, attributes: str) -> str:
    """Return the address with a required session attribute, if it names several hosts and requires none yet."""
    if len(one_by_one(url)) < 2 or "target_session_attrs=" in url:
        return url
    return f"{url}{'&' if '?' in url else '?'}target_session_attrs={attributes}"


def _all_of(failures: list[ConnectionFailed]) -> ConnectionFailed:
    """Return one error for the failures of all hosts."""
    kind = ServerFull if any(isinstance(error, ServerFull) for error in failures) else ConnectionFailed
    hints = dict.fromkeys(error.hint for error in failures if error.hint)
    return kind("; ".join(error.message for error in failures), hint=" ".join(hints))
