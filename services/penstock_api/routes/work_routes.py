"""The routes about the routes of work, and the rules that choose them."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query

from penstock.operate import routes
from penstock_api.auth.access import DEFINE_ALL, READ_ALL
from penstock_api.backend import Db, Here
from penstock_api.models import work_routes as models
from penstock_api.routes.router import Router

router = Router("routes")


@router.get("/routes", dependencies=[READ_ALL])
async def list_routes(session: Db, backend: Here) -> list[models.Route]:
    """List the routes, with the definitions that name them and the number of their workers."""
    return [models.Route.model_validate(use) for use in await routes.table(session, backend.settings)]


@router.get("/route-rules", dependencies=[READ_ALL])
async def rules(session: Db) -> list[models.RouteRule]:
    """List the routing rules in the order in which they are tried. The first one that matches decides."""
    return [models.RouteRule.model_validate(rule) for rule in await routes.rules(session)]


@router.delete("/route-rules/{pattern}", status_code=204, dependencies=[DEFINE_ALL])
async def remove(pattern: str, session: Db) -> None:
    """Remove a routing rule. Its work then follows the next rule that matches."""
    await routes.remove(session, pattern)


@router.get("/route-choice", dependencies=[READ_ALL])
async def explain(
    session: Db,
    of: Annotated[
        str, Query(description="An action, such as ml.train, or a namespace: public::ml::nightly::train.")
    ],
) -> models.RouteChoice:
    """Explain which route an action or namespace takes, which rule decides that, and why earlier rules do not match."""
    namespace, choice = await routes.explain(session, of)
    rule = None if choice.named else choice.rules.rule
    return models.RouteChoice(
        namespace=namespace,
        route=choice.route,
        named=choice.named is not None,
        rule=None if rule is None else rule.pattern,
        passed_over=[
            models.PassedOver(pattern=skip.rule.pattern, route=skip.rule.route, why=skip.reason)
            for skip in choice.rules.passed_over
        ],
    )
