"""The session of a worker with its gateways, and the attempts that the gateways hand to it."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any
from uuid import UUID

import orjson
import structlog

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
SCHEMAS_BYTES = 128 * 1024
"""The maximum size of the schemas in a hello."""

NO_RETRY, NO_RECOVERY = RetryPolicy(), Recovery()
"""The policies of attempts in this worker. The gateway applies the policies of the definition."""

log = structlog.get_logger()


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


async def say_hello(
    client: GatewayClient, worker: Identity, actions: Mapping[str, RunnableAction]
) -> GatewaySession:
    """Begin a session. `actions`: those of the worker by ref. Raises Refused if the gateway rejects the worker."""
    answer = await client.call(
        "hello",
        {
            "protocol": PROTOCOL,
            "name": worker.name,
            "language": "python",
            "sdk": f"penstock/{version('penstock')} (python {platform.python_version()})",
            "routes": worker.routes,
            "labels": dict(worker.labels),
            "actions": offered_actions(worker.actions, actions),
            "slots": worker.concurrency,
        },
    )
    # A gateway of an earlier version has no differences.
    if differences := answer.get("differences"):
        log.warning(
            "worker.schemas_differ",
            differences=[f"{entry['action']}, {entry['part']}: {entry['text']}" for entry in differences],
            hint="Apply the definitions of this worker's modules (`penstock apply`), or update the worker.",
        )
    return GatewaySession(
        UUID(answer["worker"]),
        answer["session"],
        answer["beat_every"],
        answer["lost_after"],
        answer["wait_at_most"],
        answer["result_bytes"],
    )


def offered_actions(refs: Sequence[str], actions: Mapping[str, RunnableAction]) -> list[dict[str, Any]]:
    """Return the actions of a hello. Schemas are left out once they would make it too large for a gateway."""
    remaining = SCHEMAS_BYTES
    offered = []
    for ref in refs:
        schemas = {
            name: _explicit(schema) if name == "parameters" else schema
            for name in ("parameters", "result")
            if (schema := getattr(actions[ref], f"{name}_schema", None)) is not None
        }
        remaining -= len(orjson.dumps(schemas))
        offered.append({"ref": ref, **(schemas if remaining >= 0 else {})})
    return offered


def _explicit(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a schema of parameters that says so if it accepts undeclared ones: a gateway closes a schema that does not."""
    return schema if "unevaluatedProperties" in schema else {"additionalProperties": True, **schema}


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
    version_ = ActionVersion(action, NO_RETRY, NO_RECOVERY, document["timeout"], False, parameters)
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
