"""Saved views: lists of executions that callers keep under a name, for themselves or shared. A view holds filters and no rights:
its list shows what the reader may see."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

import orjson

from penstock.errors import Conflict, InvalidInput, NotAllowed, NotFound
from penstock.language.terms.ids import new_id
from penstock.language.terms.options import did_you_mean
from penstock.operate import list_filters
from penstock.operate.access import ADMIN, OPERATE, Caller
from penstock.run.cut_texts import cut_end
from penstock.store.access import saved_views
from penstock.store.access.saved_views import SavedView
from penstock.store.executions.execution_list import ExecutionFilter
from penstock.store.session.committed_once import committed_once
from penstock.store.session.database import Session, Transaction, retried
from penstock.store.session.noted_clock import noted

MAX_NAME = 100
"""The maximum length of the name of a view, in characters."""
MAX_DESCRIPTION = 500
"""The maximum length of the description of a view, in characters."""
MAX_FILTERS = 8 * 1024
"""The maximum size of the filters of a view, in bytes of JSON."""
MAX_VIEWS = 100
"""The maximum number of views of one owner."""


async def listed(session: Session, caller: Caller) -> list[SavedView]:
    """Return the views of the caller, and the shared ones that it may see, by name."""
    tenants = _tenants(caller)
    return await retried(lambda: saved_views.seen_by(session, caller.name, tenants), deadline=30)


def _tenants(caller: Caller) -> list[str] | None:
    return None if caller.tenants is None else sorted(caller.tenants)


async def find(session: Session | Transaction, caller: Caller, id: UUID) -> SavedView:
    """Return a view that the caller may see. Raises NotFound."""
    view = await saved_views.find(session, id, caller.name, _tenants(caller))
    if view is None:
        raise _no_view(id)
    return view


def _no_view(id: UUID) -> NotFound:
    return NotFound(
        f"no saved view {id}",
        hint="The view may have been deleted, or is not shared with you. List the views with: penstock views list",
    )


async def named(session: Session, caller: Caller, name: str) -> SavedView:
    """Return the view of this name or id. The caller's own views come before shared ones. Raises NotFound, and Conflict where
    several shared views have the name."""
    views = await listed(session, caller)
    own = [view for view in views if view.owner == caller.name and view.name == name]
    same = own or [view for view in views if name in (view.name, str(view.id))]
    if not same:
        raise NotFound(
            f"no saved view {cut_end(name, MAX_NAME)!r}",
            hint=did_you_mean(name, [view.name for view in views]),
        )
    if len(same) > 1:
        ids = ", ".join(f"{view.id} of {view.owner or 'a removed owner'}" for view in same[:10])
        raise Conflict(
            f"{len(same)} shared views are named {name!r}", hint=f"Use the id of one of them: {ids}."
        )
    return same[0]


def filter_of(view: SavedView, now: list_filters.Clock = noted) -> ExecutionFilter:
    """Return the filter of a view at this moment: an age counts back from `now()`. Raises InvalidInput if the filter is no
    longer valid."""
    try:
        return list_filters.execution_filter(view.filters, now)
    except InvalidInput as error:
        raise InvalidInput(
            f"the view {view.name!r} is no longer valid: {error.message}",
            hint=f"Its owner, {view.owner or 'an administrator'}, can change its filters or delete it. {error.hint}",
        ) from None


async def create(
    session: Session,
    caller: Caller,
    name: str,
    filters: Mapping[str, Any],
    *,
    description: str | None = None,
    shared: bool = False,
    replace: bool = False,
) -> SavedView:
    """Save a view for the caller. A shared one needs the right to operate in its tenants. With `replace` it takes the place of
    the caller's view of that name, if there is one. Raises InvalidInput, NotAllowed, and Conflict for a name that the caller
    has used."""
    name, note, checked = _name(name), _description(description), _filters(filters, caller)
    tenants = audience(checked, caller)
    if shared:
        _check_may_share(caller, tenants)
    id = new_id()

    async def insert(tx: Transaction) -> SavedView:
        names = await saved_views.lock_names(tx, caller.name)
        await _keep_owner(tx, caller.name)
        if name in names:
            if not replace:
                raise _name_is_taken(name)
            replaced = await saved_views.replace(
                tx,
                names[name],
                description=note,
                filters=checked,
                tenants=tenants,
                shared=shared,
                by=caller.name,
            )
            if replaced is None:
                raise _no_view(names[name])
            tx.tell(id=replaced.id, shared=shared, tenants=tenants)
            return replaced
        if len(names) >= MAX_VIEWS:
            raise Conflict(
                f"{caller.name} has {len(names)} views, and may have at most {MAX_VIEWS}",
                hint="Delete a view first: penstock views delete NAME",
            )
        view = await saved_views.create(
            tx, id, caller.name, name, description=note, filters=checked, tenants=tenants, shared=shared
        )
        tx.tell(id=id, shared=shared, tenants=tenants)
        return view

    return (await committed_once(session, insert))[1]


async def update(
    session: Session,
    caller: Caller,
    id: UUID,
    version: int,
    *,
    name: str | None = None,
    filters: Mapping[str, Any] | None = None,
    description: str | None = None,
    shared: bool | None = None,
) -> SavedView:
    """Change a view that still has this `version`. None leaves a field as it is, and an empty description removes it. Raises
    InvalidInput, NotFound, NotAllowed, and Conflict for another version or a name that its owner has used."""
    new_name = None if name is None else _name(name)
    new_filters = None if filters is None else _filters(filters, caller)
    note = _description(description)

    async def change(tx: Transaction) -> SavedView:
        view = await find(tx, caller, id)
        _check_may_change(view, caller)
        if view.owner is not None:
            names = await saved_views.lock_names(tx, view.owner)
            if new_name is not None and names.get(new_name, id) != id:
                raise _name_is_taken(new_name)
            if view.owner == caller.name:
                await _keep_owner(tx, caller.name)
        is_shared = view.shared if shared is None else shared
        tenants = view.tenants
        if view.owner == caller.name or (new_filters is not None and "tenant" in new_filters):
            tenants = audience(view.filters if new_filters is None else new_filters, caller)
        if is_shared:
            _check_may_share(caller, tenants)
        elif view.owner is None:
            raise InvalidInput(
                f"the view {view.name!r} has no owner, so it would be invisible if it were not shared",
                hint="Leave the view shared, or delete it.",
            )
        changed = await saved_views.update(
            tx,
            id,
            version,
            new_name or view.name,
            description=view.description if description is None else note,
            filters=view.filters if new_filters is None else new_filters,
            tenants=tenants,
            shared=is_shared,
            by=caller.name,
        )
        if changed is None:
            raise Conflict(
                f"another caller has changed the view {view.name!r}: its version is no longer {version}",
                hint="Read the view again, and repeat the change.",
            )
        tx.tell(id=id, shared=is_shared, tenants=tenants, owner=view.owner)
        return changed

    return (await committed_once(session, change))[1]


async def delete(session: Session, caller: Caller, id: UUID) -> None:
    """Delete a view. Raises NotFound, NotAllowed."""

    async def remove(tx: Transaction) -> None:
        view = await find(tx, caller, id)
        _check_may_change(view, caller)
        if view.owner is not None:
            await saved_views.lock_names(tx, view.owner)
        if not await saved_views.delete(tx, id):
            raise _no_view(id)
        tx.tell(id=id, name=view.name, owner=view.owner, shared=view.shared)

    await committed_once(session, remove)


def may_change(view: SavedView, caller: Caller) -> bool:
    """Return True if the caller may change or delete the view: its owner may, and an administrator of all tenants if it is
    shared."""
    if view.owner == caller.name:
        return True
    return view.shared and caller.has(ADMIN) and caller.within(ADMIN).tenants is None


def may_share(caller: Caller, filters: Mapping[str, Any]) -> bool:
    """Return True if the caller may share a view with these filters."""
    return _may_share_in(caller, audience(filters, caller))


def _may_share_in(caller: Caller, tenants: list[str] | None) -> bool:
    if not caller.has(OPERATE):
        return False
    allowed = caller.within(OPERATE).tenants
    return allowed is None or (tenants is not None and allowed.issuperset(tenants))


def _check_may_change(view: SavedView, caller: Caller) -> None:
    if not may_change(view, caller):
        raise NotAllowed(
            f"{caller.name} may not change the view {view.name!r} of {view.owner or 'a removed owner'}",
            hint="Save a view of your own with its filters, or ask its owner or an administrator.",
        )


def _check_may_share(caller: Caller, tenants: list[str] | None) -> None:
    if not _may_share_in(caller, tenants):
        raise NotAllowed(
            f"{caller.name} may not share this view: it lacks the scope {OPERATE!r} for all tenants of the view",
            hint="Keep the view private, or choose a tenant that you operate: the filter tenant.",
        )


def audience(filters: Mapping[str, Any], caller: Caller) -> list[str] | None:
    """Return the tenants that a reader of a shared view must have: that of its filter, or else those of its author. So labels and
    keys in a filter are shown to no other tenant."""
    return [filters["tenant"]] if "tenant" in filters else _tenants(caller)


async def _keep_owner(tx: Transaction, owner: str) -> None:
    if not await saved_views.keep_owner(tx, owner):
        raise NotFound(
            f"{owner} was removed, so no view can be saved for it",
            hint="Sign in again, or use another token.",
        )


def _name_is_taken(name: str) -> Conflict:
    return Conflict(
        f"there already is a view {name!r} of the same owner",
        hint="Choose another name, or change that view: penstock views save NAME --replace",
    )


def _name(name: str) -> str:
    if not 1 <= len(name) <= MAX_NAME or not name.isprintable() or name != name.strip():
        raise InvalidInput(
            f"{cut_end(ascii(name), 60)} is not a valid view name",
            hint=f"Use 1 to {MAX_NAME} printable characters, without a space at the beginning or the end.",
        )
    try:
        UUID(name)
    except ValueError:
        return name
    raise InvalidInput("the name of a view cannot be an id", hint="Choose a descriptive name.")


def _description(text: str | None) -> str | None:
    if text is not None and (len(text) > MAX_DESCRIPTION or not (text or "x").isprintable()):
        raise InvalidInput(
            f"the description has more than {MAX_DESCRIPTION} characters, or some that cannot be shown",
            hint="Write one line of text.",
        )
    return text or None


def _filters(filters: Mapping[str, Any], caller: Caller) -> dict[str, Any]:
    """Return the filters of a view in their stored form. Raises InvalidInput, and NotAllowed for a tenant of others."""
    checked = list_filters.checked(filters)
    if not checked:
        raise InvalidInput("a view needs at least one filter", hint="Choose at least one filter.")
    if (size := len(orjson.dumps(checked))) > MAX_FILTERS:
        raise InvalidInput(
            f"the filters have {size:,} bytes; at most {MAX_FILTERS:,} are stored",
            hint="Choose fewer filters.",
        )
    if list_filters.from_texts(list_filters.as_texts(checked)) != checked:
        raise InvalidInput(
            "the address of a page cannot hold these labels",
            hint="Omit labels whose value contains a comma, or a space followed by key=.",
        )
    if "tenant" in checked and not caller.sees(checked["tenant"]):
        raise NotAllowed(
            f"{caller.name} may not use tenant {checked['tenant']!r}",
            hint=f"It may use: {', '.join(sorted(caller.tenants or ()))}.",
        )
    return checked
