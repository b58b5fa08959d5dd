"""The claims of a worker that have attempts left to report. The row of a claim goes with the report of its last attempt."""

from __future__ import annotations

from uuid import UUID


class OpenClaims:
    """The number of attempts of each claim that are still to be reported."""

    def __init__(self) -> None:
        self._left: dict[UUID, int] = {}
        self._kept: set[UUID] = set()

    def open(self, claim: UUID, size: int) -> None:
        """A claim of so many attempts was made."""
        self._left[claim] = self._left.get(claim, 0) + size

    def keep(self, claim: UUID) -> None:
        """Its row is not to be deleted: an attempt of it is found and taken back there."""
        self._kept.add(claim)

    def count_down(self, claim: UUID) -> UUID | None:
        """An attempt of it is reported, or will not be. Returns the claim if its row is to be deleted with that."""
        remaining = self._left[claim] - 1
        if remaining:
            self._left[claim] = remaining
            return None
        del self._left[claim]
        if claim in self._kept:
            self._kept.remove(claim)
            return None
        return claim
