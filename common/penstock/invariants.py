"""The invariants as queries on a live database: what each finds is a violation, with the offending ids."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.database import Session

SETTLED = "interval '30 seconds'"
"""What is younger may be between two transactions that are both fine."""


@dataclass(frozen=True, slots=True)
class Invariant:
    name: str
    says: str
    violations: str


@dataclass(frozen=True, slots=True)
class Finding:
    name: str
    says: str
    violations: Sequence[str]


INVARIANTS = (
    Invariant(
        "I1",
        "one winner: an attempt is claimed once",
        """select execution_id::text from history where new = 'running' and attempt > 0
           group by execution_id, attempt having count(*) > 1""",
    ),
    Invariant(
        "I2",
        "fence: what runs has an owner, and what is requested has none",
        """select e.id::text from execution e join namespace n on n.id = e.namespace_id
           where n.queue like 'work.%' and (e.status in ('running', 'canceling')) <> (e.claim is not null)
               and e.finished_at is null""",
    ),
    Invariant(
        "I3",
        "limit: nothing was admitted while a key was at its limit",
        "select execution_id::text from admission where held > allowed",
    ),
    Invariant(
        "I3s",
        "slots are held by executions that are open, or about to be released",
        """select s.execution_id::text from slot s left join execution e on e.id = s.execution_id
           where e.id is null or e.finished_at is not null""",
    ),
    Invariant(
        "I4",
        "order: waiters of a key were admitted first in, first out within a priority",
        """select execution_id::text from (
               select a.*, max(ready_at) over (partition by key, priority order by seq
                   rows between unbounded preceding and 1 preceding) as earlier
               from admission a join concurrency_limit l on l.id = split_part(a.key, ':', 1)::integer
               where l.fair = '{}' and not exists (
                   select from admission b where b.execution_id = a.execution_id and b.attempt = a.attempt and b.key <> a.key)
           ) x where ready_at < earlier and not exists (
               -- it became a waiter only after the later one had been admitted
               select from history h where h.execution_id = x.execution_id and h.new = 'queued'
                   and h.attempt = x.attempt - 1 and h.at > (
                       select max(b.admitted_at) from admission b
                       where b.key = x.key and b.priority = x.priority and b.seq < x.seq and b.ready_at = x.earlier))""",
    ),
    Invariant(
        "I5",
        "no lost wake-up: no waiter stands before a key with room",
        """select distinct w.key from waiter w join concurrency_limit l on l.id = w.limit_id
           where cardinality(w.keys) = 1 and l.rate_count is null
               and not exists (select from wake k where k.key = w.key)
               and (select count(*) from slot s where s.key = w.key) < case when l.active then l.max else 2147483647 end""",
    ),
    Invariant(
        "I6",
        "one execution for each task of a workflow",
        """select parent::text from execution where parent is not null group by parent, task, item having count(*) > 1""",
    ),
    Invariant(
        "I7",
        "one execution for each enforcement",
        """select n.execution_id::text from enforcement n where n.status = 'executed'
               and not exists (select from execution e where e.id = n.execution_id)
               and not exists (select from archive a where a.id = n.execution_id)""",
    ),
    Invariant(
        "I8",
        "outbox: what was staged is published, or is being tried",
        f"""select id::text from outbox where due_at < clock_timestamp() - {SETTLED} * 20 and tries = 0
               and queue not like 'work.%'""",
    ),
    Invariant(
        "I9",
        "final is final: nothing moved on from a final status",
        """select execution_id::text from history
           where old in ('completed', 'failed', 'timeout', 'cancelled', 'abandoned', 'skipped')""",
    ),
    Invariant(
        "I10a",
        "everything open is found by recovery: it is live, or waits for a slot",
        """select e.id::text from execution e where e.finished_at is null
               and not exists (select from live l where l.execution_id = e.id)
               and not exists (select from waiter w where w.execution_id = e.id)""",
    ),
    Invariant(
        "I10b",
        "only what is open is live",
        """select l.execution_id::text from live l left join execution e on e.id = l.execution_id
           where e.id is null or e.finished_at is not null or e.status = 'queued'""",
    ),
    Invariant(
        "I10c",
        "what ended has an outcome",
        """select e.id::text from execution e where e.finished_at is not null
               and not exists (select from result r where r.execution_id = e.id)""",
    ),
    Invariant(
        "moves",
        "every move was legal",
        """select h.execution_id::text from history h where h.old is not null
               and not exists (select from legal_move l where l.old = h.old and l.new = h.new)""",
    ),
)


async def check(session: Session) -> list[Finding]:
    """Run every checker query, each in a snapshot of its own. A healthy system has no violations."""
    findings: list[Finding] = []
    for invariant in INVARIANTS:
        rows = await session.fetch(f"{invariant.violations} limit 20")
        findings.append(Finding(invariant.name, invariant.says, [row[0] for row in rows]))
    return findings
