"""People: their names, their roles for each tenant, and their sign-ins."""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from penstock.errors import (
    Conflict,
    InvalidInput,
    NotAllowed,
    NotAuthenticated,
    NotFound,
    TooManyAttempts,
)
from penstock.language.terms.ids import new_id
from penstock.language.terms.options import did_you_mean
from penstock.language.terms.outside_names import check_tenant
from penstock.operate import passwords
from penstock.operate.access import ROLES, Caller, Grant
from penstock.operate.sign_in_queue import LogInLine
from penstock.run.cut_texts import cut_end
from penstock.store.access import people, saved_views
from penstock.store.access.people import OpenSession, Person
from penstock.store.session import audited_change
from penstock.store.session.database import Session, Transaction

SESSION, IDLE = 7 * 86400.0, 12 * 3600.0
"""Seconds until a session ends, and seconds without a request after which it ends."""
FOR_CODE = 300.0
"""Seconds for which a sign-in waits for the code of a second factor."""
WINDOW = 900.0
"""Seconds for which a failed sign-in counts."""
MOST_OF_BOTH, MOST_OF_NAME, MOST_OF_ADDRESS = 10, 100, 500
"""Failures after which sign-ins are rejected: of a name from an address, of a name, and from an address (perhaps that
of a proxy)."""

LONGEST_BROWSER = 300
"""The maximum number of characters that are stored of a User-Agent header."""
NO_PASSWORD = ""
"""The hash of a person that an identity provider has named. No password matches it."""

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,99}")


@dataclass(frozen=True, slots=True)
class Begun:
    """A new session: the secret for its cookie, and when it ends."""

    secret: str
    name: str
    expires_at: datetime
    needs_code: bool = False
    """True if it grants no access until the code of the second factor is given."""


async def _stays() -> bool:
    return False


@dataclass(frozen=True, slots=True)
class LogInCaller:
    """The client that signs in: its address, the secret of the session that it came with, and whether it has left
    meanwhile. Also used for a person that proves its password again within a session."""

    address: str
    session_before: str | None = None
    has_left: Callable[[], Awaitable[bool]] = _stays
    browser: str = ""
    """The User-Agent header, by which a person recognizes a session."""


async def create(
    session: Session, name: str, password: str, roles: Sequence[str], tenants: Sequence[str] = (), *, by: str
) -> Person:
    """Create a person with these roles for these tenants (none: all). Raises InvalidInput if the name, the password, a
    role or a tenant is not valid, and Conflict if the name is taken."""
    if not NAME.fullmatch(name):
        raise InvalidInput(
            f"{name!r} is not a valid name of a user", hint="Use letters, digits, . _ @ + and -."
        )
    pairs = _pairs(roles, tenants)
    hashed = await passwords.hash_of(passwords.checked(password))
    async with session.transaction() as tx:
        if not await people.create(tx, new_id(), name, hashed, by):
            raise Conflict(
                f"there already is a user {name!r}",
                hint="To change the roles of this user, run `penstock users roles`.",
            )
        await people.set_roles(tx, name, *pairs)
        person = await people.named(tx, name)
        tx.tell(after=_roles_of(person))
    assert person is not None
    return person


async def set_roles(
    session: Session, name: str, roles: Sequence[str], tenants: Sequence[str] = ()
) -> tuple[Person, list[str]]:
    """Replace the roles of a person for these tenants (none: all). Roles for other tenants stay. Return the person, and
    its roles before as texts. Raises InvalidInput if a role or a tenant is not valid, and NotFound if there is no such
    person."""
    old_roles: list[str] = []
    new_roles, new_tenants = _pairs(roles, tenants)
    async with session.transaction() as tx:
        person = await people.named(tx, name)
        if person is not None:
            kept_roles = [
                (r, t) for r, t in zip(person.roles, person.tenants, strict=True) if t not in set(new_tenants)
            ]
            await people.set_roles(
                tx,
                name,
                [*(r for r, _ in kept_roles), *new_roles],
                [*(t for _, t in kept_roles), *new_tenants],
            )
            old_roles = _roles_of(person)
            person = await people.named(tx, name)
            tx.tell(before=old_roles, after=_roles_of(person))
    if person is None:
        raise await _nobody(session, name)
    return person, old_roles


async def set_password(session: Session, name: str, password: str) -> None:
    """Set a person's password, and end all its sessions. Raises InvalidInput if the password is too short, too long or
    cannot be typed, and NotFound if there is no such person."""
    hashed = await passwords.hash_of(passwords.checked(password))
    async with session.transaction() as tx:
        exists = await people.set_password(tx, name, hashed)
    if not exists:
        raise await _nobody(session, name)


