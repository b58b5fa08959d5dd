"""The queues, by name. An outbox row is for one of them, and so is a message on either transport.

The one list: a transport declares what is here, `doctor` looks at what is here, a handler takes what is here.
"""

from __future__ import annotations

EVENT_RECEIVED = "event.received"
EVENT_CREATED = "event.created"
ENFORCEMENT_CREATED = "enforcement.created"
EXECUTION_REQUESTED = "execution.requested"
EXECUTION_COMPLETED = "execution.completed"
WORKFLOW_STARTED = "workflow.started"
INQUIRY_RESPONDED = "inquiry.responded"
DEAD = "dead"
QUEUES = frozenset(
    {
        EVENT_RECEIVED,
        EVENT_CREATED,
        ENFORCEMENT_CREATED,
        EXECUTION_REQUESTED,
        EXECUTION_COMPLETED,
        WORKFLOW_STARTED,
        INQUIRY_RESPONDED,
        DEAD,
    }
)
"""All but those of the routes."""
WORK = "work."
"""The queue of a route is `work.<route>`."""
INQUIRY_CREATED = "inquiry.created"
"""No queue: it tells whoever listens of executions that ask somebody something."""
