"""Rights over HTTP: scopes, roles, and tokens that carry them for some tenants or all."""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from penstock.errors import Conflict, InvalidInput, NotFound
from penstock.language.terms.ids import new_id
from penstock.language.terms.local_access import LOCAL_ACCESS
from penstock.language.terms.options import did_you_mean
from penstock.language.terms.outside_names import check_name, check_tenant
from penstock.store.access import saved_views, tokens
from penstock.store.access.tokens import Token, WorkToken
from penstock.store.definitions import catalog
from penstock.store.session.database import Session

READ, OPERATE, DEFINE, ADMIN = SCOPES = ("read", "operate", "define", "admin")
"""The broad scopes. read: look at everything but users, tokens and the audit log. operate: publish, start, and command
running executions. define: change definitions, limits, schedules, webhooks. admin: give access to others."""
START, PUBLISH, ANSWER = NARROW = ("start", "publish", "answer")
"""Parts of `operate` that a token can have alone. `start:REF` allows to start only actions that match the pattern:
`shop.charge`, `shop.*`."""
WORK = "work"
"""Take work as a worker that calls a gateway, with the parameters of its attempts and their secrets. No other scope has
it."""
IMPLIED_BY = {START: OPERATE, PUBLISH: OPERATE, ANSWER: OPERATE}
LIFETIME_S = 90 * 86400.0
"""Seconds after which a token expires, unless its creator chooses another lifetime, or none."""
OVERLAP_S = 86400.0
"""Seconds for which the former secret stays valid after a rotation."""
_START_REF = re.compile(r"start:[A-Za-z0-9_.*-]{1,300}")
ROLES = {
    "viewer": (READ,),
    "operator": (READ, OPERATE),
    "developer": (READ, OPERATE, DEFINE),
    "administrator": SCOPES,
}
PREFIX = "pst_"
"""The prefix of every secret of a token, by which scanners of source code recognize it."""


@dataclass(frozen=True, slots=True)
class Grant:
    """Scopes for some tenants; None means all."""

    scopes: frozenset[str]
    tenants: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class Caller:
    """The caller of a request. `tenants` is None for all tenants. `grants` are the scopes by tenant, if these differ. As a
    worker it may serve `routes` and actions of `packs`; None means all."""

    name: str
    scopes: frozenset[str]
    tenants: frozenset[str] | None = None
    grants: tuple[Grant, ...] = ()
    routes: frozenset[str] | None = None
    packs: frozenset[str] | None = None

    @classmethod
    def of(cls, name: str, grants: tuple[Grant, ...]) -> Caller:
        scopes = frozenset(scope for grant in grants for scope in grant.scopes)
        return cls(name, scopes, _tenants(grants), grants)

    def within(self, scope: str) -> Caller:
        """Return the caller with its tenants narrowed to those for which it has this scope."""
        if not self.grants:
            return self
        return replace(
            self, tenants=_tenants([grant for grant in self.grants if _holds(grant.scopes, scope)])
        )

    def has(self, scope: str) -> bool:
        """Return True if the caller has a scope, for at least one tenant. For `start`: for at least one action."""
        return _holds(self.scopes, scope)

    def may_start(self, action: str) -> bool:
        """Return True if the caller may start this action."""
        if not self.scopes.isdisjoint((START, OPERATE)):
            return True
        patterns = (scope.removeprefix(f"{START}:") for scope in self.scopes if scope.startswith(f"{START}:"))
        return any(fnmatchcase(action, pattern) for pattern in patterns)

    def sees(self, tenant: str) -> bool:
        return self.tenants is None or tenant in self.tenants


def _holds(scopes: Collection[str], scope: str) -> bool:
    if scope in scopes or IMPLIED_BY.get(scope) in scopes:
        return True
    return scope == START and any(word.startswith(f"{START}:") for word in scopes)


def _tenants(grants: Collection[Grant]) -> frozenset[str] | None:
    if any(grant.tenants is None for grant in grants):
        return None
    return frozenset(tenant for grant in grants for tenant in grant.tenants or ())


ANYBODY = Caller(LOCAL_ACCESS, frozenset((*SCOPES, WORK)))
"""The caller if access is open: any program on this machine."""