async def delete(session: Session, name: str) -> None:
    """Delete a person with its private views, and end all its sessions. Its shared views stay. Raises NotFound if there
    is no such person."""
    async with session.transaction() as tx:
        person = await people.named(tx, name)
        await people.delete(tx, name)
        await saved_views.forget_owner(tx, f"user:{name}")
        if person is not None:
            tx.tell(before=_roles_of(person), sessions=person.sessions)
    if person is None:
        raise await _nobody(session, name)


async def end_sessions(session: Session, name: str) -> int:
    """End all sessions of a person, and return their number. Raises NotFound if there is no such person."""
    async with session.transaction() as tx:
        person, count = await people.named(tx, name), await people.end_sessions(tx, name)
        if person is not None:
            tx.tell(ended=count)
    if person is None:
        raise await _nobody(session, name)
    return count


async def log_in(
    session: Session, name: str, password: str, *, line: LogInLine, caller: LogInCaller
) -> Begun:
    """Begin a session, and end the session that the caller came with. If the person has a second factor, the session
    `needs_code`. Raises NotAuthenticated if no person has this name and this password, and TooManyAttempts after too
    many failures, or if the client has disconnected."""
    name, password = name[: passwords.LONGEST].replace("\0", ""), password[: passwords.LONGEST + 1]
    async with line.turn(name, caller.address):
        hashed = await _verified(session, name, password, caller)
        if hashed is None:
            raise NotAuthenticated(
                "no user has this name and this password",
                hint="`penstock users password NAME` sets another one.",
            )
        improved = (
            await passwords.hash_of(password) if passwords.hasher().check_needs_rehash(hashed) else None
        )
        async with session.transaction() as tx:
            new_session = await begin_session(
                tx, name, caller=caller, seconds=SESSION, verified=hashed, seconds_for_code=FOR_CODE
            )
            if improved is not None:
                await people.improve_password(tx, name, improved)
            if not new_session.needs_code:
                await people.remember_address(tx, name, caller.address)
            return new_session


async def _verified(session: Session, name: str, password: str, caller: LogInCaller) -> str | None:
    """Return the stored hash if the password matches it, or None.

    The sign-in is counted as failed first, and the count is removed if the password matches. Call it only inside a turn
    of the sign-in queue, which bounds how many passwords are hashed at once. Raises TooManyAttempts after too many
    failures, or if the client has disconnected.
    """
    if await caller.has_left():
        raise TooManyAttempts("the caller closed the connection before its sign-in was checked")
    attempt = new_id()
    await count_as_failed(session, attempt, name, caller.address)
    hashed = await people.password_of(session, name)
    # Verify a password even for an unknown name, so that the duration does not reveal which names exist.
    if not await passwords.matches(hashed, password) or hashed is None:
        return None
    await forget_failure(session, attempt)
    return hashed


async def prove_password(
    session: Session, name: str, password: str, *, line: LogInLine, caller: LogInCaller
) -> str:
    """Return the stored hash of a person that is signed in, if the password matches it. Wrong passwords are counted as
    at a sign-in. Raises NotAllowed if the password is wrong, and Conflict if an identity provider keeps it. Raises
    TooManyAttempts after too many failures, or if the client has disconnected."""
    if await people.password_of(session, name) == NO_PASSWORD:
        raise Conflict(
            "your password is managed by your identity provider",
            hint="Change your password and your second factor at the identity provider.",
        )
    async with line.turn(name, caller.address):
        hashed = await _verified(session, name, password[: passwords.LONGEST + 1], caller)
        if hashed is None:
            raise NotAllowed(
                "this is not your password",
                hint="An administrator can set another one: penstock users password NAME",
            )
        return hashed


async def change_own_password(
    session: Session, name: str, current: str, new: str, *, line: LogInLine, caller: LogInCaller
) -> int:
    """Change the password of a person that proves the current one. End its other sessions, and return their number.
    Raises InvalidInput if the new password is not valid. Raises Conflict if the password was changed meanwhile.
    Otherwise raises what `prove_password` raises."""
    passwords.checked(new)
    verified = await prove_password(session, name, current, line=line, caller=caller)
    hashed = await passwords.hash_of(new)
    async with session.transaction() as tx:
        if not await people.change_password(tx, name, hashed, verified):
            raise Conflict("your password was changed a moment ago", hint="Sign in with the new one.")
        count = await people.end_other_sessions(tx, name, digest_of(caller.session_before))
        tx.tell(ended=count)
    return count


async def end_own_session(session: Session, name: str, id: UUID) -> None:
    """End one session of a person. Raises NotFound if the person has no such session."""
    async with session.transaction() as tx:
        if not await people.end_session_of(tx, name, id):
            raise NotFound(
                f"you have no session {id}", hint="The session may have ended. Load the list again."
            )


async def end_other_sessions(session: Session, name: str, secret: str | None) -> int:
    """End all sessions of a person except the one with this secret, and return their number."""
    async with session.transaction() as tx:
        count = await people.end_other_sessions(tx, name, digest_of(secret))
        if count:
            tx.tell(ended=count)
    return count


