"""The line of log-ins before a password is hashed. It is bounded, and an address without failures goes first.

A hash takes 64 MB and a core for a tenth of a second. An attacker with many addresses sends more guesses than can be hashed. The
line refuses what exceeds its bounds before any statement runs, so that a guess which is refused costs next to nothing.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from penstock.errors import TooManyAttempts

AT_ONCE = 2
"""Log-ins whose password is hashed at the same time: more would let anybody use up the memory of the machine."""
WAITING = 100
"""Log-ins that wait at most. When the line is full, the one from the worst address is refused."""
OF_ADDRESS = 10
"""Log-ins from one address that wait or are hashed at most."""
OF_NAME_AND_ADDRESS = 2
"""Log-ins of one name from one address that wait or are hashed at most."""
REMEMBERED_ADDRESSES = 10_000
"""Addresses whose failures this process remembers. It forgets the one that failed longest ago first."""
RETRY_AFTER = 3
"""Seconds after which a log-in that found no place in the line may come again."""


@dataclass(slots=True, eq=False)
class _Place:
    """A log-in in the line. `begin` is done once it may go on, or holds the refusal."""

    name: str
    address: str
    begin: asyncio.Future[None] = field(default_factory=lambda: asyncio.get_running_loop().create_future())


class LogInLine:
    """The line of one process."""

    def __init__(self) -> None:
        self._waiting: list[_Place] = []
        self._under_way: set[_Place] = set()
        self._failures: OrderedDict[str, int] = OrderedDict()

    @asynccontextmanager
    async def turn(self, name: str, address: str) -> AsyncIterator[None]:
        """Wait for a turn. A block that raises counts as a failure of its address. Raises TooManyAttempts without a place."""
        place = self._enter(name, address)
        try:
            await place.begin
            yield
            self._failures.pop(address, None)
        except asyncio.CancelledError:
            raise
        except BaseException:
            self._note_failure(address)
            raise
        finally:
            self._leave(place)

    def __len__(self) -> int:
        """Return how many wait."""
        return len(self._waiting)

    def _enter(self, name: str, address: str) -> _Place:
        own = [place for place in (*self._waiting, *self._under_way) if place.address == address]
        if len(own) >= OF_ADDRESS or sum(place.name == name for place in own) >= OF_NAME_AND_ADDRESS:
            self._note_failure(address)
            raise _refusal()
        place = _Place(name, address)
        self._waiting.append(place)
        if len(self._waiting) > WAITING:
            worst = max(reversed(self._waiting), key=self._rank)
            self._waiting.remove(worst)
            worst.begin.set_exception(_refusal())
        self._go_on()
        return place

    def _leave(self, place: _Place) -> None:
        if place in self._under_way:
            self._under_way.remove(place)
        elif place in self._waiting:
            self._waiting.remove(place)
        self._go_on()

    def _go_on(self) -> None:
        """Let the best of those that wait begin, the oldest of equals."""
        while self._waiting and len(self._under_way) < AT_ONCE:
            place = min(self._waiting, key=self._rank)
            self._waiting.remove(place)
            self._under_way.add(place)
            place.begin.set_result(None)

    def _rank(self, place: _Place) -> tuple[int, int]:
        """Return the order of a place: an address with few failures first, then one with few log-ins under way."""
        under_way = sum(other.address == place.address for other in self._under_way)
        return self._failures.get(place.address, 0), under_way

    def _note_failure(self, address: str) -> None:
        self._failures[address] = self._failures.get(address, 0) + 1
        self._failures.move_to_end(address)
        if len(self._failures) > REMEMBERED_ADDRESSES:
            self._failures.popitem(last=False)


def _refusal() -> TooManyAttempts:
    return TooManyAttempts(
        "too many log-ins wait for an answer",
        hint=f"Try again in {RETRY_AFTER} seconds.",
        seconds=RETRY_AFTER,
    )
