"""The needs of a durable function that its host meets: a worker, or a test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol
from uuid import UUID

from penstock.engine.durable.records import Child, ChildStart, History, Key, Record


class Backend(Protocol):
    """One attempt's access to what is recorded. Each of its writes is committed when it returns, and raises ClaimLost where
    the attempt is not the worker's any more; nothing is written then."""

    async def load(self) -> History:
        """All that is recorded so far."""

    async def begin(self, record: Record) -> None:
        """The function of this step is about to be called."""

    async def record(self, records: Sequence[Record]) -> Mapping[Key, Record]:
        """Write these. Return those that are recorded otherwise already: they stand. Of a record that is written `unless` another
        one is there, and was not, return that other one by the key of this one. A record of status `told` only says when the
        result of its row was told."""

    async def start(self, children: Sequence[ChildStart]) -> Mapping[Key, Child]:
        """Record these and start their executions, each once."""

    async def ended(self, ids: Sequence[UUID], seconds: float) -> Mapping[UUID, Child]:
        """Wait so long at most for one of these to end; returns those that have."""

    async def look(
        self, signals: Sequence[Key], children: Sequence[UUID]
    ) -> tuple[Sequence[Record], Mapping[UUID, Child]]:
        """Return which of these signals were sent, and which of these children have ended, as of now."""

    async def resolved(self, result: Any) -> Any:
        """Return the result of a child, with stored results in place of references to them."""

    async def cancel(self, ids: Sequence[UUID]) -> None:
        """Ask for these children to end: their run does not need them any more."""

    def may_stay(self) -> bool:
        """Return whether the function may stay on its worker while it waits, because no other attempt needs its slot."""

    def asked_to_end(self) -> bool:
        """Return whether an end of this run was requested while this attempt ran."""

    async def requested_end(self) -> str | None:
        """Return the status as which the run was asked to end; None if it was not."""
