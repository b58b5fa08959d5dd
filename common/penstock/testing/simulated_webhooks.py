"""The webhooks of a simulation. A call is read by the code of the API's route, and the answer is that of the API."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlencode

import orjson

from penstock.bounds import PAYLOAD_CAP
from penstock.errors import NotFound, PenstockError
from penstock.language.policies.policies import RetryPolicy
from penstock.language.terms import standard_webhooks
from penstock.language.terms.event_sources import of_webhook
from penstock.language.terms.outside_names import check_name
from penstock.operate import webhook_calls, webhooks
from penstock.operate.outside import Report, ending_of_report
from penstock.operate.webhook_calls import Call, Meaning
from penstock.operate.webhook_signatures import SECRET_HEADER
from penstock.run.outgoing import Publish
from penstock.service.problems import BODY_SLACK, Problem, http_status, problem_of, too_large
from penstock.store.access.webhooks import Webhook
from penstock.testing import simulated_outside
from penstock.testing.simulated_effects import Effects
from penstock.testing.world import Execution, PublishedEvent, World

if TYPE_CHECKING:
    from penstock.testing.simulated_run import SimulatedRun

SECRET = "whsec_c2ltdWxhdGVkIHNlY3JldCBvZiBhIHdlYmhvb2s="
"""The secret of a webhook for which a test gives none. Every scheme accepts it."""
ACCEPTED = 202


@dataclass(frozen=True, slots=True)
class WebhookResponse:
    """The response of a webhook, and the effects of the call."""

    status: int
    """202 for an accepted call. Otherwise the status of the API: 401 for a wrong signature, 404, 409, 413, 422."""
    body: Mapping[str, Any]
    """`{"id": ...}` with the id of the event, or a problem document with `detail` and `hint`."""
    headers: Mapping[str, str]
    event: PublishedEvent | None = None
    """The event that the call became, now or when it came before. None for a refused call."""
    started: list[SimulatedRun] = field(default_factory=list)
    """The runs that rules started on the event."""
    settled: list[SimulatedRun] = field(default_factory=list)
    """The runs with a wait that the call completed or failed."""


@dataclass(frozen=True, slots=True)
class Effect:
    """The effect of an accepted call."""

    event: PublishedEvent
    started: list[Execution]
    settled: list[Execution]


class SimulatedWebhooks:
    """The webhooks of a simulation, with their secrets."""

    def __init__(self, world: World, effects: Effects) -> None:
        self._world = world
        self._effects = effects
        self._webhooks: dict[str, tuple[Webhook, str]] = {}
        self._calls = 0

    def put(
        self,
        name: str,
        *,
        trigger: Any,
        signature: str,
        secret: str,
        header: str | None,
        key_header: str | None,
        payload: Any,
        completes: str | None,
        fails: str | None,
    ) -> None:
        """Create a webhook, or replace it. Raises the errors of `penstock webhooks set`."""
        ref = trigger if isinstance(trigger, str) else str(trigger.ref)
        webhooks.check_call(
            name,
            ref,
            signature=signature,
            secret=secret,
            tenant="public",
            header=header,
            key_header=key_header,
        )
        schema = self._world.known.trigger(trigger).payload_schema
        has_key = signature != "secret" or key_header is not None
        webhooks.check_templates(
            ref, schema, payload=payload, completes=completes, fails=fails, has_key=has_key
        )
        template = None if payload is None else orjson.dumps(payload).decode()
        now = self._world.clock.now
        webhook = Webhook(
            name, ref, "public", signature, header, key_header, template, completes, fails, "the test", now
        )
        self._webhooks[name] = webhook, secret

    def call(
        self,
        name: str,
        body: Any,
        headers: Mapping[str, str],
        query: str | Mapping[str, Any],
        *,
        is_signed: bool,
    ) -> Effect | tuple[Problem, dict[str, str]]:
        """Call a webhook. Return the effect, or the problem document of a refused call with its headers."""
        raw = body.encode() if isinstance(body, str) else body
        raw = raw if isinstance(raw, bytes) else orjson.dumps(raw)
        if len(raw) > PAYLOAD_CAP + BODY_SLACK:
            return too_large(), {}
        try:
            webhook, secret = self._find(name)
            sent = {
                "content-type": "application/json",
                **{key.lower(): text for key, text in headers.items()},
            }
            if is_signed:
                sent = self._signed(webhook, secret, raw, sent) | sent
            text = query if isinstance(query, str) else urlencode(query, doseq=True)
            call = Call(raw, sent, parse_qsl(text, keep_blank_values=True))
            return self._accepted(webhook, webhook_calls.read(webhook, secret, call, self._now()))
        except PenstockError as error:
            if http_status(error) == 500:
                raise
            return problem_of(error)

    def _accepted(self, webhook: Webhook, meaning: Meaning) -> Effect:
        if meaning.key is not None:
            check_name(meaning.key, "the key")
        request, source = Publish(webhook.trigger, meaning.payload, meaning.key), of_webhook(webhook.name)
        existing = self._effects.existing(request, source)
        if existing is not None:
            return Effect(self._effects.published(existing), [], [])
        if meaning.awaited is not None and not meaning.fails:
            policy = RetryPolicy(max_attempts=1)
            ending_of_report(Report("result", meaning.payload), policy, 0, PAYLOAD_CAP)
        event, started = self._effects.publish_keyed(request, source)
        if meaning.awaited is None:
            return Effect(event, started, [])
        settled = simulated_outside.settle(self._world, meaning.awaited, meaning.outcome(event.id))
        return Effect(event, started, settled)

    def _find(self, name: str) -> tuple[Webhook, str]:
        if name not in self._webhooks:
            raise NotFound(f"no webhook {name!r}", hint="List the webhooks with: penstock webhooks list")
        return self._webhooks[name]

    def _now(self) -> float:
        return self._world.clock.now.timestamp()

    def _signed(self, webhook: Webhook, secret: str, raw: bytes, sent: Mapping[str, str]) -> dict[str, str]:
        """Return the headers with which a sender signs a call at the time of the simulation's clock."""
        at = f"{self._now():.0f}"
        if webhook.signature == "github":
            return {"x-hub-signature-256": f"sha256={_hmac(secret, raw)}"}
        if webhook.signature == "stripe":
            return {"stripe-signature": f"t={at},v1={_hmac(secret, at.encode() + b'.' + raw)}"}
        if webhook.signature == "standard":
            self._calls += 1
            id, at = sent.get("webhook-id", f"msg_{self._calls}"), sent.get("webhook-timestamp", at)
            signature = standard_webhooks.signature(secret, id, at, raw)
            return {"webhook-id": id, "webhook-timestamp": at, "webhook-signature": f"v1,{signature}"}
        return {(webhook.header or SECRET_HEADER).lower(): secret}


def _hmac(secret: str, text: bytes) -> str:
    return hmac.new(secret.encode(), text, hashlib.sha256).hexdigest()
