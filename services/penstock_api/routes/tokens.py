"""The routes of tokens, with which programs call this API."""

from __future__ import annotations

from penstock.operate import access
from penstock.store.access import tokens
from penstock.store.access.tokens import Token
from penstock_api.auth.access import ADMIN_ALL, Asked
from penstock_api.backend import Db, Here
from penstock_api.models import operations as models
from penstock_api.routes.router import Router

router = Router("tokens")


@router.get("/tokens", dependencies=[ADMIN_ALL])
async def list_tokens(session: Db) -> list[Token]:
    """List tokens, without their secrets."""
    return await tokens.listed(session)


@router.post("/tokens", status_code=201, dependencies=[ADMIN_ALL])
async def create(body: models.NewToken, session: Db, caller: Asked) -> models.TokenWithSecret:
    """Create a token. Only this answer contains its secret."""
    token, secret = await access.create_token(
        session,
        body.name,
        body.scopes,
        tenants=body.tenants,
        routes=body.routes,
        packs=body.packs,
        seconds=body.seconds,
        by=caller.name,
    )
    warnings = await access.warnings_of(session, token.scopes)
    return models.TokenWithSecret(token=token, secret=secret, warnings=warnings)


@router.post("/tokens/{name}/rotate", dependencies=[ADMIN_ALL])
async def rotate(name: str, rotation: models.Rotation, session: Db, backend: Here) -> models.TokenWithSecret:
    """Replace the secret of a token. Only this answer contains the new one. The old secret stays valid for a while."""
    token, secret = await access.rotate_token(
        session, name, overlap=rotation.overlap, seconds=rotation.seconds
    )
    backend.forget_callers()
    return models.TokenWithSecret(token=token, secret=secret)


@router.delete("/tokens/{name}", status_code=204, dependencies=[ADMIN_ALL])
async def revoke(name: str, session: Db, backend: Here) -> None:
    """Revoke a token. This API replica rejects it at once, and the other replicas within seconds."""
    await access.revoke_token(session, name)
    backend.forget_callers()
