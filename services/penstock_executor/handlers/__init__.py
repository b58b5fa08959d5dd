"""The handlers of the executor: one file for each message. ROUTES names all of them."""

from __future__ import annotations

from penstock.messaging.consumer import Route
from penstock.store.outbox import queues
from penstock_executor.handlers import (
    dead_letter,
    event_created,
    event_received,
    execution_completed,
    execution_requested,
    workflow_started,
)

ROUTES = (
    Route(queues.EVENT_RECEIVED, event_received.handle, raw=True),
    Route(queues.EVENT_CREATED, event_created.handle),
    Route(queues.EXECUTION_REQUESTED, execution_requested.handle),
    Route(queues.EXECUTION_COMPLETED, execution_completed.handle),
    Route(queues.WORKFLOW_STARTED, workflow_started.handle),
    Route(queues.DEAD, dead_letter.handle, raw=True),
)
