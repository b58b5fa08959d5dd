"""Tokens of executions: an action's program calls the API with one, while its attempt runs.

A token names an execution and an attempt, and is signed. So none is stored: the API checks the signature, and that the
execution runs this attempt. The token ends with the attempt.
"""

from __future__ import annotations

import base64
import binascii
import hmac
from uuid import UUID

from penstock.language.terms.ids import EXECUTION_CALLER
from penstock.operate.access import PREFIX, PUBLISH, READ, START, Caller
from penstock.store.access import signing_key
from penstock.store.session.database import Session

EXECUTION_PREFIX = f"{PREFIX}run."
"""The prefix of such a token. No secret of a stored token has a dot."""
SCOPES = frozenset((READ, START, PUBLISH))
"""The scopes of an execution: it reads, starts and publishes in its tenant. It neither answers inquiries nor commands other
executions."""
_ID, _ATTEMPT, _SIGNATURE = 16, 4, 32
"""The bytes of the parts: the id, the attempt's number, and the signature."""


def packed(execution: UUID, attempt: int, signature: bytes) -> str:
    """Return an attempt and its signature as text for an address or a header."""
    parts = execution.bytes + attempt.to_bytes(_ATTEMPT, "big", signed=True) + signature
    return base64.urlsafe_b64encode(parts).decode().rstrip("=")


def unpacked(text: str) -> tuple[UUID, int, bytes] | None:
    """Return the execution, the attempt and the signature in a text; None for any other text."""
    try:
        parts = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        return None
    if len(parts) != _ID + _ATTEMPT + _SIGNATURE:
        return None
    attempt = int.from_bytes(parts[_ID : _ID + _ATTEMPT], "big", signed=True)
    return UUID(bytes=parts[:_ID]), attempt, parts[_ID + _ATTEMPT :]


async def token_of(session: Session, worker: UUID, execution: UUID, attempt: int) -> str | None:
    """Return the token of an attempt that this worker runs; None if it no longer does."""
    signature = await signing_key.sign(session, worker, execution, attempt, "token")
    return None if signature is None else EXECUTION_PREFIX + packed(execution, attempt, signature)


async def find_execution_caller(session: Session, secret: str) -> Caller | None:
    """Return the caller with this token; None if it is forged, or if its attempt is over."""
    parts = unpacked(secret.removeprefix(EXECUTION_PREFIX))
    if parts is None:
        return None
    execution, attempt, signature = parts
    if not hmac.compare_digest(signature, await signing_key.expected(session, execution, attempt, "token")):
        return None
    tenant = await signing_key.tenant_of_running(session, execution, attempt)
    return None if tenant is None else Caller(f"{EXECUTION_CALLER}{execution}", SCOPES, frozenset((tenant,)))
