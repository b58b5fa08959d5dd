"""The routes of a person's own account: its password, its second factor, and its sessions."""

from __future__ import annotations

from uuid import UUID

from fastapi import Request

from penstock.operate import people, second_factor
from penstock.operate.access import Caller
from penstock.store.access.second_factors import SecondFactor
from penstock_api.auth import session_cookie
from penstock_api.auth.access import ACCOUNT, PERSON, Asked
from penstock_api.backend import Db, Here
from penstock_api.models import users as models
from penstock_api.requests.problems import TOO_MANY
from penstock_api.routes.log_in import log_in_caller
from penstock_api.routes.router import Router

router = Router("account")


def name_of(caller: Caller) -> str:
    """Return the name of the person that calls."""
    return caller.name.removeprefix(PERSON)


@router.put("/account/password", dependencies=[ACCOUNT], responses=TOO_MANY)
async def change_password(
    body: models.OwnPassword, request: Request, caller: Asked, backend: Here
) -> models.EndedSessions:
    """Change the password of the caller, and end its other sessions."""
    count = await people.change_own_password(
        backend.client.session,  # not a session of the pool, for the reason given in `log_in`
        name_of(caller),
        body.current_password.get_secret_value(),
        body.password.get_secret_value(),
        line=backend.log_ins,
        caller=log_in_caller(request),
    )
    backend.forget_callers()
    return models.EndedSessions(ended=count)


@router.get("/account/totp", dependencies=[ACCOUNT])
async def show_totp(session: Db, caller: Asked) -> SecondFactor:
    """Show whether the caller needs a second factor, and since when."""
    return await second_factor.state(session, name_of(caller))


@router.post("/account/totp", dependencies=[ACCOUNT], responses=TOO_MANY)
async def begin_totp(
    body: models.OldPassword, request: Request, caller: Asked, backend: Here
) -> second_factor.NewFactor:
    """Create a second factor for the caller. It is in force once one of its codes has confirmed it."""
    return await second_factor.begin(
        backend.client.session,
        name_of(caller),
        body.current_password.get_secret_value(),
        line=backend.log_ins,
        caller=log_in_caller(request),
    )


@router.post("/account/totp/confirm", dependencies=[ACCOUNT], responses=TOO_MANY)
async def confirm_totp(
    body: models.Code, request: Request, session: Db, caller: Asked, backend: Here
) -> models.RecoveryCodes:
    """Require the second factor from now on, and end the other sessions of the caller. Return the recovery codes,
    once."""
    codes = await second_factor.confirm(session, name_of(caller), body.code, caller=log_in_caller(request))
    backend.forget_callers()
    return models.RecoveryCodes(recovery_codes=codes)


@router.post("/account/totp/off", status_code=204, dependencies=[ACCOUNT], responses=TOO_MANY)
async def turn_off_totp(body: models.OldPassword, request: Request, caller: Asked, backend: Here) -> None:
    """Turn off the second factor of the caller."""
    await second_factor.turn_off_own(
        backend.client.session,
        name_of(caller),
        body.current_password.get_secret_value(),
        line=backend.log_ins,
        caller=log_in_caller(request),
    )


@router.get("/account/sessions", dependencies=[ACCOUNT])
async def list_sessions(request: Request, session: Db, caller: Asked) -> list[models.OwnSession]:
    """List the open sessions of the caller, newest first."""
    current = people.digest_of(session_cookie.secret_of(request))
    return [
        models.OwnSession(
            id=row.id,
            began_at=row.began_at,
            seen_at=row.seen_at,
            expires_at=row.expires_at,
            address=row.address,
            browser=row.browser,
            current=row.digest == current,
        )
        for row in await people.open_sessions(session, name_of(caller))
    ]


@router.delete("/account/sessions", dependencies=[ACCOUNT])
async def end_other_sessions(
    request: Request, session: Db, caller: Asked, backend: Here
) -> models.EndedSessions:
    """End all sessions of the caller except the current one: on this API replica at once, on the other replicas within
    seconds."""
    count = await people.end_other_sessions(session, name_of(caller), session_cookie.secret_of(request))
    backend.forget_callers()
    return models.EndedSessions(ended=count)


@router.delete("/account/sessions/{id}", status_code=204, dependencies=[ACCOUNT])
async def end_session(id: UUID, session: Db, caller: Asked, backend: Here) -> None:
    """End a session of the caller: on this API replica at once, on the other replicas within seconds."""
    await people.end_own_session(session, name_of(caller), id)
    backend.forget_callers()
