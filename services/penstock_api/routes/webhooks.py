"""The routes to manage webhooks."""

from __future__ import annotations

from penstock.operate import webhooks
from penstock.store.access import webhook_refusals
from penstock.store.access import webhooks as store
from penstock.store.access.webhook_refusals import WebhookRefusals
from penstock_api.auth.access import DEFINE_ALL, READ_ALL, Asked
from penstock_api.backend import Db
from penstock_api.models import webhooks as models
from penstock_api.routes.router import OnlyNew, Router

router = Router("webhooks")


@router.get("/webhooks", dependencies=[READ_ALL])
async def list_webhooks(session: Db) -> list[store.Webhook]:
    """List webhooks, without their secrets."""
    return await store.listed(session)


@router.get("/webhook-refusals", dependencies=[READ_ALL])
async def list_refusals(session: Db) -> list[WebhookRefusals]:
    """List the numbers of calls that were refused in the last seven days, by webhook and reason. They also count calls of
    names that no webhook has, and of callbacks. A call is counted about a second after its answer."""
    return await webhook_refusals.listed(session)


@router.put("/webhooks/{name}", dependencies=[DEFINE_ALL])
async def put(
    name: str, body: models.PutWebhook, session: Db, caller: Asked, if_none_match: OnlyNew = None
) -> store.Webhook:
    """Create a webhook, or change it. Its address is `/hooks/{name}`."""
    return await webhooks.put(
        session, name, **body.model_dump(), by=caller.name, only_new=if_none_match is not None
    )


@router.delete("/webhooks/{name}", status_code=204, dependencies=[DEFINE_ALL])
async def remove(name: str, session: Db) -> None:
    """Remove a webhook. Later callers get 404."""
    await webhooks.remove(session, name)
