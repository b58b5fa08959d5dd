"""The interface between a durable function and its host, which is a worker or a test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol
from uuid import UUID

from penstock.engine.durable.records import Child, ChildStart, History, Key, Record


class Backend(Protocol):
    """The access of one attempt to the records of its run. A write is committed when its method returns. If the attempt
    no longer belongs to the worker, a write raises ClaimLost and stores nothing."""

    async def load(self) -> History:
        """Return all records of the run."""

    async def begin(self, record: Record) -> None:
        """Note that the function of this step is about to be called."""

    async def record(self, records: Sequence[Record]) -> Mapping[Key, Record]:
        """Write these records. Return, by key, the stored records that differ from them: a record that was written
        before stays. If the record that `unless` names exists, it is returned under the key of the record that was not
        written. A record with the status `told` stores only when the result of its row was delivered."""

    async def start(self, children: Sequence[ChildStart]) -> Mapping[Key, Child]:
        """Record these children and start their executions, each once."""

    async def ended(self, ids: Sequence[UUID], seconds: float) -> Mapping[UUID, Child]:
        """Wait at most `seconds` for one of these children to end. Return those that have ended."""

    async def look(
        self, signals: Sequence[Key], children: Sequence[UUID]
    ) -> tuple[Sequence[Record], Mapping[UUID, Child]]:
        """Return the signals among `signals` that were sent, and the children among `children` that have ended."""

    async def resolved(self, result: Any) -> Any:
        """Return the result of a child, with stored results in place of references to them."""

    async def cancel(self, ids: Sequence[UUID]) -> None:
        """Request the end of these children, since their run does not need them any more."""

    def may_stay(self) -> bool:
        """Return whether the function may stay on its worker while it waits, because no other attempt needs its slot."""

    def asked_to_end(self) -> bool:
        """Return whether an end of this run was requested while this attempt ran."""

    def ends_at_once(self) -> bool:
        """Return whether the end was requested once more, so that the attempt may not clean up any more."""

    async def requested_end(self) -> str | None:
        """Return the status as which the run was asked to end; None if it was not."""
