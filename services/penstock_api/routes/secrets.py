"""The routes of secrets, with their tenants and dates. Their values can be set, and never read."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Query

from penstock.language.terms.outside_names import SECRET
from penstock.operate import secrets
from penstock.store.access import secrets as store
from penstock_api.auth.access import DEFINE, READ, Asked, Tenants, own
from penstock_api.backend import Db
from penstock_api.models import secrets as models
from penstock_api.models.model import Tenant
from penstock_api.routes.router import Router

router = Router("secrets")

Name = Annotated[
    str, Path(pattern=f"^{SECRET.pattern}$", description="The name, as in `{{ secrets.NAME }}`.")
]
Whose = Annotated[Tenant, Query(description="The tenant of the secret.")]


@router.get("/secrets", dependencies=[READ])
async def list_secrets(session: Db, tenants: Tenants) -> list[store.SecretSummary]:
    """List the names of secrets. Their values cannot be read."""
    return await store.listed(session, tenants)


@router.put("/secrets/{name}", dependencies=[DEFINE])
async def set_secret(name: Name, body: models.SetSecret, session: Db, caller: Asked) -> store.SecretSummary:
    """Set a secret, or replace its value. Running executions keep the value that they were given."""
    tenant, value = own(caller, body.tenant), body.value.get_secret_value()
    return await secrets.put(session, tenant, name, value, by=caller.name)


@router.delete("/secrets/{name}", dependencies=[DEFINE])
async def delete_secret(
    name: Name, session: Db, caller: Asked, tenant: Whose = "public"
) -> models.DeletedSecret:
    """Delete a secret. Executions that need it fail from now on, with an explanation. The answer names definitions that
    still use it."""
    notice = await secrets.delete(session, own(caller, tenant), name)
    return models.DeletedSecret(name=name, tenant=tenant, notice=notice)
