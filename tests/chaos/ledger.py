"""The outcomes of all submitted work, counted from the database when all has come to rest."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID

import orjson

from penstock.language.moves import COMPLETED, FINAL
from penstock.store.session.database import Session
from penstock.store.upkeep.invariants import INVARIANTS
from tests.chaos import at_most_once, lines, recorded_steps, work
from tests.chaos.load import Intent
from tests.chaos.machines import Spread
from tests.chaos.nemesis import Happened
from tests.kit import lock_order

READY_WITHIN = 10.0
"""Seconds in which every replica has to consume messages once nothing is broken any more."""

EXECUTIONS = """
select e.id, e.status, e.finished_at is not null as final, r.result::text as result, e.reason
from execution e left join result r on r.execution_id = e.id where e.id = any($1::uuid[])
"""
REACTIONS = """
select n.event_id, n.execution_id as id from enforcement n where n.event_id = any($1::uuid[])
"""
CHILDREN = """
select e.parent, count(*) as children, count(distinct (e.task, e.item)) as tasks,
    count(*) filter (where e.status <> 'completed') as failed
from execution e where e.parent = any($1::uuid[]) group by e.parent
"""
FIRES = """
select f.schedule, count(*) as fires, count(distinct f.execution_id) as executions,
    extract(epoch from max(f.due_at) - min(f.due_at))::integer + 1 as instants,
    array_agg(f.execution_id) as ids
from fire f group by f.schedule
"""
SURPLUS_FIRES = """
select count(*) as count from payload p where p.origin ? 'schedule'
    and not exists (select from fire f where f.execution_id = p.execution_id)
"""
FINISHED_TWICE = """
select count(*) as count from (
    select from history where new = any($1::text[]) group by execution_id having count(*) > 1
) x
"""
ATTEMPTS = """
select coalesce(sum(e.attempt), 0)::bigint as run, count(*) filter (where e.status = 'completed') as completed,
    coalesce(sum(e.recoveries), 0)::bigint as recovered, max(e.recoveries) as most, count(*) as executions
