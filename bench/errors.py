"""What a run of the benchmark cannot go on from."""

from __future__ import annotations

from penstock import PenstockError


class CannotMeasure(PenstockError):
    """What was asked for is not there, or not on this machine. `hint` says what does without it."""
