"""The queue of sign-ins that wait for their password to be hashed. The queue is bounded, and an address without
failures goes first.

A name that signed in from its address before goes first of all. Addresses take turns, so that a flood from new
addresses delays another new address by at most one sign-in of each.

A hash takes 64 MB and a core for a tenth of a second. An attacker with many addresses can send more guesses than can
be hashed. The line rejects what exceeds its bounds before any statement runs, so that a rejected guess costs next to
nothing.
"""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from penstock.errors import TooManyAttempts

AT_ONCE = 2
"""Passwords that are hashed at the same time: more would let any caller use up the memory of the machine."""
WAITING = 100
"""The maximum number of waiting sign-ins. If the queue is full, the one from the worst address is rejected."""
OF_ADDRESS = 10
"""The maximum number of sign-ins from one address that wait or are hashed."""
OF_NAME_AND_ADDRESS = 2
"""The maximum number of sign-ins of one name from one address that wait or are hashed."""
REMEMBERED_ADDRESSES = 10_000
"""The number of addresses with failures that this process remembers. It forgets the one with the oldest failure
first."""
REMEMBERED_LOG_INS = 10_000
"""The number of names, with the address of their last sign-in, that this process remembers. It forgets the oldest
first."""
MISTAKES = 3
"""Wrong passwords after which a name that signed in from its address before no longer goes first."""
RETRY_AFTER = 3
"""Seconds after which a rejected sign-in may come again."""


@dataclass(slots=True, eq=False)
class _Place:
    """A sign-in in the queue. The future `begin` is done when the sign-in may go on; if it is rejected, it has an
    error."""

    name: str
    address: str
    begin: asyncio.Future[None] = field(default_factory=lambda: asyncio.get_running_loop().create_future())


