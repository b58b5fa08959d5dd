"""The key that signs the tokens and callback addresses of executions. The migration creates it."""

from __future__ import annotations

import hashlib
from typing import Literal
from uuid import UUID

from penstock.store.session.database import Session, Transaction

Purpose = Literal["token", "callback"]
"""The purpose of a signature, so that none is valid as another."""

SIGN = "select sign_attempt($1, $2, $3, $4) as signature"


async def sign(session: Session, worker: UUID, id: UUID, attempt: int, purpose: Purpose) -> bytes | None:
    """Return the signature about an attempt that this worker owns: 32 bytes. None: it does not own it."""
    signature: bytes | None = (await session.fetch(SIGN, worker, id, attempt, purpose))[0]["signature"]
    return signature


KEY = "select key from signing_key"


async def expected(session: Session | Transaction, id: UUID, attempt: int, purpose: Purpose) -> bytes:
    """Return the signature that an attempt has: the same as in the database function `sign_attempt`."""
    key: bytes = (await session.fetch(KEY))[0]["key"]
    inner = hashlib.sha256(key + purpose.encode() + id.bytes + attempt.to_bytes(4, "big", signed=True))
    return hashlib.sha256(key + inner.digest()).digest()


RUNNING = """
select split_part(n.name, '::', 1) as tenant from execution e join namespace n on n.id = e.namespace_id
where e.id = $1 and e.attempt = $2 and e.status in ('running', 'canceling')
"""


async def tenant_of_running(session: Session, id: UUID, attempt: int) -> str | None:
    """Return the tenant of an execution that runs this attempt; None if it does not."""
    return next((str(row["tenant"]) for row in await session.fetch(RUNNING, id, attempt)), None)
