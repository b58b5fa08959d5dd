"""What sessions differ in, and what a connection has to be told before one can have it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SessionOptions:
    """What a session asks of its connection: whether its commits may be lost in a crash of the server (`relaxed`), and after
    how many seconds a statement is cancelled (None: never). One that may be is of who looks on or tidies up: it takes one core,
    and never those that everything else needs. (Said here and not as one connects: a pooler would refuse who says so.)"""

    relaxed: bool = False
    most: float | None = None

    @property
    def sql(self) -> str:
        commit = "set synchronous_commit = off" if self.relaxed else "reset synchronous_commit"
        if self.most is None:
            return f"{commit}; reset statement_timeout; reset max_parallel_workers_per_gather"
        timeout = f"set statement_timeout = {self.most * 1000:.0f}"
        return f"{commit}; {timeout}; set max_parallel_workers_per_gather = 0"


NO_OPTIONS = SessionOptions()
