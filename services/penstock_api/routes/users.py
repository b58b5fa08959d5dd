"""The routes of users that may sign in, and their roles."""

from __future__ import annotations

from penstock.operate import people, second_factor
from penstock.store.access import people as store
from penstock_api.auth.access import ADMIN_ALL, READ, Asked
from penstock_api.backend import Db, Here
from penstock_api.models import users as models
from penstock_api.routes.router import Router

router = Router("users")


@router.get("/session", dependencies=[READ])
async def who(caller: Asked) -> models.Caller:
    """Return the caller: the name of the token or user, and its rights."""
    tenants = None if caller.tenants is None else sorted(caller.tenants)
    return models.Caller(name=caller.name, scopes=sorted(caller.scopes), tenants=tenants)


@router.get("/users", dependencies=[ADMIN_ALL])
async def list_users(session: Db) -> list[store.Person]:
    """List users."""
    return await store.listed(session)


@router.post("/users", status_code=201, dependencies=[ADMIN_ALL])
async def create(body: models.NewUser, session: Db, caller: Asked) -> store.Person:
    """Create a user that may sign in with this password."""
    return await people.create(
        session, body.name, body.password.get_secret_value(), body.roles, body.tenants, by=caller.name
    )


@router.put("/users/{name}/roles", dependencies=[ADMIN_ALL])
async def set_roles(name: str, body: models.UserRoles, session: Db, backend: Here) -> store.Person:
    """Replace the roles of a user in these tenants. Without a tenant: replace the roles that apply to all tenants. Roles in
    other tenants do not change."""
    user, _ = await people.set_roles(session, name, body.roles, body.tenants)
    backend.forget_callers()
    return user


@router.put("/users/{name}/password", status_code=204, dependencies=[ADMIN_ALL])
async def set_password(name: str, body: models.Password, session: Db, backend: Here) -> None:
    """Set the password of a user. All sessions of the user end."""
    await people.set_password(session, name, body.password.get_secret_value())
    backend.forget_callers()


@router.delete("/users/{name}/sessions", status_code=204, dependencies=[ADMIN_ALL])
async def end_sessions(name: str, session: Db, backend: Here) -> None:
    """Log a user out everywhere: on this API replica at once, on the other replicas within seconds."""
    await people.end_sessions(session, name)
    backend.forget_callers()


@router.delete("/users/{name}/totp", status_code=204, dependencies=[ADMIN_ALL])
async def turn_off_totp(name: str, session: Db) -> None:
    """Turn off the second factor of a user that lost it."""
    await second_factor.turn_off(session, name)


@router.delete("/users/{name}", status_code=204, dependencies=[ADMIN_ALL])
async def delete(name: str, session: Db, backend: Here) -> None:
    """Delete the user of this name, so that a sign-in under the name fails."""
    await people.delete(session, name)
    backend.forget_callers()
