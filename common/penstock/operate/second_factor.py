"""The second factor of people: time-based codes of six digits (TOTP, RFC 6238), and recovery codes for a lost device.

Its secret is sealed like all secrets, under a name of no tenant, so that no action can use it.
"""

from __future__ import annotations

import base64
import hashlib
import os
from dataclasses import dataclass, replace
from typing import Annotated

from cryptography.hazmat.primitives.hashes import SHA1
from cryptography.hazmat.primitives.twofactor import InvalidToken
from cryptography.hazmat.primitives.twofactor.totp import TOTP
from pydantic import Field

from penstock.errors import Conflict, NotAllowed, NotAuthenticated, NotFound
from penstock.language.terms.ids import new_id
from penstock.operate import people, secrets
from penstock.operate.people import Begun, LogInCaller
from penstock.operate.sign_in_queue import LogInLine
from penstock.operate.signing_secrets import NO_TENANT
from penstock.store.access import people as people_store
from penstock.store.access import second_factors as store
from penstock.store.access import secrets as secrets_store
from penstock.store.access.second_factors import SecondFactor
from penstock.store.access.secrets import Sealed
from penstock.store.session import clock
from penstock.store.session.database import Session, Transaction

STEP = 30
"""Seconds for which a code is shown."""
DIGITS = 6
SECRET_BYTES = 20
"""The length of the hash, which RFC 4226 recommends for secrets."""
STEPS = (0, -1, 1)
"""The steps around the present one with valid codes: the clock of a phone differs a little."""
RECOVERY_CODES, RECOVERY_BYTES = 10, 10
"""The number of recovery codes, and the random bytes of each: too many to be guessed from their SHA-256."""
ISSUER = "Penstock"


@dataclass(frozen=True, slots=True)
class NewFactor:
    """A new second factor that is not confirmed yet by its first code."""

    secret: Annotated[str, Field(description="The secret in base32, to type into an authenticator.")]
    uri: Annotated[str, Field(description="The secret as an `otpauth:` address, for a QR code.")]


async def state(session: Session, name: str) -> SecondFactor:
    """Return the second factor of a person. Raises NotFound if there is no such person."""
    factor = await store.state(session, name)
    if factor is None:
        raise _unknown(name)
    return factor


async def begin(
    session: Session, name: str, password: str, *, line: LogInLine, caller: LogInCaller
) -> NewFactor:
    """Make a secret for a person that proves its password. The secret counts once a code has confirmed it. Raises
    Conflict if a second factor is on already, and ConfigurationError without a master key. Otherwise raises what
    `prove_password` raises."""
    await people.prove_password(session, name, password, line=line, caller=caller)
    secret = base64.b32encode(os.urandom(SECRET_BYTES)).decode()
    sealed = await secrets.sealed(session.settings, NO_TENANT, _secret_name(name), secret)
    async with session.transaction() as tx:
        if not await store.hold_without(tx, name):
            raise Conflict(
                "your second factor is already on", hint="Turn it off first, then set up another one."
            )
        await secrets_store.put(tx, sealed, f"user:{name}")
    return _new_factor(name, secret)


async def pending(session: Session, name: str) -> NewFactor:
    """Return the second factor that waits for its first code. Raises Conflict if none waits for its first code, and
    ConfigurationError if this process cannot decrypt it."""
    sealed = await _sealed(session, name)
    if sealed is None or (await state(session, name)).since is not None:
        raise _nothing_pending()
    return _new_factor(name, await secrets.opened(session.settings, sealed))


async def confirm(session: Session, name: str, code: str, *, caller: LogInCaller) -> list[str]:
    """Require the second factor from now on. End the other sessions, which began without it. Return the recovery codes,
    which are stored nowhere. Raises NotAllowed if the code is wrong or has expired, and Conflict if no second factor
    waits for its first code. Raises TooManyAttempts after too many failures, and ConfigurationError if this process
    cannot decrypt the secret."""
    attempt = new_id()
    await people.count_as_failed(session, attempt, name, caller.address)
    sealed = await _sealed(session, name)
    if sealed is None:
        raise _nothing_pending()
    step = step_of(
        await secrets.opened(session.settings, sealed), _plain(code), (await clock.now(session)).timestamp()
    )
    if step is None:
        raise NotAllowed(
            "this code is wrong, or has expired",
            hint="Enter the code that the authenticator shows now. If a new code is refused, too, check the clock of the device.",
        )
    await people.forget_failure(session, attempt)
    codes = [_recovery_code() for _ in range(RECOVERY_CODES)]
    async with session.transaction() as tx:
        # Another browser of the person may have made another secret, or confirmed this one, since it was read.
        if not await store.hold_without(tx, name) or await _sealed(tx, name) != sealed:
            raise _nothing_pending()
        await store.confirm(tx, name, step, [_digest(_plain(text)) for text in codes])
        ended_sessions = await people_store.end_other_sessions(
            tx, name, people.digest_of(caller.session_before)
        )
        tx.tell(ended=ended_sessions)
    return codes


