"""What sessions differ in, and what a connection has to be told before one can have it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SessionOptions:
    """What a session asks of its connection: whether its commits may be lost in a crash of the server (`relaxed`), and after
    how many seconds a statement is cancelled (None: never)."""

    relaxed: bool = False
    most: float | None = None

    @property
    def sql(self) -> str:
        commit = "set synchronous_commit = off" if self.relaxed else "reset synchronous_commit"
        timeout = (
            f"set statement_timeout = {self.most * 1000:.0f}" if self.most else "reset statement_timeout"
        )
        return f"{commit}; {timeout}"


NO_OPTIONS = SessionOptions()
