"""The notification of an assignment: what a transaction has assigned to a worker under one claim (notify_workers.sql)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

import orjson

from penstock.store.executions.attempts import ClaimedAttempt
from penstock.store.session import sealed_marks


@dataclass(frozen=True, slots=True)
class Assignment:
    """Attempts that were assigned under `claim`, at the time `at` of the database in seconds. Their `queue`, and all that is
    needed to begin them."""

    claim: UUID
    queue: str
    attempts: Sequence[ClaimedAttempt]
    at: float


def read(text: str) -> Assignment | None:
    """Return the assignment in a notification. None: the notification names the claim alone, since the attempts are too long, or
    they have encrypted values, which only a session decrypts. Then the claim is looked up."""
    message = orjson.loads(text)
    if "claimed" not in message or sealed_marks.KEY in text:
        return None
    attempts = [_attempt(*values) for values in message["claimed"]]
    return Assignment(UUID(message["claim"]), message["queue"], attempts, message["at"])


def claim_in(text: str) -> UUID:
    """Return the claim that a notification names."""
    return UUID(orjson.loads(text)["claim"])


def _attempt(
    id: str,
    attempt: int,
    failures: int,
    namespace: str,
    definition: int,
    waited: float,
    params: str,
    options: str | None,
    carry: str | None,
    workflow: str | None,
    root: str | None,
    task: str | None,
    trace: str | None,
) -> ClaimedAttempt:
    """Return the attempt that a notification describes, in the order of the type `claimed_attempt`."""
    return ClaimedAttempt(
        execution_id=UUID(id),
        attempt=attempt,
        failures=failures,
        namespace=namespace,
        definition_id=definition,
        waited=waited,
        params=params,
        options=options,
        carry=carry,
        workflow=None if workflow is None else UUID(workflow),
        root=None if root is None else UUID(root),
        task=task,
        trace=trace,
    )
