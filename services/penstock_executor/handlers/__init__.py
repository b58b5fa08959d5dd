"""What the executor does with each message: one file a message, all of them named here."""

from __future__ import annotations

from penstock import messages
from penstock.consumer import Route
from penstock_executor.handlers import completed, created, dead, enforced, received, requested, started

ROUTES = (
    Route(messages.EVENT_RECEIVED, received.handle, raw=True),
    Route(messages.EVENT_CREATED, created.handle),
    Route(messages.ENFORCEMENT_CREATED, enforced.handle),
    Route(messages.EXECUTION_REQUESTED, requested.handle),
    Route(messages.EXECUTION_COMPLETED, completed.handle),
    Route(messages.WORKFLOW_STARTED, started.handle),
    Route(messages.DEAD, dead.handle, raw=True),
)
