"""The waits of workflow tasks, without a worker and without a slot: for events, and for the answers to inquiries.

The execution of such a task is `waiting`. Its namespace has no queue; its payload is what it waits for.
"""

from __future__ import annotations

WAIT_FOR_EVENT = "wait_for_event"
"""Payload: trigger, filter, bound (what the filter uses besides the event), timeout in seconds."""
INQUIRY = "inquiry"
"""Payload: prompt, schema, assignee, timeout in seconds, default."""
WAITS = frozenset({WAIT_FOR_EVENT, INQUIRY})
