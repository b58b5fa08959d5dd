"""The ends of an attempt of a durable function before its function ends."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.engine.durable.records import Awaited


@dataclass(frozen=True, slots=True)
class Suspended:
    """The end of an attempt that waits for a result which is not there yet. The attempt gives back its slot and its
    worker."""

    awaited: Awaited


@dataclass(frozen=True, slots=True)
class Stopped:
    """The end of an attempt that cannot continue: its claim is lost, its code does not fit its records, or a write has
    failed."""

    error: BaseException


@dataclass(frozen=True, slots=True)
class Unfinished:
    """The end of an attempt whose worker stops or has abandoned it."""


@dataclass(frozen=True, slots=True)
class GraceOver:
    """The end of an attempt that has not cleaned up within the grace, after it was asked to end. The run ends as it was
    asked to."""

    ends_as: str
    grace: float

    @property
    def message(self) -> str:
        return f"the run was asked to end as {self.ends_as}, and had not cleaned up after {self.grace:g} s"


Verdict = Suspended | Stopped | Unfinished | GraceOver


class AttemptOver(BaseException):
    """Raised inside the function when it waits or makes another call after its attempt is over. AttemptOver is not an
    Exception, so that `except Exception` lets it through. Only this attempt is over, and the run is not: a `finally`
    must not take it for a failure."""