async def open_sessions(session: Session, name: str) -> list[OpenSession]:
    """Return the open sessions of a person, newest first."""
    return await people.sessions_of(session, name, IDLE)


async def begin_session(
    tx: Transaction,
    name: str,
    *,
    caller: LogInCaller,
    seconds: float,
    verified: str | None = None,
    seconds_for_code: float | None = None,
) -> Begun:
    """Begin a session of an authenticated person, and end the session that the caller came with. `verified` is the
    hash that the password matched. `seconds_for_code`: seconds for which the session waits for the code of a second
    factor (None: no code is required). Raises NotAuthenticated if the person has another hash now."""
    secret = secrets.token_urlsafe(32)
    browser = cut_end(audited_change.stored_text(caller.browser), LONGEST_BROWSER)
    new_session = await people.begin_session(
        tx, name, digest_of(secret), seconds, IDLE, verified, caller.address, browser, seconds_for_code
    )
    if new_session is None:
        raise NotAuthenticated(
            "this user was deleted, or got another password, a moment ago", hint="Sign in again."
        )
    # The person's row is locked first, because a change of the password locks the person and then the sessions.
    if caller.session_before is not None:
        await people.end_session(tx, digest_of(caller.session_before))
    audited_change.made_by(f"user:{name}")
    if new_session.needs_code:
        tx.tell(needs_code=True)
    return Begun(secret, name, new_session.expires_at, new_session.needs_code)


async def count_as_failed(session: Session, attempt: UUID, name: str, address: str) -> None:
    """Count a sign-in as failed, until it is verified. Raises TooManyAttempts after too many failures.

    Failures of a name at other addresses do not count at an address from which the person has signed in before.
    """
    with audited_change.apart():
        failed = await people.note_failure(session, attempt, name, address, WINDOW)
        is_locked = failed.name > MOST_OF_NAME and not failed.is_known_address
        if failed.both > MOST_OF_BOTH or is_locked or failed.address > MOST_OF_ADDRESS:
            await people.forget_failure(session, attempt)
            raise TooManyAttempts(
                "too many sign-ins have failed recently",
                hint=f"Try again in {WINDOW / 60:.0f} minutes.",
                seconds=WINDOW,
            )


async def forget_failure(session: Session, attempt: UUID) -> None:
    """Forget the failure of a sign-in that was verified."""
    with audited_change.apart():
        await people.forget_failure(session, attempt)


async def log_out(session: Session, secret: str, operation: str, address: str) -> None:
    """End the session of this secret, if there is one, and note that in the audit as `operation` from this address."""
    async with session.transaction() as tx:
        name = await people.end_session(tx, digest_of(secret))
        if name is not None:
            change = audited_change.Change(
                f"user:{name}", operation, f"user:{name}", details={"address": address}
            )
            await audited_change.note(tx, change, audited_change.DONE)


async def find_session_caller(session: Session, secret: str) -> Caller | None:
    """Return the caller of a session; None if the session is unknown or over."""
    owner = await people.session_owner(session, digest_of(secret), IDLE)
    if owner is None:
        return None
    grants = tuple(
        Grant(frozenset(ROLES[role]), frozenset((tenant,)) if tenant else None)
        for role, tenant in zip(owner.roles, owner.tenants, strict=True)
        if role in ROLES
    )
    return Caller.of(f"user:{owner.name}", grants)


def _roles_of(person: Person | None) -> list[str]:
    """Return the roles of a person as texts, such as `operator of shop`."""
    if person is None:
        return []
    pairs = zip(person.roles, person.tenants, strict=True)
    return [f"{role} of {tenant}" if tenant else role for role, tenant in pairs]


def _pairs(roles: Sequence[str], tenants: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return each role combined with each tenant, as two lists of equal length."""
    if not roles:
        raise InvalidInput("a user needs a role", hint=f"Available: {', '.join(ROLES)}.")
    for role in roles:
        if role not in ROLES:
            raise InvalidInput(f"there is no role {role!r}", hint=did_you_mean(role, ROLES))
    for tenant in tenants:
        check_tenant(tenant)
    pairs = sorted({(role, tenant) for role in roles for tenant in tenants or ("",)})
    return [role for role, _ in pairs], [tenant for _, tenant in pairs]


def digest_of(secret: str | None) -> bytes:
    """Return the plain SHA-256 of a secret, which has 256 random bits. No session has the digest of None."""
    return hashlib.sha256((secret or "").encode("utf-8", "replace")).digest()


async def _nobody(session: Session, name: str) -> NotFound:
    names = [person.name for person in await people.listed(session)]
    return NotFound(f"no user {name!r}", hint=did_you_mean(name, names))
