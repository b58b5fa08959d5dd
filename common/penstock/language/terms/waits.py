"""The kinds of workflow tasks that only wait, without a worker and without a slot: for an event, or for the answer to
an inquiry.

The execution of such a task is `waiting`. Its namespace has no queue. Its payload describes the wait.
"""

from __future__ import annotations

WAIT_FOR_EVENT = "wait_for_event"
"""A wait for an event. Payload: trigger, filter, bound (the values of the filter's other names), timeout in seconds."""
INQUIRY = "inquiry"
"""A wait for an answer. Payload: prompt, schema, assignee, timeout in seconds, default."""
SLEEP_CAUSES = "a timer, signal or callback"
"""The causes that end the wait of an action without a question and without an open child, as text for people."""
WAIT_CAUSES = "an answer, event, timer, signal, child execution or callback"
"""The causes that end a wait without a worker: of an action, or of a task that only waits."""
WAITS = frozenset({WAIT_FOR_EVENT, INQUIRY})
