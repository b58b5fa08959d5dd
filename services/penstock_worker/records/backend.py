"""The interface between the runner of a worker and the installation that it works for.

`penstock_worker.direct` implements it with the database and the broker, and `penstock_worker.gateway` with calls to a gateway.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from decimal import Decimal
from typing import Any, Protocol

from penstock.attempts.owned_attempt import OwnedAttempt
from penstock.language.policies.after_attempt import End
from penstock.run.outcomes import Outcome
from penstock.run.outgoing import Outgoing

Durable = Callable[[Mapping[str, Any]], Awaitable[Outcome]]
"""A function that runs a durable function with these arguments, and returns its outcome."""

NO_COSTS: Mapping[str, Decimal] = {}


class Requests(Protocol):
    """The events and executions that the code of one attempt asks its worker for."""

    def outgoing(self) -> Outgoing:
        """Return the way to these requests, for the code of the attempt."""

    def close(self) -> None:
        """Refuse further requests: the attempt is over."""


class Backend(Protocol):
    """The installation that a worker works for, as its runner sees it. The backend puts claimed attempts, which hold
    slots, into the worker's inbox. The backend frees a slot once the end of its attempt is stored, or its claim is
    lost."""

    @property
    def result_limit(self) -> int:
        """Return the maximum size of a result, in bytes of JSON."""

    def is_incomplete(self, owned: OwnedAttempt) -> bool:
        """Return whether `complete` has to add something to the attempt."""

    async def complete(self, owned: OwnedAttempt) -> None:
        """Add to an attempt the secrets and results that it refers to. An error fails the attempt."""

    def durable(self, owned: OwnedAttempt) -> Durable | None:
        """Return the driver of a durable function, or None for another action."""

    def requests(self, owned: OwnedAttempt) -> Requests: ...

    def add_line(self, owned: OwnedAttempt, stream: str, line: str) -> None:
        """Store a line of the attempt's log, without secrets. It may be called from any thread."""

    def conceal_line(self, owned: OwnedAttempt, line: str) -> str:
        """Return a text of the attempt's log without secrets. It may be called from any thread."""

    def concealed(self, owned: OwnedAttempt, outcome: Outcome) -> Outcome:
        """Return an outcome without secrets."""

    async def put_away(self, owned: OwnedAttempt, outcome: Outcome) -> Outcome:
        """Return an outcome without secrets, in the form in which it can be reported."""

    def took(self, owned: OwnedAttempt, seconds: float) -> None:
        """Note the duration of an attempt that ended by itself."""

    def end(self, owned: OwnedAttempt, end: End, costs: Mapping[str, Decimal] = NO_COSTS) -> None:
        """Report the end of an attempt, as soon as possible. `costs`: the true costs that it has reported."""

    def discard(self, owned: OwnedAttempt, *, known_to_be_lost: bool) -> None:
        """Drop an attempt with a claim that is lost, or may be, without a report."""

    def has_room(self) -> None:
        """Note that a place in a task executor is free again."""

    def stop(self) -> None:
        """Claim no more work."""

    async def close(self) -> None:
        """Hand back work that arrives from now on."""

    async def claimed(self) -> None:
        """Wait until no claim is under way."""

    def give_up_claims(self) -> None:
        """End the claims that are under way. Their work is for other workers."""

    async def reported(self) -> None:
        """Wait until all ends are stored."""
