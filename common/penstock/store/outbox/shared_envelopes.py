"""The switch between envelopes that executions of a namespace share, and an envelope for each execution."""

from __future__ import annotations

from penstock.store.session.database import Session

ALONE = "update namespace set envelope = 1 where name = $1 and envelope <> 1"


async def send_alone(session: Session, namespace: str) -> None:
    """Send each execution of this namespace in an envelope of its own."""
    await session.fetch(ALONE, namespace)


TOGETHER = "update namespace set envelope = default where name = $1 and envelope = 1"


async def send_together(session: Session, namespace: str) -> None:
    """Let executions of this namespace share envelopes again."""
    await session.fetch(TOGETHER, namespace)
