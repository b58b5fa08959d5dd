"""Dead letters: list and count them, show one, replay them, or drop them.

The replay of an event from outside checks it again and stores it once, under the same message id. The replay of one of
our envelopes stages it again. The same transaction deletes the letter, so that each is replayed once. Work of an ended
execution is not replayed, since it would change nothing.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from uuid import UUID

import orjson

from penstock.client import answers
from penstock.client.bulk import BulkOutcome
from penstock.client.client import Client
from penstock.errors import Conflict, NotFound, PenstockError, Undecodable
from penstock.language.moves import FINAL, SCHEDULED
from penstock.language.terms.event_sources import of_message
from penstock.language.terms.producers import check_producer
from penstock.language.terms.redaction import MASK
from penstock.messaging import envelope
from penstock.messaging.transports import UNREADABLE
from penstock.operate.masking import Masking
from penstock.run.json_integers import parsed
from penstock.store.definitions import catalog
from penstock.store.events import events
from penstock.store.events.events import NewEvent
from penstock.store.executions import executions
from penstock.store.outbox import dead_letters, outbox, queues
from penstock.store.outbox.dead_letters import (
    APP,
    TRIGGER,
    USER,
    DeadLetter,
    DeadLetterSummary,
    LetterCount,
    LetterFilter,
    StoredLetter,
)
from penstock.store.session import clock
from penstock.store.session.committed_once import committed_once
from penstock.store.session.database import Session, Transaction, retried
from penstock.store.session.storable import REPLACEMENT

BATCH = 200
"""The maximum number of letters in one transaction."""
ENVELOPE = 20
"""The maximum number of ids in one message that is staged again."""
OUR_HEADERS = ("x-penstock-", "x-death", "x-first-death-", "x-last-death-", "x-delivery-count")
READ_HEADERS = frozenset({"tenant", "traceparent", "tracestate"})
"""Headers besides OUR_HEADERS that may be shown, since Penstock reads them."""
BATCH_BYTES = 8 * 1024 * 1024
"""The size of the bodies, in bytes, above which a transaction takes fewer letters."""


async def newest(
    session: Session, filters: LetterFilter = LetterFilter(), *, limit: int = 50, before: UUID | None = None
) -> list[DeadLetterSummary]:
    """Return dead letters, the latest to arrive first. `before` is the last letter of the previous page. Raises
    NotFound if that letter is gone."""
    if before is not None:
        await find(session, before)
    return await dead_letters.newest(session, filters, limit, before)


async def counts(session: Session, filters: LetterFilter = LetterFilter()) -> list[LetterCount]:
    """Count the dead letters of each queue and reason, the largest count first."""
    return await dead_letters.counts(session, filters)


async def find(session: Session, id: UUID) -> DeadLetter:
    """Return a dead letter with its headers, and its body as text. Raises NotFound if no dead letter has this id."""
    letter = await dead_letters.find(session, id)
    if letter is None:
        raise NotFound(f"no dead letter {id}", hint="`penstock dead-letters list` lists the dead letters.")
    return letter


async def shown(session: Session, id: UUID) -> DeadLetter:
    """Return a dead letter with secrets masked, as the schema of its trigger marks them. If the trigger is unknown, the
    marks of all schemas apply. Only headers that Penstock reads are shown, since a header of a foreign program may
    contain a key. Raises NotFound if no dead letter has this id."""
    letter = await find(session, id)
    headers = {name: value if _is_ours(name) else MASK for name, value in letter.headers.items()}
    trigger = letter.headers.get(TRIGGER)
    if trigger is None:
        return replace(letter, headers=headers)
    masking = await Masking.load(session)
    triggers = await catalog.current(session, ["trigger"], [str(trigger)])
    text = masking.text if triggers else masking.text_of_unknown
    return replace(letter, headers=headers, body=text(str(trigger), letter.body))


def _is_ours(header: str) -> bool:
    return header.startswith(OUR_HEADERS) or header in READ_HEADERS


async def drop(session: Session, filters: LetterFilter, *, dry_run: bool = False) -> int:
    """Delete the dead letters that match the filter. Return their number, or with `dry_run` the number that would be
    deleted."""
    if dry_run:
        return await dead_letters.count(session, filters)
    dropped = 0
    while True:
        async with session.transaction() as tx:
            gone = await dead_letters.drop_batch(tx, filters, BATCH)
            if gone:
                tx.tell(dropped=len(gone))
        if not gone:
            return dropped
        dropped += len(gone)


async def replay(
    client: Client, filters: LetterFilter, *, dry_run: bool = False
) -> AsyncIterator[BulkOutcome]:
    """Replay dead letters: return each to where it came from, and delete it here. A message that fails again is
    dead-lettered again.

    A letter that cannot be replayed stays, and its outcome has the reason. With `dry_run` nothing changes.
    """
    cursor: UUID | None = None
    until = await clock.now(
        client.session
    )  # what is dead-lettered again is not replayed again by the same call
    while letters := await dead_letters.batch(
        client.session, filters, cursor, until, limit=BATCH, max_bytes=BATCH_BYTES
    ):
        ready = await retried(partial(_ready, client, letters), deadline=30)
        if dry_run:
            outcomes = [_outcome(letter.id, ready[letter.id]) for letter in letters]
        else:
            tx, outcomes = await committed_once(client.session, partial(_put_back, ready=ready))
            client.publish_staged(tx)
        for outcome in outcomes:
            yield outcome
        cursor = letters[-1].id


@dataclass(frozen=True, slots=True)
class _Staging:
    """One of our envelopes, as it will be staged: its queue and its ids. For work, only executions that wait for a worker
    are staged: `queues` has the ids of each route on which they wait now."""

    queue: str
    ids: list[UUID]
    queues: Mapping[str, list[UUID]]

    def result(self) -> str:
        """Return the effect of the replay, for people."""
        if not self.queues:
            return "nothing to send: its executions do not wait for a worker any more"
        places = [f"{len(ids)} on {queue}" for queue, ids in self.queues.items()]
        return f"{', '.join(places)}; taken within seconds"


_Ready = NewEvent | _Staging | PenstockError
"""The form in which a letter is replayed, or the reason why it cannot be."""


async def _ready(client: Client, letters: Sequence[StoredLetter]) -> dict[UUID, _Ready]:
    ready: dict[UUID, _Ready] = {}
    for letter in letters:
        try:
            _check_whole(letter)
            event = letter.queue == queues.EVENT_RECEIVED
            ready[letter.id] = await _event(client, letter) if event else _staging(letter)
        except PenstockError as error:
            ready[letter.id] = error
    work = {
        id: item for id, item in ready.items() if isinstance(item, _Staging) and queues.is_work(item.queue)
    }
    matched = {
        id: item
        for id, item in ready.items()
        if isinstance(item, _Staging) and item.queue == queues.EVENT_CREATED
    }
    stored = await events.stored(client.session, [id for item in matched.values() for id in item.ids])
    missing = {id: _missing(item.ids[0]) for id, item in matched.items() if stored.isdisjoint(item.ids)}
    rows = await executions.find(client.session, [id for item in work.values() for id in item.ids])
    unfinished = {row.id for row in rows if row.status not in FINAL}
    refusals = {id: _ended(item.ids[0]) for id, item in work.items() if unfinished.isdisjoint(item.ids)}
    # The route of an action may have changed since, and a queue without workers is never emptied.
    routes = {row.id: row.queue for row in rows if row.status == SCHEDULED and row.queue is not None}
    placed = {id: replace(item, queues=_by_route(item.ids, routes)) for id, item in work.items()}
    return ready | placed | refusals | missing


def _by_route(ids: Sequence[UUID], routes: Mapping[UUID, str]) -> dict[str, list[UUID]]:
    places: dict[str, list[UUID]] = {}
    for id in ids:
        if id in routes:
            places.setdefault(routes[id], []).append(id)
    return places


def _check_whole(letter: StoredLetter) -> None:
    """Raise Conflict if the letter does not have all of its message, or if there is nothing to replay."""
    if letter.cut_from is not None and letter.body == b"":
        raise Conflict(
            "its event was stored on arrival, and the letter only records this",
            hint="Do not publish it again. `penstock doctor` names the policy of the broker that ended the message. "
            "Remove the policy, and drop this letter.",
        )
    if letter.cut_from is not None:
        raise Conflict(
            f"only the beginning of its {letter.cut_from:,} bytes was kept",
            hint="Publish the event again at its source, and drop this letter.",
        )


async def _event(client: Client, letter: StoredLetter) -> NewEvent:
    trigger = letter.headers.get(TRIGGER)
    if trigger is None:
        raise Conflict(
            "it is not known which trigger this event was for", hint="Publish it again at its source."
        )
    if UNREADABLE in letter.headers:
        raise Conflict(
            "the properties of its message could not be read, such as its tenant and its message id",
            hint="Publish the event again at its source, and drop this letter.",
        )
    for name, value in (("message id", letter.message_id), ("app id", letter.headers.get(APP))):
        if REPLACEMENT in str(value):
            raise Conflict(
                f"the {name} holds U+FFFD in the place of text that cannot be stored: it would be another event",
                hint="Publish the event again at its source with a valid name, and drop this letter.",
            )
    try:
        payload = parsed(letter.body)
    except orjson.JSONDecodeError as error:
        raise Conflict(
            f"the body is not JSON ({error}): it would be refused again",
            hint="Publish the event again at its source, and drop this letter.",
        ) from None
    tenant, user = check_producer(
        client.session.settings.producers, letter.headers.get(USER), str(trigger), letter.headers
    )
    source = of_message(letter.headers.get(APP), user)
    return await client.publishing.checked(
        trigger, payload, key=letter.message_id, tenant=tenant, source=source
    )


def _staging(letter: StoredLetter) -> _Staging:
    if not queues.is_consumed(letter.queue) or letter.queue == queues.DEAD:
        raise Conflict(
            f"no service takes messages from {letter.queue!r}: it would never be handled",
            hint="Only Penstock may publish to its own queues. Drop the letter: `penstock dead-letters drop ID`.",
        )
    try:
        ids = envelope.decode(letter.body).ids
        return _Staging(letter.queue, ids, {letter.queue: ids})
    except Undecodable as error:
        raise Conflict(
            f"{error.message}: it would be refused again",
            hint="Only Penstock may publish to its own queues. Drop the letter: `penstock dead-letters drop ID`.",
        ) from None


def _ended(execution: UUID) -> PenstockError:
    return Conflict(
        f"execution {execution} has ended, it cannot run again",
        hint=f"Start a new one with the same parameters: `penstock rerun {execution}`.",
    )


def _missing(event: UUID) -> PenstockError:
    return Conflict(
        f"event {event} is not stored any more: no rule can be matched with it",
        hint="Publish the event again at its source, and drop this letter.",
    )


async def _put_back(tx: Transaction, ready: Mapping[UUID, _Ready]) -> list[BulkOutcome]:
    """Replay the letters that are still stored. Another transaction may have replayed the others."""
    held = await dead_letters.hold(
        tx, [id for id, item in ready.items() if not isinstance(item, PenstockError)]
    )
    new = {id: item for id, item in ready.items() if isinstance(item, NewEvent) and id in held}
    results: dict[UUID, str | PenstockError] = {}
    if new:
        stored = answers.of_events(
            await events.store(tx, list(new.values()), matched=False), list(new.values())
        )
        for id, answer in zip(new, stored, strict=True):
            results[id] = answer if isinstance(answer, PenstockError) else f"event {answer}"
    staged: dict[str, dict[UUID, None]] = {}  # dicts, so that each id occurs once
    for id, item in ready.items():
        if isinstance(item, PenstockError):
            results[id] = item
        elif isinstance(item, _Staging) and id in held:
            for queue, ids in item.queues.items():
                staged.setdefault(queue, {}).update(dict.fromkeys(ids))
            results[id] = item.result()
    for queue, named in staged.items():
        await outbox.stage(tx, queue, list(named), ENVELOPE)
    await dead_letters.drop(tx, [id for id, result in results.items() if isinstance(result, str)])
    outcomes = [_outcome(id, results[id]) for id in ready if id in results]
    tx.tell(asked=len(ready), put_back=sum(outcome.error is None for outcome in outcomes))
    return outcomes


def _outcome(id: UUID, result: object) -> BulkOutcome:
    if isinstance(result, PenstockError):
        return BulkOutcome(id, error=result)
    return BulkOutcome(id, result if isinstance(result, str) else "it can be replayed")
