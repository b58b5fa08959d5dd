"""The statements of a random durable program. A statement is found by its place: the path from the root of the program."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from zlib import crc32

HOUR = 3600.0
DAY = 24 * HOUR
ALWAYS = -1
"""As many failures as there are calls."""


def span(place: str, days: int) -> float:
    """Return about so many days in seconds: another number for each place, so that two spans hardly end at once."""
    return days * DAY + crc32(place.encode()) % 80_000 if days else 0.0


def wait_name(place: str) -> str:
    """Return the name of a wait that is played at this place."""
    return f"wait_{crc32(place.encode())}"


@dataclass(frozen=True)
class Statement:
    """A part of a program."""

    def parts(self, place: str) -> Iterator[tuple[str, Statement]]:
        """Yield the statements inside of this one, each with its place, as often as they are played."""
        yield from ()


@dataclass(frozen=True)
class Step(Statement):
    """A call of a function that fails so many times, within so many tries."""

    name: str = "a"
    fails: int = 0
    tries: int = 1
    delay: int = 0
    """Days between two tries."""
    hours: int = 0
    """How long a call takes."""
    yields: int = 0
    """How often a call of no hours lets other tasks go first."""
    retryable: bool = True
    hangs: bool = False
    """A call that runs when the end of the run is requested does not end by itself."""
    deaf: float = 0.0
    """Seconds that a call goes on after it was cancelled, once the end of the run is requested."""


@dataclass(frozen=True)
class Sleep(Statement):
    days: int = 1


@dataclass(frozen=True)
class Signal(Statement):
    """Wait for a signal, `listens` times for so many days each. The program says when it is sent."""

    name: str = "go"
    timeout: int | None = 1
    listens: int = 1


@dataclass(frozen=True)
class Wait(Statement):
    """Wait for an event or an answer that comes so many days later, or never."""

    ask: bool = False
    comes: int | None = 1
    timeout: int | None = 2


@dataclass(frozen=True)
class Child(Statement):
    """Run another action, which takes so many days; `items` other than None: once for each item."""

    fails: bool = False
    items: int | None = None
    concurrency: int = 2
    days: int = 0


@dataclass(frozen=True)
class Value(Statement):
    """Read the time, a random number, an identity, a version; or set state."""

    kind: str = "uuid"


@dataclass(frozen=True)
class Undo(Statement):
    """Register a compensation."""

    hangs: bool = False
    """A call that runs when the end of the run is requested does not end by itself."""


@dataclass(frozen=True)
class Raise(Statement):
    """Raise an error of the function's own."""

    retryable: bool = True


@dataclass(frozen=True)
class Block(Statement):
    """Statements one after the other."""

    body: tuple[Statement, ...] = ()

    def parts(self, place: str) -> Iterator[tuple[str, Statement]]:
        for number, part in enumerate(self.body):
            yield f"{place}.{number}", part


@dataclass(frozen=True)
class Branches(Statement):
    """Statements beside each other. `kind`: gather, group (a TaskGroup), collect (gather with `return_exceptions`), bare (steps
    that are given to `gather` as they are), lock or semaphore (each branch holds it), latch (the branches after the first one
    wait until the first one has ended)."""

    kind: str = "gather"
    body: tuple[Statement, ...] = ()

    def parts(self, place: str) -> Iterator[tuple[str, Statement]]:
        for number, part in enumerate(self.body):
            yield f"{place}|{number}", part


@dataclass(frozen=True)
class Workers(Statement):
    """Tasks that take items from one queue, and play the body for each."""

    workers: int = 2
    items: int = 3
    body: Statement = field(default_factory=Block)

    def parts(self, place: str) -> Iterator[tuple[str, Statement]]:
        for item in range(self.items):
            yield f"{place}#{item}", self.body


@dataclass(frozen=True)
class Start(Statement):
    """Make a task that an `Await` of this number may wait for."""

    task: int = 0
    body: Statement = field(default_factory=Block)

    def parts(self, place: str) -> Iterator[tuple[str, Statement]]:
        yield f"{place}~", self.body


@dataclass(frozen=True)
class Await(Statement):
    """Await the task of this number, or cancel it."""

    task: int = 0
    cancel: bool = False


@dataclass(frozen=True)
class Try(Statement):
    """Play the body. `kind` says what becomes of an error: except, star (except*), again (raise it again), wrap (raise another
    one from it), context (raise another one), hide (raise another one from None), finally (nothing). Three kinds catch a
    cancellation: obey (raise it again), stay (return), refuse (raise an error of the function's own)."""

    kind: str = "except"
    body: Statement = field(default_factory=Block)
    handler: Statement = field(default_factory=Block)

    def parts(self, place: str) -> Iterator[tuple[str, Statement]]:
        yield f"{place}?", self.body
        yield f"{place}!", self.handler


@dataclass(frozen=True)
class First(Statement):
    """The branch that ends first; the other ones are cancelled. Each one sleeps for so many days before its body."""

    branches: tuple[tuple[int, Statement], ...] = ()

    def parts(self, place: str) -> Iterator[tuple[str, Statement]]:
        for number, (_, part) in enumerate(self.branches):
            yield f"{place}^{number}", part


@dataclass(frozen=True)
class Timeout(Statement):
    """The body, for so many days at most."""

    days: int = 1
    body: Statement = field(default_factory=Block)

    def parts(self, place: str) -> Iterator[tuple[str, Statement]]:
        yield f"{place}=", self.body


@dataclass(frozen=True)
class Program:
    """A body, how often the action is tried, and what comes from outside: signals (name, day), and a cancellation."""

    body: Statement = field(default_factory=Block)
    attempts: int = 1
    sent: tuple[tuple[str, int], ...] = ()
    cancelled: int | None = None

    @cached_property
    def places(self) -> Sequence[tuple[str, Statement]]:
        """Every statement that may be played, with its place."""
        open_parts: list[tuple[str, Statement]] = [("0", self.body)]
        places = []
        while open_parts:
            place, statement = open_parts.pop()
            places.append((place, statement))
            open_parts.extend(statement.parts(place))
        return places

    def signals(self) -> list[tuple[float, str, str]]:
        """Return when which signal is sent, in seconds from the beginning, and its value."""
        return sorted(
            (span(f"{name}{number}", day), name, f"{name}{number}")
            for number, (name, day) in enumerate(self.sent)
        )
