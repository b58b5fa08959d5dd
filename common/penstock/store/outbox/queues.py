"""The names of the queues. An outbox row, and a message on either transport, names one of them.

This list is the only one: transports declare it, `doctor` checks it, and handlers consume it.
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
"""All queues except those of routes, in the order in which work passes through them."""

WORK = "work."
"""The prefix of a route's queue: `work.<route>`."""

ENFORCEMENT_CREATED = "enforcement.created"
INQUIRY_CREATED = "inquiry.created"
INQUIRY_RESPONDED = "inquiry.responded"
STATUS_MOVED = "execution.status."
ANNOUNCEMENTS = (STATUS_MOVED, ENFORCEMENT_CREATED, INQUIRY_CREATED, INQUIRY_RESPONDED)
"""Prefixes of names that are not queues. A message that is staged under one announces a change to other programs, and
may be dropped."""


AWAITED = "awaited."
"""A prefix, not of queues: a message that is staged under `awaited.<watcher>` notifies a watcher that awaited
executions have ended."""
PLACED = "placed."
"""A prefix, not of queues: a message that is staged under `placed.<queue>` says that the transaction assigned work of that
queue to workers. Nothing is sent."""
ASSIGNED = "assigned."
"""A prefix, not of queues: a message that is staged under `assigned.<worker>` tells a worker to look for claims that
submits made for it."""
TIMERS_SET = "timers.set"
"""Not a queue: a message that is staged under this name says that a timer may be due sooner than executors know."""
PARKED = "parked."
"""A prefix, not of queues: a message that is staged under `parked.<queue>` says that work of that queue was parked."""


def is_work(name: str) -> bool:
    """Return True for the queue of a route."""
    return name.startswith(WORK)


def is_announcement(name: str) -> bool:
    """Return True if the messages under this name may be dropped, since they only announce changes to other programs."""
    return name.startswith(ANNOUNCEMENTS)


def is_consumed(name: str) -> bool:
    """Return True if a service consumes this queue: the queues of routes and QUEUES."""
    return is_work(name) or name in QUEUES


def message_type(name: str) -> str:
    """Return the type of a queue's messages: `work` for all routes, otherwise the queue's name."""
    return "work" if is_work(name) else name
