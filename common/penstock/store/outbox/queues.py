"""The queues, by name. An outbox row is for one of them, and so is a message on either transport.

The one list: a transport declares what is here, `doctor` looks at what is here, a handler takes what is here.
"""

from __future__ import annotations

EVENT_RECEIVED = "event.received"
EVENT_CREATED = "event.created"
EXECUTION_REQUESTED = "execution.requested"
EXECUTION_COMPLETED = "execution.completed"
WORKFLOW_STARTED = "workflow.started"
DEAD = "dead"
QUEUES = (
    EVENT_RECEIVED,
    EVENT_CREATED,
    EXECUTION_REQUESTED,
    EXECUTION_COMPLETED,
    WORKFLOW_STARTED,
    DEAD,
)
"""All but those of the routes, in the order in which work goes through them."""

WORK = "work."
"""The queue of a route is `work.<route>`."""

INQUIRY_CREATED = "inquiry.created"
INQUIRY_RESPONDED = "inquiry.responded"
STATUS_MOVED = "execution.status."
ANNOUNCEMENTS = (STATUS_MOVED, INQUIRY_CREATED, INQUIRY_RESPONDED)
"""No queues: a message staged for a name that begins so tells other programs what happened, and may be dropped."""


AWAITED = "awaited."
"""No queue: what is staged for a name that begins so tells a watcher, whose id comes after it, what he waits for has ended."""
ASSIGNED = "assigned."
"""No queue: what is staged for a name that begins so tells a worker, by the id that comes after it, to look for claims that
submits made for it."""
TIMERS_SET = "timers.set"
"""No queue: what is staged for it says that timers were set, of which one may be due sooner than executors know."""
PARKED = "parked."
"""No queue: what is staged for a name that begins so says that work of the queue whose name comes after it was parked."""


def is_work(name: str) -> bool:
    """Return whether this is the queue of a route."""
    return name.startswith(WORK)


def is_announcement(name: str) -> bool:
    """Return whether the messages of a queue may be dropped, as they only announce to other programs what happened."""
    return name.startswith(ANNOUNCEMENTS)


def is_consumed(name: str) -> bool:
    """Return whether a service consumes this queue: those of work, and every queue of the list."""
    return is_work(name) or name in QUEUES


def message_type(name: str) -> str:
    """The type of the messages of a queue. All work is of one type."""
    return "work" if is_work(name) else name