async def create_token(
    session: Session,
    name: str,
    scopes: Sequence[str],
    *,
    tenants: Sequence[str] = (),
    routes: Sequence[str] = (),
    packs: Sequence[str] = (),
    seconds: float | None = LIFETIME_S,
    by: str,
) -> tuple[Token, str]:
    """Create a token, and return it with its secret, which is stored nowhere. `scopes` may also be names of roles. No
    `tenants` means all. With the scope `work`, `routes` and `packs` limit what its workers serve; none means all. The
    token expires after `seconds` (None: never). Raises Conflict if another token has this name. Raises InvalidInput if
    a name or a scope is not valid, or `routes` or `packs` come without `work`."""
    check_name(name, "the name of the token")
    for tenant in tenants:
        check_tenant(tenant)
    secret = PREFIX + secrets.token_urlsafe(32)
    granted, owners = _scopes(scopes), sorted(set(tenants))
    if (routes or packs) and WORK not in granted:
        raise InvalidInput(
            "routes and packs limit the scope `work`, which this token lacks",
            hint="Add the scope `work`, or omit the routes and packs.",
        )
    async with session.transaction() as tx:
        token = await tokens.create(
            tx,
            new_id(),
            name,
            _digest(secret),
            granted,
            owners,
            by,
            seconds,
            routes=sorted(set(routes)),
            packs=sorted(set(packs)),
        )
        tx.tell(scopes=granted, tenants=owners)
    if token is None:
        raise Conflict(
            f"there already is a token {name!r}",
            hint="Choose another name, or revoke the existing token first.",
        )
    return token, secret


async def warnings_of(session: Session, scopes: Sequence[str]) -> list[str]:
    """Return a sentence for each scope `start:REF` that matches no applied action or workflow. Such a token is valid: the
    action may be applied later."""
    patterns = [scope.removeprefix(f"{START}:") for scope in scopes if scope.startswith(f"{START}:")]
    if not patterns:
        return []
    refs = [ref for named in (await catalog.names(session, ["action", "workflow"])).values() for ref in named]
    return [
        (
            f"{START}:{pattern} matches no applied action. The token is valid, but this scope allows no start "
            f"until a matching action is applied. {did_you_mean(pattern, refs)}"
        ).rstrip()
        for pattern in patterns
        if not any(fnmatchcase(ref, pattern) for ref in refs)
    ]


async def rotate_token(
    session: Session, name: str, *, overlap: float = OVERLAP_S, seconds: float | None = LIFETIME_S
) -> tuple[Token, str]:
    """Give a token another secret, and return both. The former secret stays valid for `overlap` seconds, so that its
    holder has time to change. The new one expires after `seconds` (None: never). Raises NotFound if the token does not
    exist."""
    secret = PREFIX + secrets.token_urlsafe(32)
    async with session.transaction() as tx:
        token = await tokens.rotate(tx, name, _digest(secret), overlap, seconds)
        if token is not None:
            tx.tell(overlap_s=overlap, expires_at=token.expires_at)
    if token is None:
        raise await _unknown(session, name)
    return token, secret


async def _unknown(session: Session, name: str) -> NotFound:
    return NotFound(
        f"no token {name!r}", hint=did_you_mean(name, [token.name for token in await tokens.listed(session)])
    )


async def revoke_token(session: Session, name: str) -> None:
    """Delete a token with its private views; it is rejected within seconds. Its shared views stay. Raises NotFound if the
    token does not exist."""
    async with session.transaction() as tx:
        gone = await tokens.delete(tx, name)
        await saved_views.forget_owner(tx, f"token:{name}")
        if gone is not None:
            tx.tell(scopes=gone.scopes, tenants=gone.tenants, created_by=gone.created_by)
    if gone is None:
        raise await _unknown(session, name)


async def find_caller(session: Session, secret: str) -> Caller | None:
    """Return the caller with this secret; None if it is unknown or has expired."""
    token = await tokens.find(session, _digest(secret))
    if token is None:
        return None
    return _caller(token)


async def find_work_caller(session: Session, secret: str) -> Caller | None:
    """Return the caller with this secret of a token with the scope `work`; None if it is unknown, has expired, or lacks
    the scope. A worker's role can call this."""
    token = await tokens.find_work(session, _digest(secret))
    return None if token is None else _caller(token)


def _caller(token: Token | WorkToken) -> Caller:
    return Caller(
        f"token:{token.name}",
        frozenset(token.scopes),
        frozenset(token.tenants) or None,
        routes=frozenset(token.routes) or None,
        packs=frozenset(token.packs) or None,
    )


def _digest(secret: str) -> bytes:
    """Return the plain SHA-256 of a secret. The secret has 256 random bits, so it cannot be guessed, however fast a
    guess is."""
    return hashlib.sha256(secret.encode("utf-8", "replace")).digest()


def _scopes(words: Collection[str]) -> list[str]:
    if not words:
        raise InvalidInput(
            "a token needs scopes", hint=f"Available: {', '.join((*SCOPES, *NARROW, WORK, *ROLES))}."
        )
    scopes: set[str] = set()
    for word in words:
        if word not in (*SCOPES, *NARROW, WORK, *ROLES) and not _START_REF.fullmatch(word):
            raise InvalidInput(
                f"there is no scope or role {word!r}",
                hint=did_you_mean(word, (*SCOPES, *NARROW, WORK, f"{START}:PACK.NAME", *ROLES)),
            )
        scopes.update(ROLES.get(word, (word,)))
    broad = [scope for scope in (*SCOPES, *NARROW, WORK) if scope in scopes]
    return broad + sorted(scopes.difference(broad))
