"""The operations on limits at run time, for the client and the command line."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

from pydantic import ValidationError

from penstock.client.checked_arguments import checks_arguments
from penstock.errors import InvalidInput, NotFound
from penstock.language.definitions.limit import EVERYTHING, Limit
from penstock.language.definitions.qualified_name import is_ref
from penstock.language.terms.options import nearest, problems
from penstock.messaging.outbox import Publisher
from penstock.store.admission import limits, namespaces
from penstock.store.admission.limits import TOTALS_HOURS, LimitInForce, LimitTotals
from penstock.store.session import clock
from penstock.store.session.committed_once import committed_once
from penstock.store.session.database import Session, Transaction, retried

T = TypeVar("T")


async def in_force(session: Session, ref: str | None = None) -> list[LimitInForce]:
    """Return the limits that are in force, by ref, or only the one with this ref."""
    return await retried(lambda: limits.in_force(session, ref), deadline=30)


@checks_arguments
class Limits:
    """The limits of an installation, each as a `penstock.store.admission.limits.LimitInForce`."""

    def __init__(self, session: Session, publisher: Publisher) -> None:
        self._session = session
        self._publisher = publisher

    async def all(self) -> list[LimitInForce]:
        """Return all limits that are in force, by ref."""
        return await in_force(self._session)

    async def get(self, ref: str) -> LimitInForce:
        """Return the limit with this ref. Raises NotFound if the limit does not exist."""
        rows = await in_force(self._session, ref)
        if not rows:
            raise await _missing(self._session, ref)
        return rows[0]

    async def totals(self, ref: str | None = None, *, hours: float = TOTALS_HOURS) -> list[LimitTotals]:
        """Count the attempts of the last `hours` that asked for a slot of each limit, or of one limit, got it, and gave
        it back. Raises NotFound if the limit does not exist, and InvalidInput if `hours` is not above 0 and at most
        24."""
        if not 0 < hours <= TOTALS_HOURS:
            raise InvalidInput("the hours are out of range", hint=f"Give more than 0, up to {TOTALS_HOURS}.")
        rows = await limits.totals(self._session, await clock.in_seconds(self._session, -hours * 3600), ref)
        if ref is not None and not rows:
            raise await _missing(self._session, ref)
        return rows

    async def set(self, /, ref: str, **options: Any) -> LimitInForce:
        """Change a limit, or create one, with the options of `Limit`. Omitted options stay, and None removes an
        option.

        The change overrides applied definitions until it is removed. Executions for which there is now room start at
        once. If more slots are held than are now allowed, the next execution starts once enough have ended. Raises
        InvalidInput if an option is not valid, and NotFound for a limit that does not exist and gets no `scope`.
        """

        async def change(tx: Transaction) -> list[limits.Stored]:
            current = (await limits.versions(tx, ref)).in_force
            if current is None and options.get("scope") is None:
                raise await _missing(tx, ref)
            document = _changed(ref, current[1] if current else {}, options).document()
            tx.tell(before=current[1] if current else None, after=document.body)
            return [await limits.put_by_hand(tx, ref, document.digest, document.body)]

        await self._change(change)
        return await self.get(ref)

    async def remove(self, ref: str) -> LimitInForce | None:
        """Undo the manual change of a limit, so that the declared limit is in force again. Return that limit, or None.

        If there is no manual change, this removes the declared limit until a definition of it is applied again. Executions
        that hold its slots go on, and those that wait only for it start. Raises NotFound if the limit does not exist.
        """

        async def change(tx: Transaction) -> list[limits.Stored]:
            versions = await limits.versions(tx, ref)
            if versions.in_force is None:
                raise await _missing(tx, ref)
            tx.tell(
                before=versions.in_force[1],
                after=versions.declared[1] if versions.by_hand and versions.declared else None,
            )
            await limits.drop(tx, limits.BY_HAND if versions.by_hand else limits.DECLARED, ref)
            if versions.by_hand and versions.declared:
                return [await limits.store(tx, ref, *versions.declared)]
            return []

        await self._change(change)
        rows = await in_force(self._session, ref)
        return rows[0] if rows else None

    async def _change(self, change: Callable[[Transaction], Awaitable[list[limits.Stored]]]) -> None:
        async def regroup(tx: Transaction) -> None:
            await namespaces.lock_rules(tx)
            stored = await change(tx)
            await limits.regroup(tx, stored, await namespaces.replace_all(tx))

        await committed_once(self._session, regroup)
        await retried(lambda: namespaces.notice_workers(self._session), deadline=30)
        await retried(self._fill, deadline=30)

    async def _fill(self) -> None:
        """Admit the executions for which there is room now, instead of waiting until an executor does it."""
        woken = True
        while woken:
            async with self._session.transaction() as tx:
                woken = await limits.wake_keys(tx)
            self._publisher.publish(tx.staged)


async def _missing(db: Session | Transaction, ref: str) -> NotFound:
    refs = await limits.refs(db)
    hint = f"Did you mean {near!r}?" if (near := nearest(ref, refs)) else None
    return NotFound(
        f"no limit {ref!r}",
        hint=hint
        or "List the limits with `penstock limit list`, or create one with `penstock limit set NAME 3 --scope SCOPE`.",
    )


def _changed(ref: str, current: Mapping[str, Any], options: Mapping[str, Any]) -> Limit:
    """Return the limit with these options. A limit of an action or a task has a ref and a scope that users cannot
    write; both are accepted if unchanged."""
    if not current and not is_ref(ref):
        raise InvalidInput(
            f"{ref!r} is not a valid ref", hint="Write pack.name, in small letters: shop.database."
        )
    fields = {**current, **options, "ref": "by.hand", "scope": options.get("scope", EVERYTHING)}
    try:
        limit = Limit.model_validate({name: value for name, value in fields.items() if value is not None})
    except ValidationError as error:
        faults = problems(error)
        hint = next((p.hint for p in faults if p.hint), None)
        raise InvalidInput("; ".join(map(str, faults)), hint=hint) from None
    scope = limit.scope if "scope" in options else current["scope"]
    return limit.model_copy(update={"ref": ref, "scope": scope})
