"""What the executor does with each message: one file a message, all of them named here."""

from __future__ import annotations

from penstock.messaging import messages
from penstock.messaging.consumer import Route
from penstock_executor.handlers import (
    dead_letter,
    enforcement_created,
    event_created,
    event_received,
    execution_completed,
    execution_requested,
    workflow_started,
)

ROUTES = (
    Route(messages.EVENT_RECEIVED, event_received.handle, raw=True),
    Route(messages.EVENT_CREATED, event_created.handle),
    Route(messages.ENFORCEMENT_CREATED, enforcement_created.handle),
    Route(messages.EXECUTION_REQUESTED, execution_requested.handle),
    Route(messages.EXECUTION_COMPLETED, execution_completed.handle),
    Route(messages.WORKFLOW_STARTED, workflow_started.handle),
    Route(messages.DEAD, dead_letter.handle, raw=True),
)
