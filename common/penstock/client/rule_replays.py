"""The replay of stored events through a rule. Each event starts the rule's action at most once, however often it is replayed."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, Any, Literal
from uuid import UUID

import orjson
from pydantic import Field, WithJsonSchema

from penstock.client.starts import check_instants
from penstock.errors import Conflict, InvalidInput, NotFound
from penstock.language.rules.event_rules import evaluate
from penstock.language.terms.outside_names import check_tenant
from penstock.operate.masking import Masking
from penstock.store.definitions import catalog
from penstock.store.events import bursts, replays, rule_matches
from penstock.store.events.events import CurrentRule, Event
from penstock.store.events.rule_matches import NewEnforcement
from penstock.store.session import clock
from penstock.store.session.committed_once import committed_once
from penstock.store.session.database import Session, Transaction
from penstock.store.upkeep import retention

MAX_EVENTS = 500
"""The maximum number of events that one call replays, in one transaction."""
RETENTION_SLACK = timedelta(hours=1)
"""An event is replayed only if its enforcement will be kept for this time, so that no retention runs beside the replay."""

ReplayOutcome = Literal["started", "would start", "existing", "failed", "no match", "left"]


@dataclass(frozen=True, slots=True)
class ReplayedEvent:
    """The outcome of a rule for a stored event."""

    event_id: UUID
    created_at: Annotated[datetime, Field(description="The instant at which the event was stored.")]
    tenant: str
    outcome: Annotated[
        ReplayOutcome,
        Field(
            description="`started`. `would start`: with `dry_run`. `existing`: the rule had started an execution for the "
            "event before. `failed`. `no match`: the condition does not hold. `left`: skipped, because the event has "
            "not had its first, normal evaluation yet."
        ),
        WithJsonSchema({"type": "string"}),
    ]
    execution_id: Annotated[
        UUID | None,
        Field(
            description="The id of the execution that the rule started, now or before; null: there is none."
        ),
    ] = None
    params: Annotated[
        Any, Field(description="With `dry_run`, the parameters of the execution. Secrets are `***`.")
    ] = None
    error: Annotated[str | None, Field(description="The reason why the rule failed; null: it did not.")] = (
        None
    )


@dataclass(frozen=True, slots=True)
class ReplayPage:
    """The outcomes for a page of events, and the cursor of the next page."""

    items: Annotated[list[ReplayedEvent], Field(description="The outcomes, oldest event first.")]
    next: Annotated[
        UUID | None, Field(description="The value of `cursor` for the next page; null on the last page.")
    ]


@dataclass(frozen=True, slots=True)
class Replay:
    """The selection of the events that a rule sees again."""

    rule: str
    since: datetime
    until: datetime | None = None
    tenants: Collection[str] | None = None
    dry_run: bool = False
    cursor: UUID | None = None
    limit: int = 200


async def replay(session: Session, replay: Replay) -> tuple[Transaction, ReplayPage]:
    """Replay the next events through the current version of a rule. Return the transaction with its messages, and the
    outcomes. Raises NotFound if the rule does not exist, Conflict for a disabled rule, and InvalidInput for a rule with
    a window or a debounce time."""
    _check(replay)
    return await committed_once(session, lambda tx: _replay(tx, replay))


def _check(replay: Replay) -> None:
    check_instants(None, since=replay.since, until=replay.until)
    for tenant in replay.tenants or ():
        check_tenant(tenant)
    if isinstance(replay.limit, bool) or not 1 <= replay.limit <= MAX_EVENTS:
        raise InvalidInput(
            f"the limit is not from 1 to {MAX_EVENTS}", hint="Continue with the page's `next`."
        )


async def _replay(tx: Transaction, replay: Replay) -> ReplayPage:
    rule = await _rule(tx, replay)
    until = replay.until or await clock.now(tx)
    await _check_retention(tx, replay.since)
    stored = await replays.stored(
        tx,
        rule.trigger,
        replay.since,
        until,
        tenants=replay.tenants,
        cursor=replay.cursor,
        limit=replay.limit,
    )
    ids = [event.id for event, _ in stored]
    past = await replays.outcomes(tx, rule.ref, ids)
    compiled = await rule_matches.compiled(tx, [rule])
    hits: list[rule_matches.Hit] = []
    for event, is_unmatched in stored:
        if event.id in past or is_unmatched:
            continue
        verdict = evaluate(compiled[rule.definition_id], event, orjson.loads(event.payload))
        if verdict.matched:
            hits.append((event, rule, verdict))
    new = {match.event_id: match for match in await rule_matches.enforcements(tx, hits, compiled)}
    if new and not replay.dry_run:
        await rule_matches.record(tx, list(new.values()))
        past = await replays.outcomes(tx, rule.ref, ids)
    masking = await Masking.load(tx)
    items = [
        _replayed(event, is_unmatched, past.get(event.id), new.get(event.id), masking, rule.action)
        for event, is_unmatched in stored
    ]
    if not replay.dry_run:
        tx.tell(events=len(items), started=[item.outcome for item in items].count("started"))
    return ReplayPage(items, ids[-1] if len(ids) == replay.limit else None)


def _replayed(
    event: Event,
    is_unmatched: bool,
    past: replays.StoredMatch | None,
    match: NewEnforcement | None,
    masking: Masking,
    action: str,
) -> ReplayedEvent:
    """Return the outcome for an event: what is stored (`past`), or else the match of this replay."""
    names = (event.id, event.created_at, event.tenant)
    if past is not None and past.error is not None:
        return ReplayedEvent(*names, "failed", error=past.error)
    if past is not None:
        is_new = match is not None and past.execution_id == match.id
        return ReplayedEvent(*names, "started" if is_new else "existing", past.execution_id)
    if match is None:
        return ReplayedEvent(*names, "left" if is_unmatched else "no match")
    if match.error is not None:
        return ReplayedEvent(*names, "failed", error=match.error)
    return ReplayedEvent(
        *names, "would start", params=masking.parameters(action, orjson.loads(match.params or "null"))
    )


async def _rule(tx: Transaction, replay: Replay) -> CurrentRule:
    """Return the current version of the rule. Raises NotFound if the rule does not exist, and InvalidInput if it is for
    windows or bursts. Raises Conflict if it is disabled, unless the replay is dry."""
    rows = await catalog.current(tx, ["rule"], [replay.rule])
    if not rows:
        otherwise = "List the rules with: penstock rules list"
        raise NotFound(
            f"no rule {replay.rule!r}", hint=await catalog.hint(tx, ["rule"], replay.rule, otherwise)
        )
    body = orjson.loads(rows[0].body)
    for option, noun in (("window", "windows"), ("debounce", "bursts")):
        if body.get(option):
            raise InvalidInput(
                f"{replay.rule} is for {noun} of events. Such rules are not replayed",
                hint="`penstock test RULE --events FILE` plays a list of events without a start.",
            )
    if not rows[0].enabled and not replay.dry_run:
        raise Conflict(
            f"rule {replay.rule} is disabled, and starts nothing",
            hint=f"Enable it (penstock rules enable {replay.rule}), or replay it as a dry run.",
        )
    return (await bursts.rules(tx, [rows[0].definition_id]))[rows[0].definition_id]


async def _check_retention(tx: Transaction, since: datetime) -> None:
    """Raise InvalidInput if an enforcement of an event since then may have been deleted: the event could start twice."""
    days = retention.enforcement_days(tx.settings)
    oldest = await clock.now(tx) - timedelta(days=days) + RETENTION_SLACK
    if since < oldest:
        raise InvalidInput(
            f"the outcomes of rules are kept for {days} days, and since is earlier",
            hint=f"Give {oldest:%Y-%m-%dT%H:%MZ} or later.",
        )
