"""The network of an installation: every way from one part to another leads through a proxy, and can be parted."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Iterable, Mapping
from typing import Any, Literal, TypeVar

from tests.chaos.proxy import Direction, Proxy

T = TypeVar("T")
How = Literal["silent", "one way", "reset"]
"""silent: nothing arrives, and nobody is told. one way: what the one that connected sends does not arrive, what it is sent
does. reset: connections are reset, and new ones are refused."""
HELD: Mapping[How, tuple[Direction, ...]] = {"silent": ("up", "down"), "one way": ("up",)}


def link(one: str, other: str) -> str:
    return f"{one} | {other}"


class Ways:
    """The ways of a topology, on a thread of their own: a caller that asks for a way may block."""

    def __init__(self) -> None:
        self._proxies: dict[tuple[str, int], Proxy] = {}
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="ways", daemon=True)
        self._thread.start()

    def through(self, name: str, port: int) -> int:
        """The port by which this link leads to that port."""
        return self._do(self._made(name, port)).port

    def part(self, names: Iterable[str], how: How) -> int:
        """Part these ways, and return the number of their connections."""
        return self._do(self._part(set(names), how))

    def heal(self) -> None:
        self._do(self._heal())

    def close(self) -> None:
        self._do(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _do(self, what: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(what, self._loop).result(10)

    async def _made(self, name: str, port: int) -> Proxy:
        if (name, port) not in self._proxies:
            self._proxies[name, port] = await Proxy(port).__aenter__()
        return self._proxies[name, port]

    async def _part(self, names: set[str], how: How) -> int:
        proxies = [proxy for (name, _), proxy in self._proxies.items() if name in names]
        connections = sum(proxy.connections for proxy in proxies)
        for proxy in proxies:
            if how == "reset":
                proxy.cut()
            else:
                proxy.hold(*HELD[how])
        return connections

    async def _heal(self) -> None:
        for proxy in self._proxies.values():
            proxy.heal()

    async def _close(self) -> None:
        for proxy in self._proxies.values():
            await proxy.__aexit__()
