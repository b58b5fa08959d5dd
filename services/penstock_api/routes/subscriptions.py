"""The routes of subscriptions: programs that are called when executions change status."""

from __future__ import annotations

from penstock.operate import subscriptions
from penstock.store.access import subscriptions as store
from penstock_api.auth.access import DEFINE_ALL, READ_ALL, Asked
from penstock_api.backend import Db
from penstock_api.models import subscriptions as models
from penstock_api.routes.router import OnlyNew, Router

router = Router("subscriptions")


@router.get("/subscriptions", dependencies=[READ_ALL])
async def list_subscriptions(session: Db) -> list[store.Subscription]:
    """List subscriptions, with the state of their calls."""
    return await store.listed(session)


@router.put("/subscriptions/{name}", dependencies=[DEFINE_ALL])
async def put(
    name: str, body: models.PutSubscription, session: Db, caller: Asked, if_none_match: OnlyNew = None
) -> models.MadeSubscription:
    """Create a subscription, or change and enable it."""
    subscription, secret = await subscriptions.put(
        session, name, **body.model_dump(), by=caller.name, only_new=if_none_match is not None
    )
    return models.MadeSubscription(subscription=subscription, secret=secret)


@router.post("/subscriptions/{name}/enable", dependencies=[DEFINE_ALL])
async def enable(name: str, session: Db) -> store.Subscription:
    """Enable a disabled subscription from now on. Changes in the meantime are not delivered."""
    return await subscriptions.enable(session, name)


@router.delete("/subscriptions/{name}", status_code=204, dependencies=[DEFINE_ALL])
async def remove(name: str, session: Db) -> None:
    """Remove a subscription, with its calls that were not made yet."""
    await subscriptions.remove(session, name)
