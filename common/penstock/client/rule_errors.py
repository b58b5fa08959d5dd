"""The errors of rules on events: list them, and evaluate the rules again once the rule or its action is fixed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal
from uuid import UUID

import orjson
from pydantic import Field, WithJsonSchema

from penstock.client.client import Client
from penstock.language.rules.event_rules import CompiledRule, Match, WindowMatch, evaluate, parameters
from penstock.operate.event_rules import KEPT_DAYS
from penstock.store.events import bursts, events, rule_errors, rule_matches
from penstock.store.events.events import Event
from penstock.store.events.rule_errors import Place, RuleError
from penstock.store.events.rule_matches import NewEnforcement
from penstock.store.session.committed_once import committed_once
from penstock.store.session.database import Session, Transaction

BATCH = 200
"""The maximum number of errors in one transaction."""


@dataclass(frozen=True, slots=True)
class RerunRule:
    """The outcome of evaluating a failed rule for its event again."""

    event_id: UUID
    rule: str
    what: Annotated[
        Literal["started", "failed", "no match", "left"],
        Field(
            description="`started`. `failed`: it failed again. `no match`: the event no longer matches. `left`: it was not "
            "evaluated, for the reason in `error`."
        ),
        WithJsonSchema({"type": "string"}),
    ]
    execution_id: Annotated[
        UUID | None, Field(description="The id of the execution that was started; null: none was.")
    ]
    error: Annotated[str | None, Field(description="The reason for `failed` or `left`; else null.")]


async def newest(session: Session, *, rule: str | None = None, limit: int = 50) -> list[RuleError]:
    """Return the errors of all rules, or of one, newest event first."""
    return await rule_errors.newest(session, rule, limit)


async def rerun(
    client: Client, *, rule: str | None = None, event: UUID | None = None
) -> AsyncIterator[RerunRule]:
    """Evaluate the current versions of failed rules for their events again. `rule` and `event` select some of the
    errors.

    Each rule that now matches starts its action once.
    """
    cursor: Place | None = None
    while True:

        async def step(tx: Transaction, cursor: Place | None = cursor) -> tuple[list[Place], list[RerunRule]]:
            held = await rule_errors.hold(tx, rule, event, cursor, BATCH)
            done = await _look_again(tx, held) if held else []
            if held:
                tx.tell(asked=len(held), started=[rerun.what for rerun in done].count("started"))
            return held, done

        tx, (held, done) = await committed_once(client.session, step)
        client.publish_staged(tx)
        for result in done:
            yield result
        if not held:
            return
        cursor = held[-1]


async def _look_again(tx: Transaction, held: Sequence[Place]) -> list[RerunRule]:
    by_id = {event.id: event for event in await events.read(tx, [id for id, _ in held], days=KEPT_DAYS)}
    current = await events.rules(tx, sorted({event.trigger for event in by_id.values()}))
    by_ref = {rule.ref: rule for rule in current}
    compiled = await rule_matches.compiled(tx, current)
    members = await _members(tx, held)
    unresolved: list[RerunRule] = []
    hits: list[rule_matches.Hit] = []
    unmatched: list[Place] = []
    for id, ref in held:
        event, rule = by_id.get(id), by_ref.get(ref)
        if event is None or rule is None or rule.trigger != event.trigger:
            unresolved.append(RerunRule(id, ref, "left", None, _missing(event)))
            continue
        payload = orjson.loads(event.payload)
        version = compiled[rule.definition_id]
        if (id, ref) in members and (version.window is None) == (members[id, ref][0][2] is None):
            verdict = _of_members(version, event, payload, members[id, ref])
        else:
            verdict = evaluate(version, event, payload)
        if verdict.place is not None:
            unresolved.append(RerunRule(id, ref, "left", None, ALONE))
        elif verdict.matched:
            hits.append((event, rule, verdict))
        else:
            unmatched.append((id, ref))
    enforcements = await rule_matches.enforcements(tx, hits, compiled)
    again: list[tuple[Place, NewEnforcement | None]] = [
        ((enforcement.event_id, enforcement.rule), enforcement) for enforcement in enforcements
    ]
    started = set(await rule_errors.rerun(tx, again + [(place, None) for place in unmatched]))
    for enforcement in enforcements:
        if enforcement.error is None and enforcement.id not in started:
            enforcement.error = "its chain is still cut; `penstock rules errors` names the bound"
    return [
        *(
            RerunRule(enforcement.event_id, enforcement.rule, "failed", None, enforcement.error)
            if enforcement.error is not None
            else RerunRule(enforcement.event_id, enforcement.rule, "started", enforcement.id, None)
            for enforcement in enforcements
        ),
        *(RerunRule(id, ref, "no match", None, None) for id, ref in unmatched),
        *unresolved,
    ]


Member = tuple[Event, Any, int | None]
"""An event of a closed burst with its payload, and the part of the window that it took."""


async def _members(tx: Transaction, held: Sequence[Place]) -> dict[Place, list[Member]]:
    """Return the events of the closed bursts and matches of windows for which a rule failed."""
    members = await bursts.members(tx, held)
    ids = sorted({id for burst in members.values() for id, _ in burst})
    by_id = {
        event.id: (event, orjson.loads(event.payload)) for event in await events.read(tx, ids, days=KEPT_DAYS)
    }
    return {
        place: [(*by_id[id], part) for id, part in burst if id in by_id] for place, burst in members.items()
    }


def _of_members(rule: CompiledRule, event: Event, payload: Any, members: Sequence[Member]) -> Match:
    """Return the parameters of a rule for the events of a closed burst, or of a match of a window."""
    if rule.window is None:
        return parameters(rule, event, payload, [payload for _, payload, _ in members])
    match = WindowMatch([(event, payload, part) for event, payload, part in members if part is not None])
    return parameters(rule, event, payload, match=match)


ALONE = "the rule needs several events, and this event is in no match: publish it again"


def _missing(event: Event | None) -> str:
    if event is None:
        return "the event is older than the events' retention"
    return "the rule is disabled or deleted, or listens to another trigger now"
