"""What can be done with limits while work waits under them, for the client and the command line."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from difflib import get_close_matches
from typing import Any, TypeVar

from pydantic import ValidationError

from penstock.errors import InvalidInput, NotFound
from penstock.language.definitions.limit import EVERYTHING, Limit
from penstock.language.definitions.refs import is_ref
from penstock.language.options import did_you_mean, problems
from penstock.messaging.outbox import Publisher
from penstock.store import limits, namespaces
from penstock.store.database import Row, Session, Transaction, backoff, retried

T = TypeVar("T")

WAKE = "select * from wake_keys(100)"
LIST = """
select c.ref, l.scope, nullif(l.max, 2147483647) as max, l.by, l.fair, l.when_full, l.max_waiting, l.rate_count,
    l.rate_seconds, l.while_waiting, c.kind = 'limit_by_hand' as by_hand, d.body::text as declared,
    coalesce(h.held, 0) as held, coalesce(s.waiting, 0) as waiting,
    (select count(*) from namespace n where l.id = any (n.limits)) as covers
from catalog c
join concurrency_limit l on l.ref = c.ref and l.definition_id = c.definition_id
left join catalog o on o.kind = 'limit' and o.ref = c.ref
left join definition d on d.id = o.definition_id
left join (select limit_id as id, count(*) as held from slot group by 1) h on h.id = l.id
left join (
    select gate_limit as id, sum(n)::bigint as waiting
    from lane cross join lateral (select count(*) as n from waiter where waiter.lane = lane.id) w
    where gate_kind = 'limit' group by 1
) s on s.id = l.id
where ($1::text is null or c.ref = $1) and (c.kind = 'limit_by_hand'
    or c.kind = 'limit' and not exists (select from catalog b where b.kind = 'limit_by_hand' and b.ref = c.ref))
order by c.ref
"""
REFS = "select distinct ref from catalog where kind in ('limit', 'limit_by_hand')"


async def in_force(session: Session, ref: str | None = None) -> list[Row]:
    """All limits that are in force, or this one. For the columns see `Limits`."""
    return await retried(lambda: session.fetch(LIST, ref), deadline=30)


class Limits:
    """The limits of an installation. Rows have `ref`, `scope`, `max`, `by`, `fair`, `when_full`, `max_waiting`,
    `rate_count`, `rate_seconds`, `while_waiting`; `by_hand`: set here, and `declared`: what the definitions say (JSON
    text), if anything; how many executions hold a slot (`held`) and wait for one (`waiting`); and how many namespaces
    it `covers`: those of actions that were started at least once."""

    def __init__(self, session: Session, publisher: Publisher) -> None:
        self._session = session
        self._publisher = publisher

    async def all(self) -> list[Row]:
        """All that are in force, by ref."""
        return await in_force(self._session)

    async def get(self, ref: str) -> Row:
        """Raises NotFound."""
        rows = await in_force(self._session, ref)
        if not rows:
            raise await _missing(self._session, ref)
        return rows[0]

    async def set(self, ref: str, **options: Any) -> Row:
        """Change a limit, or make one, with the options of `Limit`; what is not given stays as it is, and None takes
        an option away. It is in force from now on, whatever is applied, until it is removed: what has room starts at
        once; where fewer are allowed than hold a slot, the next one starts when enough have ended. Raises NotFound for
        one that does not exist and is given no `scope`, InvalidInput."""

        async def change(tx: Transaction) -> list[limits.Stored]:
            before = (await limits.versions(tx, ref)).in_force
            if before is None and options.get("scope") is None:
                raise await _missing(tx, ref)
            document = _changed(ref, before[1] if before else {}, options).document()
            return [await limits.put_by_hand(tx, ref, document.digest, document.body)]

        await self._change(change)
        return await self.get(ref)

    async def remove(self, ref: str) -> Row | None:
        """Take back what was set by hand: what is declared is in force again, and returned. One that is only declared
        is gone until definitions that declare it are applied again. What holds its slots goes on, and what waits for
        nothing else starts. Raises NotFound."""

        async def change(tx: Transaction) -> list[limits.Stored]:
            found = await limits.versions(tx, ref)
            if found.in_force is None:
                raise await _missing(tx, ref)
            await limits.drop(tx, limits.BY_HAND if found.by_hand else limits.DECLARED, ref)
            if found.by_hand and found.declared:
                return [await limits.store(tx, ref, *found.declared)]
            return []

        await self._change(change)
        rows = await in_force(self._session, ref)
        return rows[0] if rows else None

    async def _change(self, change: Callable[[Transaction], Awaitable[list[limits.Stored]]]) -> None:
        async for attempt in backoff(deadline=30):
            with attempt:
                async with self._session.transaction() as tx:
                    await tx.fetch(namespaces.ALONE)
                    stored = await change(tx)
                    await limits.regroup(tx, stored, await namespaces.replace_all(tx))
        await retried(lambda: self._session.fetch(namespaces.NOTICE), deadline=30)
        await retried(self._fill, deadline=30)

    async def _fill(self) -> None:
        """Start what has room now, and do not wait until a replica comes to it."""
        woken = True
        while woken:
            async with self._session.transaction() as tx:
                woken = bool(await tx.stage_alone(WAKE))
            self._publisher.publish(tx.staged)


async def _missing(db: Session | Transaction, ref: str) -> NotFound:
    known = [row["ref"] for row in await db.fetch(REFS)]
    hint = did_you_mean(ref, known) if get_close_matches(ref, known, n=1) else None
    return NotFound(
        f"no limit {ref!r}",
        hint=hint or "`penstock limit list` shows them. To make one, say what it covers: --scope shop.",
    )


def _changed(ref: str, before: Mapping[str, Any], options: Mapping[str, Any]) -> Limit:
    """The limit with these options. Its ref and, if it stays, its scope may be of a form that only those have which came
    with an action or a task."""
    if not before and not is_ref(ref):
        raise InvalidInput(f"{ref!r} is no ref", hint="Write pack.name, in small letters: shop.database.")
    given = {**before, **options, "ref": "by.hand", "scope": options.get("scope", EVERYTHING)}
    try:
        made = Limit.model_validate({name: value for name, value in given.items() if value is not None})
    except ValidationError as error:
        found = problems(error)
        hint = next((p.hint for p in found if p.hint), None)
        raise InvalidInput("; ".join(map(str, found)), hint=hint) from None
    scope = made.scope if "scope" in options else before["scope"]
    return made.model_copy(update={"ref": ref, "scope": scope})
