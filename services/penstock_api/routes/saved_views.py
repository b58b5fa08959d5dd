"""The routes of saved views: lists of executions that callers keep under a name, for themselves or shared."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import Depends, Path, Query, Response

from penstock.operate import saved_views
from penstock.store.access.saved_views import SavedView
from penstock_api.auth.access import READ, READ_OWN, Asked
from penstock_api.backend import Db
from penstock_api.models import saved_views as models
from penstock_api.routes.router import Router

router = Router("views")


async def _seen(
    id: Annotated[UUID, Path(description="The id of a view.")], session: Db, caller: Asked
) -> UUID:
    return (await saved_views.find(session, caller, id)).id


SeenView = Annotated[UUID, Depends(_seen)]
"""The dependency with the id in the path, of a view that the caller may see. A caller that may not see it is not told what the
request lacks."""


@router.get("/views", dependencies=[READ])
async def list_views(session: Db, caller: Asked) -> list[SavedView]:
    """List the saved views of the caller, and the shared ones that it may see, by name."""
    return await saved_views.listed(session, caller)


@router.get("/views/named", dependencies=[READ])
async def named(
    session: Db, caller: Asked, name: Annotated[str, Query(description="The name or the id of the view.")]
) -> SavedView:
    """Find a view by name or id: first among those of the caller, then among shared ones. It is a conflict (409) if several
    shared views have the name."""
    return await saved_views.named(session, caller, name)


@router.get("/views/{id}", dependencies=[READ])
async def show(id: UUID, session: Db, caller: Asked) -> SavedView:
    """Show a saved view of the caller, or a shared one that it may see."""
    return await saved_views.find(session, caller, id)


@router.post("/views", status_code=201, dependencies=[READ_OWN])
async def create(body: models.NewView, session: Db, caller: Asked, response: Response) -> SavedView:
    """Save a view of the list of executions. A shared one needs the scope `operate`, too."""
    view = await saved_views.create(
        session,
        caller,
        body.name,
        body.filters.document(),
        description=body.description,
        shared=body.shared,
        replace=body.replace,
    )
    response.headers["location"] = f"/api/v1/views/{view.id}"
    return view


@router.patch("/views/{id}", dependencies=[READ_OWN])
async def update(id: SeenView, body: models.ChangedView, session: Db, caller: Asked) -> SavedView:
    """Change a view of the caller. An administrator can also change shared views. A change is refused (409) if the
    view was changed since this `version` was read."""
    return await saved_views.update(
        session,
        caller,
        id,
        body.version,
        name=body.name,
        filters=None if body.filters is None else body.filters.document(),
        description=body.description,
        shared=body.shared,
    )


@router.delete("/views/{id}", status_code=204, dependencies=[READ_OWN])
async def delete(id: UUID, session: Db, caller: Asked) -> None:
    """Delete a view of the caller. An administrator may delete shared ones."""
    await saved_views.delete(session, caller, id)
