"""The operations on saved views, for the client and the command line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from uuid import UUID

from penstock.client.argument_ranges import check_version
from penstock.client.checked_arguments import checks_arguments
from penstock.language.terms.outside_names import check_name
from penstock.operate import saved_views
from penstock.operate.access import ANYBODY, Caller
from penstock.store.access.saved_views import SavedView
from penstock.store.session.database import Session


@checks_arguments
class Views:
    """The saved views of the list of executions, each as a `penstock.store.access.saved_views.SavedView`. `by` is the owner: a
    caller of the API is `user:NAME` or `token:NAME`. The owner of views of the command line, and of pages without a sign-in, is
    `local access`."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def all(self, *, by: str = "") -> list[SavedView]:
        """Return the views of `by`, and all shared ones, by name."""
        return await saved_views.listed(self._session, _caller(by))

    async def get(self, name: str, *, by: str = "") -> SavedView:
        """Return the view of this name or id: one of `by`, or else a shared one. `client.executions` takes the result
        of `penstock.operate.saved_views.filter_of`. Raises NotFound, and Conflict if several shared views have the
        name."""
        return await saved_views.named(self._session, _caller(by), name)

    async def create(
        self,
        name: str,
        filters: Mapping[str, Any],
        *,
        by: str,
        description: str | None = None,
        shared: bool = False,
        replace: bool = False,
    ) -> SavedView:
        """Save a view. `filters` are those of `GET /api/v1/executions`, such as `{"status": ["failed"], "since": "24h"}`. A
        shared view is seen by all that may read the tenant of its filter, or all tenants without one. With `replace` it takes the
        place of the view of `by` with that name, if there is one. Raises InvalidInput, and Conflict for a name that `by` has
        used."""
        check_name(by, "the owner of the view")
        return await saved_views.create(
            self._session, _caller(by), name, filters, description=description, shared=shared, replace=replace
        )

    async def update(
        self,
        id: UUID,
        version: int,
        *,
        by: str,
        name: str | None = None,
        filters: Mapping[str, Any] | None = None,
        description: str | None = None,
        shared: bool | None = None,
    ) -> SavedView:
        """Change a view that still has this `version`. None leaves a field as it is. Raises InvalidInput, NotFound, and Conflict
        for a view that was changed meanwhile, or a name that its owner has used."""
        check_version(version)
        return await saved_views.update(
            self._session,
            _caller(by),
            UUID(str(id)),
            version,
            name=name,
            filters=filters,
            description=description,
            shared=shared,
        )

    async def delete(self, id: UUID, *, by: str) -> None:
        """Delete a view of `by`, or a shared one. Raises NotFound."""
        await saved_views.delete(self._session, _caller(by), UUID(str(id)))


def _caller(name: str) -> Caller:
    """Return the caller of this name. A program that reaches the database may do what an administrator may."""
    return replace(ANYBODY, name=name)
