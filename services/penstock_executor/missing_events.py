"""Dead letters of events that stored work refers to, and that are not stored any more."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

import structlog

from penstock.messaging import dead_letters, envelope
from penstock.messaging.dead_letters import Letter
from penstock.store.outbox import queues
from penstock.store.session.database import Transaction

log = structlog.get_logger()


async def keep(tx: Transaction, ids: Sequence[UUID], loss: str) -> None:
    """Store a dead letter for each of these events, with what was lost with it. The retention keeps events that stored work
    needs. So another program has deleted the event, or an older release."""
    if not ids:
        return
    log.error("missing_events.kept", events=len(ids), reason=loss)
    reason = f"EventMissing: the event is not stored any more, and {loss}"
    await dead_letters.keep(
        tx,
        [
            Letter(
                queues.EVENT_CREATED,
                reason,
                envelope.encode(queues.EVENT_CREATED, [id]),
                queues.EVENT_CREATED,
            )
            for id in ids
        ],
    )
