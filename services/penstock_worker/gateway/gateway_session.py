"""The session of a worker with its gateways, and the attempts that it is given."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any
from uuid import UUID

from penstock.attempts.action_versions import ActionVersion
from penstock.attempts.owned_attempt import OwnedAttempt
from penstock.language.policies.policies import Recovery, RetryPolicy
from penstock.language.schemas import Schema
from penstock.language.terms.redaction import LIVE, hidden_forms, worth_hiding
from penstock.run.task_executors import RunnableAction, TaskReadyEvent
from penstock.service.heartbeat import Identity
from penstock_worker.gateway.gateway_client import GatewayClient, Refused

PROTOCOL = 1
UNKNOWN_SESSION = "UnknownSession"
CLAIM_LOST = "ClaimLost"


@dataclass(frozen=True, slots=True)
class GatewaySession:
    """A session, with the bounds that its gateway has named. Durations are seconds."""

    worker: UUID
    secret: str
    beat_every: float
    lost_after: float
    longest_wait: float
    result_bytes: int

    @property
    def silent_after(self) -> float:
        """Return the seconds without an answered heartbeat after which the worker has to end its attempts."""
        return self.lost_after - self.beat_every / 2


async def say_hello(client: GatewayClient, worker: Identity) -> GatewaySession:
    """Begin a session. Raises Refused."""
    answer = await client.call(
        "hello",
        {
            "protocol": PROTOCOL,
            "name": worker.name,
            "language": "python",
            "sdk": f"penstock/{version('penstock')} (python {platform.python_version()})",
            "routes": worker.routes,
            "labels": dict(worker.labels),
            "actions": [{"ref": ref} for ref in worker.actions],
            "slots": worker.concurrency,
        },
    )
    return GatewaySession(
        UUID(answer["worker"]),
        answer["session"],
        answer["beat_every"],
        answer["lost_after"],
        answer["wait_at_most"],
        answer["result_bytes"],
    )


def is_lost(refused: Refused) -> bool:
    """Return whether a refusal says that the attempts of the call are no longer this worker's."""
    return refused.kind in (UNKNOWN_SESSION, CLAIM_LOST)


def given_attempt(
    document: Mapping[str, Any],
    action: RunnableAction,
    parameters: Schema,
    session: GatewaySession,
    of_route: str | None,
) -> OwnedAttempt:
    """Return the attempt in the answer to a take. Its gateway applies the policies for retries and losses."""
    event = TaskReadyEvent(
        execution_id=UUID(document["execution"]),
        attempt=document["attempt"],
        max_attempts=document["max_attempts"],
        namespace=document["namespace"],
        action=document["action"],
        root=UUID(document["root"]),
        workflow=None if document["workflow"] is None else UUID(document["workflow"]),
        task=document["task"],
    )
    version_ = ActionVersion(action, RetryPolicy(), Recovery(), document["timeout"], False, parameters)
    secrets = parameters.secrets_of(document["parameters"])
    named = document["secrets"]
    LIVE.hide([*secrets, *named.values()])
    return OwnedAttempt(
        event=event,
        version=version_,
        failures=document["attempt"] - 1,
        claim=session.worker,
        params=document["parameters"],
        carry=document["carry"],
        context=document["context"],
        waited=document["waited"],
        of_route=of_route,
        secrets=worth_hiding((*hidden_forms(secrets), *hidden_forms(named.values()))),
        named_secrets=named,
    )
