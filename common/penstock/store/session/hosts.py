"""The hosts of one database: each is asked by itself, so that one that does not answer does not block the others."""

from __future__ import annotations

import re

import asyncpg

from penstock.errors import ConnectionFailed, ServerFull
from penstock.settings import Settings
from penstock.store.session.connecting import Row, connect

READ_WRITE, STANDBY = "read-write", "standby"
"""What one of several hosts has to be."""


class Hosts:
    """The host that gave a connection last is asked first. Of those that hang, each takes its share of the time, once."""

    def __init__(self, url: str) -> None:
        self._urls = one_by_one(url)

    async def connect(self, settings: Settings, *, role: str, timeout: float = 10) -> asyncpg.Connection[Row]:
        """A connection to a host that will do. Raises ConnectionFailed, without the URL's password, when none does: ServerFull
        if one would have and is full. Raises ConfigurationError."""
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
    """An address for each host of this one: `postgresql://user:password@one:5432,other:5432/database?...`."""
    match = re.fullmatch(r"(?P<before>\w+://(?:[^/?#]*@)?)(?P<hosts>[^/?#@]*)(?P<after>.*)", url, re.DOTALL)
    hosts = [host for host in match["hosts"].split(",") if host] if match else []
    # Which is the best of all hosts cannot be told by one of them.
    if match is None or len(hosts) < 2 or "target_session_attrs=prefer-standby" in url:
        return [url]
    return [f"{match['before']}{host}{match['after']}" for host in hosts]


def wanting(url: str, attributes: str) -> str:
    """Return the address with a wanted session attribute, where it names several hosts and does not ask for one of
    them already."""
    if len(one_by_one(url)) < 2 or "target_session_attrs=" in url:
        return url
    return f"{url}{'&' if '?' in url else '?'}target_session_attrs={attributes}"


def _all_of(failures: list[ConnectionFailed]) -> ConnectionFailed:
    """One error for all hosts."""
    kind = ServerFull if any(isinstance(error, ServerFull) for error in failures) else ConnectionFailed
    hints = dict.fromkeys(error.hint for error in failures if error.hint)
    return kind("; ".join(error.message for error in failures), hint=" ".join(hints))