async def log_in_with_code(session: Session, code: str, *, caller: LogInCaller) -> Begun:
    """Begin a session in place of the one that `needs_code`. A code can be used once. Raises NotAuthenticated if the
    code is not valid, or no sign-in of this browser waits for one. Raises TooManyAttempts after too many failures, and
    ConfigurationError if this process cannot decrypt the secret."""
    digest = people.digest_of(caller.session_before)
    name = await people_store.name_that_needs_code(session, digest)
    if name is None:
        raise _password_first()
    attempt = new_id()
    await people.count_as_failed(session, attempt, name, caller.address)
    step = await _step_of_code(session, name, code)
    async with session.transaction() as tx:
        if not await _use_code(tx, name, code, step):
            raise NotAuthenticated(
                "this code is wrong, was used, or has expired",
                hint="Enter the code that the authenticator shows now, or a recovery code. An administrator "
                "can turn off the second factor: penstock users totp-off NAME",
            )
        new_session = await people.begin_session(
            tx, name, caller=replace(caller, session_before=None), seconds=people.SESSION
        )
        # A new password may have ended the waiting session since its name was read.
        if not await people_store.end_session_that_needs_code(tx, digest):
            raise _password_first()
        await people_store.remember_address(tx, name, caller.address)
    await people.forget_failure(session, attempt)
    return new_session


async def _step_of_code(session: Session, name: str, code: str) -> int | None:
    """Return the time step of a person's code; None if it is none of the presently valid codes."""
    sealed = await _sealed(session, name) if _plain(code).isdecimal() else None
    if sealed is None:
        return None
    return step_of(
        await secrets.opened(session.settings, sealed), _plain(code), (await clock.now(session)).timestamp()
    )


async def _use_code(tx: Transaction, name: str, code: str, step: int | None) -> bool:
    """Use up a code, which is that of `step` or a recovery code. Return False if it is neither, or was used before."""
    if step is not None:
        return await store.use_step(tx, name, step)
    return await store.use_recovery_code(tx, name, _digest(_plain(code)))


async def turn_off_own(
    session: Session, name: str, password: str, *, line: LogInLine, caller: LogInCaller
) -> None:
    """Turn off the second factor of a person that proves its password. Raises what `prove_password` raises."""
    await people.prove_password(session, name, password, line=line, caller=caller)
    await turn_off(session, name)


async def turn_off(session: Session, name: str) -> bool:
    """Turn off the second factor of a person, as an administrator. Return whether it was on. Raises NotFound if there
    is no such person."""
    async with session.transaction() as tx:
        was_on = await store.turn_off(tx, name)
        if was_on is not None:
            tx.tell(was_on=was_on)
    if was_on is None:
        raise _unknown(name)
    return was_on


def step_of(secret: str, code: str, now: float) -> int | None:
    """Return the time step with this code, among those around an instant; None for none."""
    totp = _totp(secret)
    present = int(now) // STEP
    for step in (present + offset for offset in STEPS):
        try:
            totp.verify(code.encode("utf-8", "replace"), step * STEP)
        except InvalidToken:
            continue
        return step
    return None


def _totp(secret: str) -> TOTP:
    # SHA-1, since many authenticator apps support no other hash.
    return TOTP(base64.b32decode(secret), DIGITS, SHA1(), STEP)


def _new_factor(name: str, secret: str) -> NewFactor:
    return NewFactor(secret, _totp(secret).get_provisioning_uri(name, ISSUER))


def _recovery_code() -> str:
    text = base64.b32encode(os.urandom(RECOVERY_BYTES)).decode().lower()
    return "-".join(text[at : at + 4] for at in range(0, len(text), 4))


def _plain(code: str) -> str:
    """Return a code without the blanks and hyphens that people type."""
    return code.replace(" ", "").replace("-", "").lower()


def _digest(plain_code: str) -> bytes:
    return hashlib.sha256(plain_code.encode("utf-8", "replace")).digest()


def _secret_name(name: str) -> str:
    return f"totp:{name}"


async def _sealed(session: Session | Transaction, name: str) -> Sealed | None:
    return next(iter(await secrets_store.find(session, NO_TENANT, [_secret_name(name)])), None)


def _password_first() -> NotAuthenticated:
    return NotAuthenticated(
        "this browser has no sign-in that waits for a code", hint="Sign in with name and password first."
    )


def _nothing_pending() -> Conflict:
    return Conflict(
        "no second factor waits for its first code", hint="Set up a second factor on the page /account."
    )


def _unknown(name: str) -> NotFound:
    return NotFound(f"no user {name!r}", hint="`penstock users list` shows them.")
