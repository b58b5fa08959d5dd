"""The interface between a durable function and its host, which is a worker or a test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol
from uuid import UUID

from penstock.engine.durable.records import Child, ChildStart, History, Key, Record


class Backend(Protocol):
    """One attempt's access to what is recorded. Each of its writes is committed when it returns, and raises ClaimLost where
    the attempt is not the worker's any more; nothing is written then."""

    async def load(self) -> History:
        """Return all records of the run."""

    async def begin(self, record: Record) -> None:
        """Note that the function of this step is about to be called."""

    async def record(self, records: Sequence[Record]) -> Mapping[Key, Record]:
        """Write these records. Return the stored records that differ: those were written before, and stay. Where a
        record was written with `unless` and another one exists, return that one by the key of this one. A record of
        status `told` only says when the result of its row was told."""

    async def start(self, children: Sequence[ChildStart]) -> Mapping[Key, Child]:
        """Record these children and start their executions, each once."""

    async def ended(self, ids: Sequence[UUID], seconds: float) -> Mapping[UUID, Child]:
        """Wait at most `seconds` for one of these children to end. Return those that have ended."""

    async def look(
        self, signals: Sequence[Key], children: Sequence[UUID]
    ) -> tuple[Sequence[Record], Mapping[UUID, Child]]:
        """Return which of these signals were sent, and which of these children have ended, as of now."""

    async def resolved(self, result: Any) -> Any:
        """Return the result of a child, with stored results in place of references to them."""

    async def cancel(self, ids: Sequence[UUID]) -> None:
        """Request the end of these children, since their run does not need them any more."""

    def may_stay(self) -> bool:
        """Return whether the function may stay on its worker while it waits, because no other attempt needs its slot."""

    def asked_to_end(self) -> bool:
        """Return whether an end of this run was requested while this attempt ran."""

    async def requested_end(self) -> str | None:
        """Return the status as which the run was asked to end; None if it was not."""
