"""The points at which a process can die with work half done: before and after every commit, publish, ack and
broadcast.

In production no function is registered, and a point costs a comparison. The crash tests set `reached` in a process of
their own and kill it there. They read the caller from the stack, so that no call site can be left out.
"""

from __future__ import annotations

from collections.abc import Callable

reached: Callable[[str, object], None] | None = None
"""A function that is called before a commit, publish, ack, dead letter or broadcast (`committing`, `publishing`,
`acking`, `burying`, `broadcasting`), and after it (`committed`, `written`, `published`, `acked`, `buried`, `told`). Its
second argument is the connection, if that is one of PostgreSQL."""


def at(point: str, connection: object = None) -> None:
    if reached is not None:
        reached(point, connection)
