"""The rights over HTTP: scopes, roles, and tokens that carry them for some tenants or all."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from penstock.errors import Conflict, InvalidInput, NotFound
from penstock.language.ids import new_id
from penstock.language.options import did_you_mean
from penstock.language.outside_names import check_name, check_tenant
from penstock.store import tokens
from penstock.store.database import Session
from penstock.store.tokens import Token

READ, OPERATE, DEFINE, ADMIN = SCOPES = ("read", "operate", "define", "admin")
"""read: look at anything; operate: publish, start, and tell what runs; define: change what is defined, limits, schedules,
webhooks; admin: give others access."""
ROLES = {
    "viewer": (READ,),
    "operator": (READ, OPERATE),
    "developer": (READ, OPERATE, DEFINE),
    "administrator": SCOPES,
}
PREFIX = "pst_"
"""Of every secret, so that scanners of source code can tell what they found."""


@dataclass(frozen=True, slots=True)
class Grant:
    """Scopes for some tenants; None: for all."""

    scopes: frozenset[str]
    tenants: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class Caller:
    """The caller of a request. `tenants` is None for all tenants. `grants` are the scopes by tenant, where these
    differ."""

    name: str
    scopes: frozenset[str]
    tenants: frozenset[str] | None = None
    grants: tuple[Grant, ...] = ()

    @classmethod
    def of(cls, name: str, grants: tuple[Grant, ...]) -> Caller:
        scopes = frozenset(scope for grant in grants for scope in grant.scopes)
        return cls(name, scopes, _tenants(grants), grants)

    def within(self, scope: str) -> Caller:
        """Return the caller with its tenants narrowed to those for which it has this scope."""
        if not self.grants:
            return self
        return replace(self, tenants=_tenants([grant for grant in self.grants if scope in grant.scopes]))

    def sees(self, tenant: str) -> bool:
        return self.tenants is None or tenant in self.tenants


def _tenants(grants: Collection[Grant]) -> frozenset[str] | None:
    if any(grant.tenants is None for grant in grants):
        return None
    return frozenset(tenant for grant in grants for tenant in grant.tenants or ())


ANYBODY = Caller("anybody on this machine", frozenset(SCOPES))
"""The caller where access is open."""


async def create_token(
    session: Session,
    name: str,
    scopes: Sequence[str],
    *,
    tenants: Sequence[str] = (),
    seconds: float | None = None,
    by: str,
) -> tuple[Token, str]:
    """Create a token, and return it with its secret, which is stored nowhere. `scopes`: or names of roles; no `tenants`:
    all. It expires after `seconds`. Raises Conflict, InvalidInput."""
    check_name(name, "the name of the token")
    for tenant in tenants:
        check_tenant(tenant)
    secret = PREFIX + secrets.token_urlsafe(32)
    chosen, owners = _scopes(scopes), sorted(set(tenants))
    async with session.transaction() as tx:
        made = await tokens.create(tx, new_id(), name, _digest(secret), chosen, owners, by, seconds)
        tx.tell(scopes=chosen, tenants=owners)
    if made is None:
        raise Conflict(f"there is a token {name!r}", hint="Choose another name, or revoke that one first.")
    return made, secret


async def revoke_token(session: Session, name: str) -> None:
    """Take it back; it is refused within seconds. Raises NotFound."""
    async with session.transaction() as tx:
        gone = await tokens.delete(tx, name)
        if gone is not None:
            tx.tell(scopes=gone.scopes, tenants=gone.tenants, created_by=gone.created_by)
    if gone is None:
        known = [token.name for token in await tokens.listed(session)]
        raise NotFound(f"no token {name!r}", hint=did_you_mean(name, known))


async def find_caller(session: Session, secret: str) -> Caller | None:
    """Return the owner of this secret; None if it has no owner or has expired."""
    found = await tokens.find(session, _digest(secret))
    if found is None:
        return None
    return Caller(f"token:{found.name}", frozenset(found.scopes), frozenset(found.tenants) or None)


def _digest(secret: str) -> bytes:
    """Return the plain SHA-256 of a secret. The secret has 256 random bits, so it cannot be guessed, however quick a guess
    is."""
    return hashlib.sha256(secret.encode("utf-8", "replace")).digest()


def _scopes(given: Collection[str]) -> list[str]:
    if not given:
        raise InvalidInput("a token needs scopes", hint=f"There are: {', '.join((*SCOPES, *ROLES))}.")
    chosen: set[str] = set()
    for word in given:
        if word not in SCOPES and word not in ROLES:
            raise InvalidInput(
                f"there is no scope or role {word!r}", hint=did_you_mean(word, (*SCOPES, *ROLES))
            )
        chosen.update(ROLES.get(word, (word,)))
    return [scope for scope in SCOPES if scope in chosen]
