"""The ends of an attempt of a durable function before its function ends."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.engine.durable.records import Awaited


@dataclass(frozen=True, slots=True)
class Suspended:
    """It waits for what is not there yet, and gives its slot and its worker back."""

    awaited: Awaited


@dataclass(frozen=True, slots=True)
class Stopped:
    """It cannot go on: its claim is lost, its code does not fit what is recorded, or a write has failed."""

    error: Exception


@dataclass(frozen=True, slots=True)
class Unfinished:
    """Its worker stops, or has given it up."""


Verdict = Suspended | Stopped | Unfinished


class AttemptOver(BaseException):
    """Raised inside the function, where it waits or asks for anything more. Not an Exception, so that `except Exception` lets it
    through: the run is not over, only this attempt of it, and what is in `finally` must not take it for a failure."""
