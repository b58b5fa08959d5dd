"""The publishing of events. Each is checked against the schema of its trigger, and stored in one batch with concurrent
ones."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

import orjson

from penstock import tracing
from penstock.client import answers
from penstock.client.clock_skew import with_new_ids
from penstock.client.starts import check_bound
from penstock.errors import InvalidInput, NotFound, WrongClock
from penstock.language.schemas import Schema
from penstock.language.terms.outside_names import check_name, check_tenant
from penstock.language.terms.system_triggers import HINT_PUBLISH, is_system
from penstock.messaging.outbox import Publisher
from penstock.run.stored_json import stored_form
from penstock.store.definitions import catalog
from penstock.store.events import events
from penstock.store.events.events import NewEvent, StoredEvents
from penstock.store.session.committed_once import committed_once
from penstock.store.session.database import Session, Transaction, retried
from penstock.store.session.group_commit import GroupCommit
from penstock.tracing.spans import PUBLISH

FRESH = 5.0
"""The seconds for which a trigger's schema is cached."""


class Publishing:
    """The publisher of a client's events, on its session."""

    def __init__(self, session: Session, publisher: Publisher) -> None:
        self._session = session
        self._publisher = publisher
        self._group: GroupCommit[NewEvent, UUID] = GroupCommit(self._write)
        self._triggers: dict[str, tuple[Schema, float]] = {}

    async def publish(
        self,
        trigger: str,
        payload: Any,
        *,
        key: str | None,
        tenant: str,
        source: str,
        max_depth: int | None = None,
        max_descendants: int | None = None,
    ) -> UUID:
        """Store an event, and return its id. The caller must have checked `source`. Raises NotFound if the trigger does
        not exist. Raises InvalidInput if the payload does not fit its schema, or another argument is not valid. Raises
        Conflict if the key belongs to another event."""
        for name, bound in (("max_depth", max_depth), ("max_descendants", max_descendants)):
            if bound is not None:
                check_bound(name, bound)
        with tracing.producing(PUBLISH, trigger, tenant):
            event = await self.checked(
                trigger, {} if payload is None else payload, key=key, tenant=tenant, source=source
            )
            return await self._group.submit(
                replace(event, max_depth=max_depth, max_descendants=max_descendants)
            )

    async def publish_with(
        self,
        trigger: str,
        payload: Any,
        effect: Callable[[Transaction, UUID], Awaitable[object]],
        *,
        key: str,
        tenant: str,
        source: str,
    ) -> UUID:
        """Store an event together with the writes of `effect`, which gets its id. Return the id. A second event with
        its key stores nothing and has no effect. The caller must have checked `source`. Raises NotFound if the trigger
        does not exist. Raises InvalidInput if the payload does not fit its schema, or another argument is not valid.
        Raises Conflict if the key belongs to an event with another payload."""
        with tracing.producing(PUBLISH, trigger, tenant):
            event = await self.checked(
                trigger, {} if payload is None else payload, key=key, tenant=tenant, source=source
            )

            async def write(tx: Transaction) -> UUID | Exception:
                nonlocal event
                try:
                    stored = await events.store(tx, [event], matched=False)
                except WrongClock:
                    [event] = with_new_ids([event])
                    raise
                if stored.stored:
                    await effect(tx, event.id)
                [answer] = answers.of_events(stored, [event])
                return answer

            tx, answer = await committed_once(self._session, write)
        self._publisher.publish(tx.staged)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def checked(
        self, trigger: str, payload: Any, *, key: str | None, tenant: str, source: str
    ) -> NewEvent:
        """Return a checked event that can be stored. The caller must have checked `source`. Raises NotFound if the
        trigger does not exist. Raises InvalidInput if the payload does not fit its schema, or another argument is not
        valid."""
        check_tenant(tenant)
        if key is not None:
            check_name(key, "the key")
        schema = await self._schema(trigger)
        cap = self._session.settings.payload_cap
        try:
            body = schema.check(payload, what="payload", cap=cap)
        except InvalidInput as error:
            error.hint = error.hint or schema.takes()
            raise
        digest = hashlib.sha256(stored_form(body)).hexdigest() if key is not None else None
        return NewEvent(trigger, tenant, body.decode(), source, key, digest, tracing.current())

    async def _schema(self, ref: str) -> Schema:
        if is_system(ref):
            raise InvalidInput(f"{ref} is not published", hint=HINT_PUBLISH)
        loop = asyncio.get_running_loop()
        cached = self._triggers.get(ref)
        if cached is not None and loop.time() - cached[1] < FRESH:
            return cached[0]
        rows = await retried(lambda: catalog.current(self._session, ["trigger"], [ref]), deadline=30)
        if not rows:
            register = "Register it with `penstock apply FILE`. List the triggers with `penstock triggers`."
            raise NotFound(
                f"there is no trigger {ref!r}",
                hint=await catalog.hint(self._session, ["trigger"], ref, register),
            )
        if not rows[0].enabled:
            raise NotFound(
                f"trigger {ref} is retired", hint=f"`penstock retire --undo {ref}` brings it back."
            )
        schema = Schema(orjson.loads(rows[0].body).get("schema"))
        self._triggers[ref] = (schema, loop.time())
        return schema

    async def _write(self, group: Sequence[NewEvent]) -> Sequence[UUID | Exception]:
        tries = 0

        async def write() -> tuple[Transaction, StoredEvents]:
            nonlocal tries, group
            tries += 1
            try:
                async with self._session.transaction() as tx:
                    unwritten = group
                    if tries > 1:  # an earlier try may have committed, although its confirmation was lost
                        stored_ids = {
                            event.id for event in await events.read(tx, [event.id for event in group])
                        }
                        unwritten = [event for event in group if event.id not in stored_ids]
                    nothing = StoredEvents([], {}, {})
                    return tx, await events.store(tx, unwritten, matched=False) if unwritten else nothing
            except WrongClock:
                group = with_new_ids(group)
                raise

        tx, stored = await retried(write, deadline=30)
        self._publisher.publish(tx.staged)
        return answers.of_events(stored, group)
