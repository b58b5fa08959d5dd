"""The people that may log in, and their roles."""

from __future__ import annotations

from penstock.operate import people
from penstock.store import people as store
from penstock_api.access import ADMIN_ALL, READ, Asked
from penstock_api.backend import Db, Here
from penstock_api.models import users as models
from penstock_api.routes.router import Router

router = Router("users")


@router.get("/session", dependencies=[READ])
async def who(caller: Asked) -> models.Who:
    """Return the caller: the name of the token or user, and its rights."""
    tenants = None if caller.tenants is None else sorted(caller.tenants)
    return models.Who(name=caller.name, scopes=sorted(caller.scopes), tenants=tenants)


@router.get("/users", dependencies=[ADMIN_ALL])
async def list_users(session: Db) -> list[models.User]:
    """All of them."""
    return [models.User.model_validate(row) for row in await store.listed(session)]


@router.post("/users", status_code=201, dependencies=[ADMIN_ALL])
async def create(given: models.NewUser, session: Db, caller: Asked) -> models.User:
    """Create a user that may log in with this password."""
    made = await people.create(
        session, given.name, given.password.get_secret_value(), given.roles, given.tenants, by=caller.name
    )
    return models.User.model_validate(made)


@router.put("/users/{name}/roles", dependencies=[ADMIN_ALL])
async def set_roles(name: str, given: models.Roles, session: Db, here: Here) -> models.User:
    """Give a user these roles for these tenants, instead of those that the user has for these."""
    made = await people.set_roles(session, name, given.roles, given.tenants)
    here.forget_callers()
    return models.User.model_validate(made)


@router.put("/users/{name}/password", status_code=204, dependencies=[ADMIN_ALL])
async def set_password(name: str, given: models.Password, session: Db, here: Here) -> None:
    """Another password. All sessions of theirs end."""
    await people.set_password(session, name, given.password.get_secret_value())
    here.forget_callers()


@router.delete("/users/{name}/sessions", status_code=204, dependencies=[ADMIN_ALL])
async def end_sessions(name: str, session: Db, here: Here) -> None:
    """Log a user out everywhere: from this replica at once, from other replicas within seconds."""
    await people.end_sessions(session, name)
    here.forget_callers()


@router.delete("/users/{name}", status_code=204, dependencies=[ADMIN_ALL])
async def delete(name: str, session: Db, here: Here) -> None:
    """Delete the user of that name, so that a log-in under this name fails."""
    await people.delete(session, name)
    here.forget_callers()
