"""The open claims of a worker: those with attempts that are not reported yet. The report of a claim's last attempt
deletes the row of the claim."""

from __future__ import annotations

from uuid import UUID


class OpenClaims:
    """The number of unreported attempts of each claim."""

    def __init__(self) -> None:
        self._left: dict[UUID, int] = {}
        self._kept: set[UUID] = set()

    def open(self, claim: UUID, size: int) -> None:
        """Add a claim of `size` attempts."""
        self._left[claim] = self._left.get(claim, 0) + size

    def keep(self, claim: UUID) -> None:
        """Keep the row of a claim: one of its attempts is found and taken back by that row."""
        self._kept.add(claim)

    def count_down(self, claim: UUID) -> UUID | None:
        """Count an attempt as reported or dropped. Return the claim if its row is to be deleted now."""
        remaining = self._left[claim] - 1
        if remaining:
            self._left[claim] = remaining
            return None
        del self._left[claim]
        if claim in self._kept:
            self._kept.remove(claim)
            return None
        return claim
