"""The resolution of references to secrets just before a run, so that no stored, sent or shown text contains the
values."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from penstock.attempts.owned_attempt import OwnedAttempt
from penstock.language.expressions import SecretName
from penstock.language.rules import secret_references
from penstock.language.terms.redaction import LIVE, hidden_forms, worth_hiding
from penstock.operate import secrets
from penstock.run.run import executor_name
from penstock.store.session.database import Session


async def reveal(session: Session, owned: OwnedAttempt, worker: UUID) -> None:
    """Resolve the secrets in the parameters of an attempt that `worker` owns, and note the values that its log, error
    and result must not show. Raises NotFound if the tenant has no such secret, and ConfigurationError if this process
    lacks its master key."""
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


def are_named(owned: OwnedAttempt) -> bool:
    """Return whether the options of the attempt's action name stored secrets."""
    return bool(_named(owned))


async def reveal_named(session: Session, owned: OwnedAttempt, process: UUID) -> None:
    """Read the secrets that the options of the attempt's action name, and note the values that its log, error and
    result must not show. Raises NotFound if the tenant has no such secret, and ConfigurationError if this process lacks
    its master key."""
    tenant, named = owned.event.namespace.partition("::")[0], _named(owned)
    values = await secrets.reveal_to_attempt(
        session, owned.event.execution_id, process, tenant, set(named.values())
    )
    owned.named_secrets = {name: values[stored] for name, stored in named.items()}
    LIVE.hide(values.values())
    forms = hidden_forms(values.values())
    owned.of_store = worth_hiding((*owned.of_store, *forms))
    owned.secrets = worth_hiding((*owned.secrets, *forms))


def _named(owned: OwnedAttempt) -> Mapping[str, str]:
    action = owned.version.action
    named = action.options.get("secrets") if executor_name(action, owned.of_route) == "http" else None
    return named if isinstance(named, Mapping) else {}