class LogInLine:
    """The line of sign-ins of one process."""

    def __init__(self) -> None:
        self._waiting: list[_Place] = []
        self._under_way: set[_Place] = set()
        self._failures: OrderedDict[str, int] = OrderedDict()
        self._mistakes_left: OrderedDict[tuple[str, str], int] = OrderedDict()
        self._known_addresses: Counter[str] = Counter()
        """The number of names in `_mistakes_left` by address."""
        self._places: Counter[str] = Counter()
        """The number of sign-ins that wait or are under way, by address."""
        self._worst_rank: tuple[bool, int, int] | None = None
        """The rank of the worst sign-in that waits, until something changes that."""

    @asynccontextmanager
    async def turn(self, name: str, address: str) -> AsyncIterator[None]:
        """Wait for a turn of the sign-in queue, which lasts for the block. If the block raises, that counts as a
        failure of its address. Raises TooManyAttempts if the queue has no place."""
        place = self._enter(name, address)
        try:
            await place.begin
            try:
                yield
            except Exception:
                self._note_mistake(name, address)
                raise
            self._note_success(name, address)
        except asyncio.CancelledError:
            raise
        except BaseException:
            self._note_failure(address)
            raise
        finally:
            self._leave(place)

    def refuses(self, address: str) -> bool:
        """Return True if any sign-in from this address would be rejected, and count a failure of the address then. A
        caller that checks this first need not read the request."""
        own = self._places.get(address, 0)
        is_refused = own >= OF_ADDRESS or (
            len(self._waiting) >= WAITING
            and not self._known_addresses.get(address, 0)
            and (True, self._failure_class(address), own) >= self._worst()
        )
        if is_refused:
            self._note_failure(address)
        return is_refused

    def _worst(self) -> tuple[bool, int, int]:
        """Return the rank of the worst sign-in that waits. A flood asks for it with each request, and it seldom changes."""
        if self._worst_rank is None:
            self._worst_rank = max(self._ranks().values())
        return self._worst_rank

    def __len__(self) -> int:
        """Return the number of waiting sign-ins."""
        return len(self._waiting)

    def _enter(self, name: str, address: str) -> _Place:
        own = self._places_of(address)
        if len(own) >= OF_ADDRESS or sum(place.name == name for place in own) >= OF_NAME_AND_ADDRESS:
            self._note_failure(address)
            raise refusal()
        place = _Place(name, address)
        self._waiting.append(place)
        self._places[address] += 1
        self._worst_rank = None
        if len(self._waiting) > WAITING:
            ranks = self._ranks()
            worst = max(reversed(self._waiting), key=ranks.__getitem__)
            self._waiting.remove(worst)
            self._take_back(worst)
            if not worst.begin.done():
                worst.begin.set_exception(refusal())
        self._go_on()
        return place

    def _leave(self, place: _Place) -> None:
        if place in self._under_way:
            self._under_way.remove(place)
            self._take_back(place)
        elif place in self._waiting:
            self._waiting.remove(place)
            self._take_back(place)
        self._go_on()

    def _take_back(self, place: _Place) -> None:
        """Stop counting a place for its address."""
        self._worst_rank = None
        self._places[place.address] -= 1
        if not self._places[place.address]:
            del self._places[place.address]

    def _go_on(self) -> None:
        """Start waiting sign-ins, the best-ranked ones first, and of equals the oldest."""
        while self._waiting and len(self._under_way) < AT_ONCE:
            place = min(self._waiting, key=self._ranks().__getitem__)
            self._waiting.remove(place)
            self._worst_rank = None
            if place.begin.done():  # the sign-in was cancelled, and its task has not left the line yet
                self._take_back(place)
            else:
                self._under_way.add(place)
                place.begin.set_result(None)

    def _ranks(self) -> dict[_Place, tuple[bool, int, int]]:
        """Return the rank of each waiting place. One pass: the cost in a flood must not be quadratic.

        A name that signed in from its address before comes first, then an address with few failures. Of equals, the
        first sign-ins of all addresses come before the second ones; running ones count, too.
        """
        places_of_address = Counter(place.address for place in self._under_way)
        ranks = {}
        for place in self._waiting:
            address = place.address
            is_new = (place.name, address) not in self._mistakes_left
            ranks[place] = (is_new, self._failure_class(address), places_of_address[address])
            places_of_address[address] += 1
        return ranks

    def _places_of(self, address: str) -> list[_Place]:
        return [place for place in (*self._waiting, *self._under_way) if place.address == address]

    def _failure_class(self, address: str) -> int:
        """Return 0 for no failure, 1 for one, 2 for two or three, and so on. The addresses of a flood are equals, so
        that a full line rejects the new ones and keeps those that wait."""
        return self._failures.get(address, 0).bit_length()

    def _note_success(self, name: str, address: str) -> None:
        self._failures.pop(address, None)
        self._worst_rank = None
        self._forget(name, address)
        self._remember(name, address, MISTAKES)
        if len(self._mistakes_left) > REMEMBERED_LOG_INS:
            self._forget(*next(iter(self._mistakes_left)))

    def _note_mistake(self, name: str, address: str) -> None:
        """Count down the mistakes that a name may still make. Without this limit, its owner could hold both turns
        with wrong passwords."""
        mistakes_left = self._forget(name, address) - 1
        if mistakes_left > 0:
            self._remember(name, address, mistakes_left)

    def _remember(self, name: str, address: str, mistakes_left: int) -> None:
        self._worst_rank = None
        self._mistakes_left[name, address] = mistakes_left
        self._known_addresses[address] += 1

    def _forget(self, name: str, address: str) -> int:
        """Forget a sign-in of this name from its address. Return the mistakes that it had left; 0 for an unknown one."""
        self._worst_rank = None
        mistakes_left = self._mistakes_left.pop((name, address), 0)
        if mistakes_left:
            self._known_addresses[address] -= 1
            if not self._known_addresses[address]:
                del self._known_addresses[address]
        return mistakes_left

    def _note_failure(self, address: str) -> None:
        count = self._failures.get(address, 0) + 1
        if not count & (count - 1):  # at a power of two, the failure class of the address changes
            self._worst_rank = None
        self._failures[address] = count
        self._failures.move_to_end(address)
        if len(self._failures) > REMEMBERED_ADDRESSES:
            self._worst_rank = None
            self._failures.popitem(last=False)


def refusal() -> TooManyAttempts:
    """Return the error of a sign-in that finds no place."""
    return TooManyAttempts(
        "too many sign-ins wait for an answer",
        hint=f"Try again in {RETRY_AFTER} seconds.",
        seconds=RETRY_AFTER,
    )
