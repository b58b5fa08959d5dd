"""The resolution of references to secrets just before a run, so that no stored, sent or shown text contains the
values."""

from __future__ import annotations

from uuid import UUID

from penstock.attempts.owned_attempt import OwnedAttempt
from penstock.language.expressions import SecretName
from penstock.language.rules import secret_references
from penstock.language.terms.redaction import LIVE, hidden_forms, worth_hiding
from penstock.operate import secrets
from penstock.store.session.database import Session


async def reveal(session: Session, owned: OwnedAttempt, worker: UUID) -> None:
    """Resolve the secrets in the parameters of an attempt that `worker` owns, and note the values that its log, error
    and result must not show. Raises NotFound, ConfigurationError."""
    tenant = owned.event.namespace.partition("::")[0]
    names_of = secret_references.names_in(owned.params)
    values = await secrets.reveal_to_attempt(session, owned.event.execution_id, worker, tenant, names_of)

    def value(parts: list[str]) -> str:
        return "".join(values[part] if isinstance(part, SecretName) else part for part in parts)

    owned.params = secret_references.replaced(owned.params, value)
    LIVE.hide(values.values())
    owned.of_store = hidden_forms(values.values())
    names = {text: name for name, text in values.items()}
    owned.store_names = {text: names[text] for text in worth_hiding(names)}
    owned.secrets = worth_hiding((*owned.secrets, *owned.of_store))
