"""An error after which a run of the benchmark cannot continue."""

from __future__ import annotations

from penstock import PenstockError


class CannotMeasure(PenstockError):
    """The requested system or server is not on this machine. `hint` names works that do without it."""