from execution e join namespace n on n.id = e.namespace_id where n.kind = 'action'
"""
OUTCOMES = "select outcome, count(*) as count from attempt group by outcome order by outcome"
RECOVERIES = """
select p.name, extract(epoch from a.at)::float8 as lost, extract(epoch from min(h.at))::float8 as again
from attempt a
join process p on p.id::text = a.worker
join history h on h.execution_id = a.execution_id and h.new = 'running' and h.attempt = a.attempt + 1
where a.outcome = 'lost' group by a.execution_id, a.attempt, p.name, a.at
"""
COMPLETIONS = "select distinct extract(epoch from at)::float8 as at from history where new = 'completed'"


@dataclass
class Ledger:
    submitted: int = 0
    final: int = 0
    right: int = 0
    wrong: list[str] = field(default_factory=list)
    lost: int = 0
    finished_twice: int = 0
    attempts: int = 0
    unaccounted: int = 0
    recovered: int = 0
    most_recoveries: int = 0
    outcomes: dict[str, int] = field(default_factory=dict)
    duplicate_children: int = 0
    duplicate_reactions: int = 0
    duplicate_fires: int = 0
    fires: int = 0
    begun_again: dict[int, int] = field(default_factory=dict)
    """Pieces of what must run at most once, and how often they began."""
    given_up: list[str] = field(default_factory=list)
    """What must run at most once and was given up; `for_nothing`: no fault gave a worker a reason to lose it."""
    for_nothing: bool = False
    unknown: int = 0
    """Attempts whose worker never heard that it had claimed them."""
    overtaken: list[str] = field(default_factory=list)
    """Who stood in line, and by whom they were overtaken that were submitted later."""
    unready: list[str] = field(default_factory=list)
    """Replicas that do not consume messages, though nothing is broken any more."""
    called_again: list[str] = field(default_factory=list)
    """Steps of durable functions that an attempt called although they were recorded, or that are recorded wrongly."""
    deadlocks: int = 0
    out_of_order: list[str] = field(default_factory=list)
    """Where the locks of keys were taken out of their order, which is a deadlock to come."""
    violations: dict[str, int] = field(default_factory=dict)
    losses: list[float] = field(default_factory=list)
    """Seconds from the kill of a worker until what it had was taken back."""
    recoveries: list[float] = field(default_factory=list)
    """Seconds from the kill of a worker until what it had was running again."""
    resumptions: list[float] = field(default_factory=list)
    """Seconds from the repair of the last fault until the next execution completed."""

    @property
    def faults_found(self) -> dict[str, int]:
        """Return the counts that must be nought, and are not."""
        counts = {
            "lost": self.lost,
            "wrong": len(self.wrong),
            "doubly finished": self.finished_twice,
            "unaccounted attempts": self.unaccounted,
            "duplicate children": self.duplicate_children,
            "duplicate reactions": self.duplicate_reactions,
            "duplicate fires": self.duplicate_fires,
            "not final": self.submitted - self.final,
            "begun again": len(self.begun_again),
            "given up for nothing": len(self.given_up) if self.for_nothing else 0,
            "unknown to their worker": self.unknown,
            "overtaken": len(self.overtaken),
            "steps called again": len(self.called_again),
            "replicas not ready": len(self.unready),
            "deadlocks": self.deadlocks,
            "locks out of order": len(self.out_of_order),
            **self.violations,
        }
        return {name: count for name, count in counts.items() if count}


async def settle(cluster: Spread, intent: Intent, faults: Sequence[Happened]) -> Ledger:
    """Compare what is with what was meant."""
    session, ledger = cluster.house.session, Ledger()
    ledger.unready = await cluster.unready(READY_WITHIN)
    ledger.overtaken = await lines.overtaken(session, intent)
    ledger.called_again = await recorded_steps.called_again(session, cluster.calls, intent.stories)
    ledger.out_of_order = await lock_order.out_of_order(session)
    ledger.deadlocks = cluster.logged("deadlock detected")
    expected = dict(intent.results)
    await _reactions(session, intent, expected, ledger)
    await _fires(session, expected, ledger)
    await _outcomes(session, expected, ledger)
    await _at_most_once(session, cluster.starts, intent, ledger)
    ledger.for_nothing = all(fault.spares for fault in faults)
    await _children(session, intent, ledger)
    await _attempts(session, ledger)
    [row] = await session.fetch(FINISHED_TWICE, sorted(FINAL))
    ledger.finished_twice = row["count"]
    for invariant in INVARIANTS:
        rows = await session.fetch(f"select count(*) as count from ({invariant.violations}) x")
        ledger.violations[f"{invariant.name} {invariant.says.partition(':')[0]}"] = rows[0]["count"]
    await _times(session, cluster.killed, faults, ledger)
    return ledger


async def _reactions(session: Session, intent: Intent, expected: dict[UUID, object], ledger: Ledger) -> None:
    """Each event with an even number has one execution."""
    even = {id: n for id, n in intent.events.items() if n % 2 == 0}
    counts: Counter[UUID] = Counter()
    for row in await session.fetch(REACTIONS, list(intent.events)):
        counts[row["event_id"]] += 1
        if row["event_id"] in even:
            expected[row["id"]] = even[row["event_id"]] + 4
        else:
            ledger.duplicate_reactions += 1
    missing = len(even.keys() - counts.keys())
    ledger.submitted += missing
    ledger.lost += missing
    ledger.duplicate_reactions += sum(count - 1 for count in counts.values())


async def _fires(session: Session, expected: dict[UUID, object], ledger: Ledger) -> None:
    """Each instant of a schedule, from its first fire to its last, has one execution."""
    for row in await session.fetch(FIRES):
        ledger.fires += row["fires"]
        ledger.lost += row["instants"] - row["fires"]
        ledger.duplicate_fires += row["fires"] - row["executions"]
        expected |= dict.fromkeys(row["ids"], "ticked")
    [row] = await session.fetch(SURPLUS_FIRES)
    ledger.duplicate_fires += row["count"]


async def _outcomes(session: Session, expected: dict[UUID, object], ledger: Ledger) -> None:
    ledger.submitted += len(expected)
    rows = {row["id"]: row for row in await session.fetch(EXECUTIONS, list(expected))}
    for id, right in expected.items():
        row = rows.get(id)
        if row is None:
            ledger.lost += 1
            continue
        ledger.final += row["final"]
        if row["status"] == COMPLETED and orjson.loads(row["result"]) == right:
            ledger.right += 1
        elif row["final"]:
            ledger.wrong.append(f"{id} {row['status']} {row['result']} (right: {right}) {row['reason']}")


async def _at_most_once(session: Session, starts: Path, intent: Intent, ledger: Ledger) -> None:
    ends = await at_most_once.ended(session, intent)
    ledger.submitted += len(intent.once)
    ledger.final += len(ends.right) + len(ends.given_up) + len(ends.wrong)
    ledger.right += len(ends.right)
    ledger.given_up = ends.given_up
    ledger.wrong += ends.wrong
    ledger.begun_again = at_most_once.begun_again(starts)
    ledger.unknown = await at_most_once.unknown_to_their_worker(session)


async def _children(session: Session, intent: Intent, ledger: Ledger) -> None:
    rows = await session.fetch(CHILDREN, list(intent.flows))
    for row in rows:
        ledger.final += row["children"] - row["failed"]
        ledger.right += row["children"] - row["failed"]
        ledger.duplicate_children += row["children"] - row["tasks"]
        if row["tasks"] > work.CHILDREN:
            ledger.duplicate_children += row["tasks"] - work.CHILDREN
    ledger.submitted += len(intent.flows) * work.CHILDREN


async def _attempts(session: Session, ledger: Ledger) -> None:
    """Each attempt either completed its execution, or has a row that says how it ended."""
    [row] = await session.fetch(ATTEMPTS)
    ledger.outcomes = {r["outcome"]: r["count"] for r in await session.fetch(OUTCOMES)}
    ledger.attempts, ledger.recovered = row["run"], row["recovered"]
    ledger.most_recoveries = row["most"] or 0
    ledger.unaccounted = abs(row["run"] - row["completed"] - sum(ledger.outcomes.values()))


async def _times(
    session: Session, killed: Sequence[tuple[str, float]], faults: Sequence[Happened], ledger: Ledger
) -> None:
    for row in await session.fetch(RECOVERIES):
        kills = [at for name, at in killed if name == row["name"] and at <= row["lost"]]
        if kills:
            ledger.losses.append(row["lost"] - max(kills))
            ledger.recoveries.append(row["again"] - max(kills))
    completions = sorted(row["at"] for row in await session.fetch(COMPLETIONS))
    for instant in _peace(faults):
        index = bisect_right(completions, instant)
        if index < len(completions):
            ledger.resumptions.append(completions[index] - instant)


def _peace(faults: Sequence[Happened]) -> Iterator[float]:
    """The instants at which nothing was broken any more."""
    until: float | None = None
    for fault in sorted(faults, key=lambda fault: fault.began):
        if until is not None and fault.began > until:
            yield until
        until = max(until or fault.ended, fault.ended)
    if until is not None:
        yield until
