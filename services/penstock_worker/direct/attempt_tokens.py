"""The tokens with which the programs of attempts call the API."""

from __future__ import annotations

from penstock.attempts.owned_attempt import OwnedAttempt
from penstock.language.terms.redaction import hidden_forms, worth_hiding
from penstock.operate.execution_tokens import token_of
from penstock.run.run import executor_name
from penstock.service.assembly import Parts
from penstock.store.session.database import retried

IN_WORKER = ("async", "thread", "process", "http")
"""The task executors of code that needs no token, since its worker publishes and starts for it."""


class AttemptTokens:
    """The tokens of a worker's attempts. There are none if the worker does not know the address of the API."""

    def __init__(self, parts: Parts) -> None:
        self._session = parts.database.session()
        self._worker = parts.process
        self._address = parts.settings.api_address

    def is_needed(self, owned: OwnedAttempt) -> bool:
        """Return whether the attempt runs a program that may call the API."""
        return (
            self._address is not None and executor_name(owned.version.action, owned.of_route) not in IN_WORKER
        )

    async def add(self, owned: OwnedAttempt) -> None:
        """Add the token of an attempt to it, and mask the token in its output and its result."""
        event = owned.event
        owned.token = await retried(
            lambda: token_of(self._session, self._worker, event.execution_id, event.attempt)
        )
        if owned.token is not None:
            forms = hidden_forms([owned.token])
            owned.secrets = worth_hiding((*owned.secrets, *forms))
            owned.of_store = worth_hiding((*owned.of_store, *forms))
