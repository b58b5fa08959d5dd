"""The points at which a process can die with work half done: before and after every commit, publish, ack and
broadcast.

Nothing listens in a running system, and a point costs a comparison. The crash tests set `reached` in a process of
theirs and kill it there; the caller is read from the stack, so that no call site can be left out.
"""

from __future__ import annotations

from collections.abc import Callable

reached: Callable[[str, object], None] | None = None
"""Called with what is about to happen (`committing`, `publishing`, `acking`, `burying`, `broadcasting`) or has happened
(`committed`, `written`, `published`, `acked`, `buried`, `told`), and the connection it happens on, if it is PostgreSQL's."""


def at(point: str, connection: object = None) -> None:
    if reached is not None:
        reached(point, connection)
