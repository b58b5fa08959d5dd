"""People that an identity provider has named. At each sign-in their roles are computed again from the provider's
claims."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from penstock.errors import ConfigurationError, Conflict, InvalidInput, NotAllowed
from penstock.language.terms.ids import new_id
from penstock.language.terms.options import did_you_mean
from penstock.language.terms.outside_names import check_tenant
from penstock.operate.access import ROLES
from penstock.operate.people import NAME, NO_PASSWORD, Begun, LogInCaller, begin_session, digest_of
from penstock.run.cut_texts import cut_end
from penstock.store.access import people
from penstock.store.session.database import Session

Roles = tuple[tuple[str, str], ...]
"""Roles with their tenants; an empty tenant means all."""
SESSION = 12 * 3600.0
"""Seconds until a session ends: a role that was lost at the provider is lost here by then."""


@dataclass(frozen=True, slots=True)
class Identity:
    """The identity of a person: `subject` is the permanent name at the provider; `name` is for display. `id_token` is
    the provider's signed token, which the provider requires when the person signs out."""

    issuer: str
    subject: str
    name: str
    roles: Roles
    id_token: str


def roles_mapped(claims: Mapping[str, str]) -> dict[str, Roles]:
    """Return the roles for each value of a claim, from texts such as `viewer, operator:acme`. Raises ConfigurationError
    for an unknown role, or a tenant that is not a valid name."""
    return {value: tuple(_pair(role.strip()) for role in says.split(",")) for value, says in claims.items()}


def _pair(text: str) -> tuple[str, str]:
    role, _, tenant = text.partition(":")
    if role not in ROLES:
        raise ConfigurationError(
            f"PENSTOCK_OIDC_ROLES: there is no role {role!r}", hint=did_you_mean(role, ROLES)
        )
    if ":" in text:
        try:
            check_tenant(tenant)
        except InvalidInput as error:
            raise ConfigurationError(f"PENSTOCK_OIDC_ROLES: {error.message}", hint=error.hint) from error
    return role, tenant


async def enter(session: Session, identity: Identity, *, caller: LogInCaller) -> Begun:
    """Begin a session of the person, and end the session that the caller came with. At the first sign-in the person is
    created. A person without any role is rejected, and its sessions end. Raises NotAllowed if the name is not valid, or
    nothing about the person is mapped to a role. Raises Conflict if the name belongs to another user."""
    made_by = f"{identity.issuer} {identity.subject}"
    if not NAME.fullmatch(identity.name):
        raise NotAllowed(
            f"{cut_end(identity.name, 100)!r} is not a valid user name in Penstock",
            hint="An administrator can name another claim: PENSTOCK_OIDC_NAME_CLAIM.",
        )
    async with session.transaction() as tx:
        person = await people.named(tx, identity.name)
        if person is None and identity.roles:
            await people.create(tx, new_id(), identity.name, NO_PASSWORD, made_by)
            person = await people.named(tx, identity.name)
        if person is not None and person.created_by != made_by:
            raise Conflict(
                f"the user {identity.name!r} exists already, and was not created by a sign-in with this identity",
                hint=f"An administrator can delete that user: penstock users delete {identity.name}",
            )
        if identity.roles:
            await people.set_roles(tx, identity.name, *zip(*identity.roles, strict=True))
            new_session = await begin_session(tx, identity.name, caller=caller, seconds=SESSION)
            await people.keep_id_token(tx, digest_of(new_session.secret), identity.id_token)
            return new_session
        if person is not None:
            await people.set_roles(tx, identity.name, [], [])
            await people.end_sessions(tx, identity.name)
    raise NotAllowed(
        f"the identity provider knows {identity.name}, but no claim of this user is mapped to a role",
        hint="An administrator can map one of your groups to a role: PENSTOCK_OIDC_ROLES.",
    )
