"""The route `POST /hooks/<name>` for calls of other programs, which become events. The answer comes once the event is
durably stored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Path, Request
from starlette.requests import ClientDisconnect

from penstock.errors import ConfigurationError, Conflict, ExpressionError, InvalidInput, NotFound
from penstock.language.terms.event_sources import of_webhook
from penstock.operate import outside, signing_secrets, webhook_calls, webhooks
from penstock.operate.webhook_calls import Call
from penstock.store.session.database import Transaction
from penstock.store.session.noted_clock import noted
from penstock_api.backend import Here
from penstock_api.models.events import Published
from penstock_api.refused_webhook_calls import refused_as
from penstock_api.requests.problems import ANSWERS
from penstock_api.routes.router import operation_id
from penstock_api.webhooks.unreadable_secrets import concealed_from_caller

READING: Mapping[type[Exception], str] = {
    ExpressionError: "failed template",
    InvalidInput: "invalid body",
}
PUBLISHING: Mapping[type[Exception], str] = {
    NotFound: "unknown trigger",
    InvalidInput: "invalid payload",
    Conflict: "key of another call",
}
"""The reasons that a webhook lists for refused calls, by the class of the error."""

router = APIRouter(tags=["webhooks"], responses=ANSWERS, generate_unique_id_function=operation_id)


@router.post("/hooks/{name}", status_code=202)
async def call(
    name: Annotated[str, Path(description="The name of the webhook.")], request: Request, backend: Here
) -> Published:
    """Publish the call's body as an event of the webhook's trigger. The signature identifies the caller. The same call
    again returns the same event."""
    await backend.look_at_clock()
    async with backend.pool.session() as session:
        webhook = await webhooks.find(session, name)
        with refused_as(request, {ConfigurationError: "unreadable secret"}), concealed_from_caller():
            secret = await signing_secrets.of_webhook(session, name)
    headers = {key.lower(): value for key, value in request.headers.items()}
    with refused_as(request, {ClientDisconnect: "caller hung up"}):
        body = await request.body()
    received = Call(body, headers, request.query_params.multi_items())
    with refused_as(request, READING):
        meaning = webhook_calls.read(webhook, secret, received, noted().timestamp())
    publishing, tenant, source = backend.client.publishing, webhook.tenant, of_webhook(name)
    payload, key, awaited = meaning.payload, meaning.key, meaning.awaited
    if awaited is None or key is None:
        with refused_as(request, PUBLISHING):
            id = await publishing.publish(webhook.trigger, payload, key=key, tenant=tenant, source=source)
        return Published(id=id)

    async def settle(tx: Transaction, event: UUID) -> None:
        cap, by = tx.settings.payload_cap, f"webhook {webhook.name}"
        with concealed_from_caller():
            await outside.report_by_id(tx, cap, tenant, awaited, meaning.outcome(event), by, event=event)

    with refused_as(request, PUBLISHING):
        id = await publishing.publish_with(
            webhook.trigger, payload, settle, key=key, tenant=tenant, source=source
        )
    return Published(id=id)
