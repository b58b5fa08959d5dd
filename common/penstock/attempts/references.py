"""The secrets and stored results to which the parameters and the result of an attempt refer. They are resolved just
before a run, and replaced by references right after it."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

from penstock.attempts import secret_values
from penstock.attempts.owned_attempt import OwnedAttempt
from penstock.attempts.secret_masking import concealed_outcome
from penstock.errors import ConfigurationError, ResultNotStorable
from penstock.language.rules.secret_references import KEY
from penstock.language.terms.redaction import LIVE, concealed, hidden_forms, worth_hiding
from penstock.run import result_encoding
from penstock.run.outcomes import Outcome, TaskError
from penstock.service.process_secrecy import credentials
from penstock.store.executions.stored_results import StoredResults
from penstock.store.session import sealed_marks
from penstock.store.session.database import Database


class References:
    """The resolver of the references of the attempts of a process."""

    def __init__(self, database: Database) -> None:
        settings = database.settings
        self._session = database.session()
        self._cap = settings.payload_cap
        self._store = StoredResults(settings.result_store, settings.result_store_cap, self._session)
        self._store.open()
        self._own = hidden_forms(credentials(settings))
        self._own_encoded = tuple(form.encode() for form in self._own)
        self._shortest_own = min(map(len, self._own_encoded), default=0)
        self.limit = self._cap if self._store.url is None else max(self._cap, self._store.cap)
        """The maximum size of a result, in bytes."""

    async def follow(self, owned: OwnedAttempt, worker: UUID) -> None:
        """Resolve the references in the parameters of an attempt that `worker` owns. Raises NotFound if a secret or a
        stored result does not exist. Raises InvalidInput if the resolved parameters do not fit their schema. Raises
        ConfigurationError if this process lacks a master key or the result store."""
        if sealed_marks.KEY in owned.params:
            raise ConfigurationError(
                f"the parameters of {owned.event.execution_id} are encrypted, and this worker lacks their key",
                hint="Give the worker the master key that `penstock encryption list` names (PENSTOCK_SECRETS_KEY).",
            )
        if KEY in owned.params:
            await secret_values.reveal(self._session, owned, worker)
        resolved = await self._store.resolved(owned.params)
        if resolved is not owned.params:
            schema = owned.version.parameters
            schema.validate(resolved)  # references were not checked when the parameters were stored
            owned.params = resolved
            secrets = schema.secrets_of(resolved)
            LIVE.hide(secrets)
            owned.secrets = worth_hiding((*owned.secrets, *hidden_forms(secrets)))

    async def reveal_named(self, owned: OwnedAttempt, worker: UUID) -> None:
        """Read the secrets that the options of the action of an attempt name, which `worker` owns. Raises NotFound if
        the tenant has no such secret, and ConfigurationError if this process lacks its master key."""
        await secret_values.reveal_named(self._session, owned, worker)

    def concealed(self, owned: OwnedAttempt, outcome: Outcome) -> Outcome:
        """Return an outcome without secrets, and without the credentials of this process."""
        outcome = concealed_outcome(outcome, owned.secrets, owned.of_store)
        if outcome.error is not None or self._shows_own(outcome):
            outcome = concealed_outcome(outcome, self._own, self._own)
        return outcome

    def conceal_line(self, owned: OwnedAttempt, line: str) -> str:
        """Return a line of the attempt's log without secrets, and without the credentials of this process."""
        return concealed(concealed(line, owned.secrets), self._own)

    def _shows_own(self, outcome: Outcome) -> bool:
        """Return whether the outcome of an attempt can hold a credential of this process. Most outcomes hold a short result
        and nothing else."""
        encoded = outcome.result_json
        if encoded is None or outcome.carry or outcome.inquiry:
            return True
        return len(encoded) >= self._shortest_own and any(form in encoded for form in self._own_encoded)

    async def put_away(self, owned: OwnedAttempt, outcome: Outcome) -> Outcome:
        """Return an outcome without secrets, and with a reference for a result that is too large for the database.
        Secrets are masked first, since a text in a reference can only look like a secret."""
        outcome = self.concealed(owned, outcome)
        encoded = outcome.result_json
        if self._store.url is None or (encoded is not None and len(encoded) <= self._cap):
            return outcome
        try:
            if encoded is None:
                for value in (outcome.carry, outcome.inquiry):
                    # The database stores inquiries and carried values itself: the result store holds results only.
                    result_encoding.encode(value, self._cap, "what the attempt carries over")
                return outcome
            tenant = owned.event.namespace.partition("::")[0]
            stored = await self._store.put(owned.event.execution_id, encoded, tenant)
            return Outcome("completed", stored)
        except ResultNotStorable as error:
            # Another attempt may succeed in writing to the result store. A value that is too large stays too large.
            return Outcome.failed(replace(TaskError.of(error), retryable=encoded is not None))
