"""The invariants as queries on a live database. Each query returns the ids of violations."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.store.session.database import Session

SETTLED = "interval '30 seconds'"
"""The age from which a state counts as a violation: younger rows may be between two correct transactions."""


@dataclass(frozen=True, slots=True)
class Invariant:
    """An invariant: its name, its sentence, and the query that returns the ids of violations."""

    name: str
    says: str
    violations: str


INVARIANTS = (
    Invariant(
        "I1",
        "one winner: each attempt is claimed at most once",
        """select execution_id::text from history where new = 'running' and attempt > 0
           group by execution_id, attempt having count(*) > 1""",
    ),
    Invariant(
        "I2",
        "fence: each running execution has a claim of its worker, and no other open execution has a claim",
        """select e.id::text from execution e join namespace n on n.id = e.namespace_id
           where n.kind = 'action' and (e.status in ('running', 'canceling')) <> (e.claim is not null)
               and e.finished_at is null""",
    ),
    Invariant(
        "I3",
        "limit: no execution was admitted while its key was at its limit",
        # Holders are counted from the instants of admission, and from the history, which says when executions left.
        """with hold as (
               select a.limit_id, a.group_value, a.execution_id, a.seq, a.admitted_at, a.allowed, coalesce(a.cost, 1) as cost,
                   min(h.at) as freed_at
               from admission a left join history h on h.execution_id = a.execution_id and h.at > a.admitted_at
                   and h.new not in ('scheduled', 'running', 'canceling')
               where a.cost is null or not a.rated
               group by a.limit_id, a.group_value, a.execution_id, a.seq, a.admitted_at, a.allowed, a.cost
           ), step as (
               select limit_id, group_value, admitted_at as at, cost as change, execution_id, allowed from hold
               union all select limit_id, group_value, freed_at, -cost, null, null from hold where freed_at is not null
           )
           select execution_id::text from (
               select execution_id, allowed,
                   sum(change) over (partition by limit_id, group_value order by at, change) as holders
               from step
           ) x where holders > allowed
           union select execution_id::text from admission where held > allowed""",
    ),
    Invariant(
        "I3b",
        "budget: reservations never exceed a budget, and the ledger has the cost of each running attempt",
        # A true cost above the reserved one is the only way to spend more than the budget.
        """select b.owner::text from budget b join budget_entry y on y.owner = b.owner and y.unit = b.unit
           group by b.owner, b.unit, b.amount having sum(least(y.reserved, coalesce(y.spent, y.reserved))) > b.amount
           union select s.execution_id::text from slot s
           join concurrency_limit l on l.id = s.limit_id and l.budget = l.id
           left join budget_entry y on y.owner::text = s.group_value and y.unit = l.unit
               and y.execution_id = s.execution_id and y.attempt = s.attempt
           where y.reserved is distinct from s.cost""",
    ),
    Invariant(
        "I3w",
        "costs: the cost of a slot is the cost in the admission log",
        """select s.execution_id::text from slot s
           join execution e on e.id = s.execution_id and e.attempt <= s.attempt and e.status in ('scheduled', 'running')
           join admission a on a.limit_id = s.limit_id and a.group_value = s.group_value
               and a.execution_id = s.execution_id and a.attempt = s.attempt
           where s.cost is distinct from a.cost""",
    ),
    Invariant(
        "I3k",
        "breaker: while a breaker is open, at most the allowed number of calls that were admitted since then are running",
        """select b.limit_id || ' ' || b.group_value from breaker b
           join slot s on s.limit_id = b.limit_id and s.group_value = b.group_value and s.admitted_at >= b.opened_at
           join execution e on e.id = s.execution_id and e.status in ('scheduled', 'running', 'canceling')
           group by b.limit_id, b.group_value, b.releasing_since, b.probe_at, b.allowed
           having count(*) > case when b.releasing_since is not null or b.probe_at <= clock_timestamp()
               then b.allowed else 0 end""",
    ),
    Invariant(
        "I3c",
        "breaker: under `counts_running`, failed and running calls together are at most the number of "
        "failures that opens the breaker",
        """select l.ref || ' ' || k.group_value from concurrency_limit l
           cross join lateral (select distinct s.group_value from slot s where s.limit_id = l.id) k
           left join breaker b on b.limit_id = l.id and b.group_value = k.group_value
           cross join lateral (
               select count(*) as n from slot s join execution e on e.id = s.execution_id
               where s.limit_id = l.id and s.group_value = k.group_value
                   and s.admitted_at >= coalesce(b.opened_at, '-infinity')
                   and e.status in ('scheduled', 'running', 'canceling')) under_way
           where (l.breaker ->> 'counts_running')::boolean
               and under_way.n + (
                   select count(*) from breaker_attempt a
                   where a.limit_id = l.id and a.group_value = k.group_value and a.failed
                       and a.ended_at > clock_timestamp() - make_interval(secs => (l.breaker ->> 'within')::float8)
               ) > (l.breaker ->> 'failures')::integer""",
    ),
    Invariant(
        "I3s",
        "each slot is held by an execution that needs it: a scheduled, running or waiting one",
        """select s.execution_id::text from slot s left join execution e on e.id = s.execution_id
           where e.id is null or e.status not in ('scheduled', 'running', 'canceling', 'waiting')
               or (s.limit_id, s.group_value)::limit_key <> all (e.keys)""",
    ),
    Invariant(
        "I4",
        "order: executions that wait for a key are admitted first in, first out, within a priority and a turn",
        # Each admission is compared with the twenty before it under its key, as far as they were made while it
        # waited. An earlier admission with a later instant was made before the database's clock went back.
        """select x.execution_id::text from (
               select a as one, a.execution_id,
                   array_agg(a) over (partition by limit_id, group_value order by seq
                       rows between 20 preceding and 1 preceding) as before
               from admission a
           ) x cross join lateral unnest(x.before) b
           where b.admitted_at > (x.one).since and b.admitted_at <= (x.one).admitted_at
               and (b.rank, b.turn, b.ready_at, b.execution_id)
               > ((x.one).rank, (x.one).turn, (x.one).ready_at, (x.one).execution_id)""",
    ),
    Invariant(
        "I4r",
        "order: the place of an execution in its lane is the instant at which it or its retry became "
        "ready, and does not change",
        # The history has the place of each request of an execution. The place may change only if the attempt before
        # failed, was deferred or waited for an answer, or if a user rescheduled it, or a start joined its burst. Until the
        # next request it stays the same, for waiting and for admitted executions. The history has the last place in a burst
        # once its execution has left `requested`. If the clock went back, a later attempt may have an earlier instant, and
        # admissions that are to come were made before.
        """with place as (
               select h.execution_id, h.attempt, h.at, h.ready_at, lag(h.ready_at) over w as before, lag(h.at) over w as since,
                   lead(h.at) over w as until
               from history h join execution e on e.id = h.execution_id where h.ready_at is not null
               window w as (partition by h.execution_id order by h.attempt, h.at)
           )
           select p.execution_id::text from place p where p.ready_at <> p.before and not exists (
               select from attempt t
               where t.execution_id = p.execution_id and t.attempt = p.attempt and t.outcome in ('failed', 'deferred', 'waiting'))
               and not exists (
                   select from workflow_command c where c.execution_id = p.execution_id and c.kind = 'reschedule'
                       and c.obeyed_at between p.since and p.at)
               and not (p.attempt = 0 and exists (
                   select from payload y where y.execution_id = p.execution_id and y.options ? 'debounce'))
           union select e.id::text from place p join execution e on e.id = p.execution_id
           where p.until is null and e.status in ('requested', 'queued', 'scheduled') and e.ready_at <> p.ready_at
               and not (e.status = 'requested' and e.attempt = 0 and exists (
                   select from payload y where y.execution_id = e.id and y.options ? 'debounce'))
           union select a.execution_id::text from place p join admission a on a.execution_id = p.execution_id
               and a.admitted_at > p.at and a.admitted_at < coalesce(p.until, clock_timestamp())
           where a.ready_at <> p.ready_at and not exists (
               select from place q join payload y on y.execution_id = q.execution_id and y.options ? 'debounce'
               where q.execution_id = p.execution_id and q.attempt = 0 and q.ready_at = a.ready_at)""",
    ),
    Invariant(
        "I5",
        "no lost wake-up: no lane waits for a gate that is open",
        f"""select l.id::text from lane l
           left join concurrency_limit c on c.id = l.gate_limit
           join namespace n on n.id = l.namespace_id
           where case l.gate_kind
               when 'regroup' then l.moved_at < clock_timestamp() - {SETTLED} * 20
               when 'worker' then n.away_since is null
                   and not exists (select from wake w where w.namespace_id = l.namespace_id)
               when 'limit' then (c.breaker is null or breaker_room(c.id, l.gate_group) > 0)
                   and (c.budget is null and (c.rate_count is not null and c.max = 2147483647 or (
                       select coalesce(sum(coalesce(s.cost, 1)), 0) from slot s
                       where s.limit_id = l.gate_limit and s.group_value = l.gate_group) + coalesce(least(
                           l.costs[array_position(l.keys, (l.gate_limit, l.gate_group)::limit_key)],
                           least(c.max, coalesce(c.rate_count, c.max))), 1) <= c.max)
                       or c.budget is not null and l.costs[array_position(l.keys, (l.gate_limit, l.gate_group)::limit_key)] <= (
                           select b.amount - (select coalesce(sum(coalesce(y.spent, y.reserved)), 0) from budget_entry y
                                              where y.owner = b.owner and y.unit = b.unit)
                           from budget b where b.owner::text = l.gate_group and b.unit = c.unit))
                   -- Under a weighted key only the first lane can start: a later one may need less, and does not pass it.
                   and (l.costs is null or not exists (
                       select from lane b where b.gate_limit = l.gate_limit and b.gate_group = l.gate_group
                           and (b.rank, b.place, b.ready_at, b.execution_id) < (l.rank, l.place, l.ready_at, l.execution_id)))
                   and not exists (select from wake w where w.limit_id = l.gate_limit and w.group_value = l.gate_group)
               end""",
    ),
    Invariant(
        "I5w",
        "each queued execution is in a lane, and each lane has recorded its first execution",
        """select e.id::text from execution e left join waiter w on w.execution_id = e.id
           left join lane l on l.id = w.lane
           where (e.status = 'queued' or w.execution_id is not null) and (e.status = 'queued' and l.id is not null
               and (w.rank, w.turn, w.ready_at, w.execution_id) >= (l.rank, l.turn, l.ready_at, l.execution_id)) is not true
           union all select l.id::text from lane l where not exists (select from waiter w where w.lane = l.id)""",
    ),
    Invariant(
        "I6",
        "each task and item of a workflow has one execution",
        """select parent::text from execution where parent is not null group by parent, task, item having count(*) > 1""",
    ),
    Invariant(
        "I7",
        "each enforcement has one execution",
        """select n.execution_id::text from enforcement n where n.status = 'executed'
               and not exists (select from execution e where e.id = n.execution_id)
               and not exists (select from archive a where a.id = n.execution_id)""",
    ),
    Invariant(
        "I7b",
        "each fire of a schedule has one execution",
        # Only fires of the last day: the retention may delete an older fire before its long execution has ended.
        """select p.execution_id::text from payload p
           where p.origin ? 'schedule' and (p.origin ->> 'due')::timestamptz > clock_timestamp() - interval '1 day'
               and not exists (
                   select from fire f where f.schedule = p.origin ->> 'schedule'
                       and f.due_at = (p.origin ->> 'due')::timestamptz and f.execution_id = p.execution_id)
           union all select f.execution_id::text from fire f
           where f.status = 'created' and f.outcome is null and f.due_at > clock_timestamp() - interval '1 day'
               and not exists (select from open_fire o where o.execution_id = f.execution_id)""",
    ),
    Invariant(
        "I7c",
        "each closed burst and each match of events has one execution, with the kept event; each event of "
        "an open burst has its key",
        # Only bursts of the last day: the retention deletes their rows and their enforcements at different times.
        """select b.id::text from burst b
           join lateral (
               select count(*) as events, count(n.event_id) as enforced, bool_or(n.event_id = b.event_id) as kept,
                   (array_agg(m.event_id order by m.at, m.event_id))[1] as first,
                   (array_agg(m.event_id order by m.at desc, m.event_id desc))[1] as last
               from burst_event m left join enforcement n on n.event_id = m.event_id and n.rule = m.rule
               where m.burst = b.id) x on true
           where b.closed_at > clock_timestamp() - interval '1 day'
               and (x.events <> b.events or x.enforced <> 1 or x.kept is not true
                   or b.event_id is distinct from case b.keep when 'first' then x.first else x.last end)
           union all select m.event_id::text from burst_event m where m.burst is null and (
               exists (select from enforcement n where n.event_id = m.event_id and n.rule = m.rule)
               or not exists (select from burst_key k where k.rule = m.rule and k.tenant = m.tenant and k.key = m.key))""",
    ),
    Invariant(
        "I7d",
        "the starts of a burst have one execution, which starts when the burst closes, within the maximum "
        "time of the burst",
        # Only bursts of the last hour: the retention deletes the rows of joined starts after a day.
        """select b.execution_id::text from start_burst b join payload p on p.execution_id = b.execution_id
           left join (select execution_id, count(*) as starts, max(at) as last_at from joined_start group by execution_id) j
               on j.execution_id = b.execution_id
           where b.first_at > clock_timestamp() - interval '1 hour' and (b.starts <> 1 + coalesce(j.starts, 0)
               or p.options #> '{debounce,at_most}' is not null and b.closes_at > greatest(j.last_at,
                   b.first_at + make_interval(secs => (p.options #>> '{debounce,at_most}')::float8)))
           union all select b.execution_id::text from start_burst b
           where not exists (select from execution e where e.id = b.execution_id)
               and not exists (select from archive a where a.id = b.execution_id)
               and b.first_at > clock_timestamp() - interval '1 hour'""",
    ),
    Invariant(
        "I8",
        "outbox: each staged message is published, or its publication is being tried",
        f"""select id::text from outbox where due_at < clock_timestamp() - {SETTLED} * 20 and tries = 0
               and queue not like 'work.%'""",
    ),
    Invariant(
        "I9",
        "final is final: no execution has left a final status",
        """select execution_id::text from history
           where old in ('completed', 'failed', 'timeout', 'cancelled', 'abandoned', 'skipped')""",
    ),
    Invariant(
        "I10a",
        "recovery finds each open execution: it is in the table `live`, or waits for a slot",
        """select e.id::text from execution e where e.finished_at is null
               and not exists (select from live l where l.execution_id = e.id)
               and not exists (select from waiter w where w.execution_id = e.id)""",
    ),
    Invariant(
        "I10b",
        "the table `live` has only open executions that are not queued",
        """select l.execution_id::text from live l left join execution e on e.id = l.execution_id
           where e.id is null or e.finished_at is not null or e.status = 'queued'""",
    ),
    Invariant(
        "I10c",
        "each ended execution has an outcome, and each failed one has an error",
        """select e.id::text from execution e left join result r on r.execution_id = e.id
           where e.finished_at is not null and (r.execution_id is null
               or r.error is null and e.status in ('failed', 'timeout', 'abandoned'))""",
    ),
    Invariant(
        "I10h",
        "only completed executions have a result",
        """select r.execution_id::text from result r join execution e on e.id = r.execution_id
           where r.result <> 'null' and e.status <> 'completed'""",
    ),
    Invariant(
        "I10d",
        "each running execution is claimed by a registered worker",
        """select e.id::text from execution e join namespace n on n.id = e.namespace_id
           left join (select c.worker, x as id from claim c cross join unnest(c.executions) x) h
               on h.worker = e.claim and h.id = e.id
           where e.status in ('running', 'canceling') and n.kind = 'action' and e.claim is not null
               and (h.id is null or not exists (select from process p where p.id = e.claim))""",
    ),
    Invariant(
        "I10e",
        "each waiting execution waits for an answer, an event or an outside system, or is a suspended durable function",
        """select e.id::text from execution e where e.status = 'waiting'
               and not exists (select from inquiry i where i.execution_id = e.id and i.status = 'created')
               and not exists (select from event_wait w where w.execution_id = e.id)
               and not exists (select from suspended s where s.execution_id = e.id)
               and not exists (select from outside_wait w where w.execution_id = e.id and w.settled_at is null)""",
    ),
    Invariant(
        "I10g",
        "each suspended durable function waits: no child has ended, no signal has come, and no timer is due",
        f"""select s.execution_id::text from suspended s where s.since < clock_timestamp() - {SETTLED} and (
               s.until < clock_timestamp() - {SETTLED}
               or exists (select from execution c where c.id = any (s.children) and c.finished_at < clock_timestamp() - {SETTLED})
               or exists (select from jsonb_array_elements(s.signals) g join step t on t.execution_id = s.execution_id
                   and t.name = g ->> 0 and t.ordinal = (g ->> 1)::integer and t.at < clock_timestamp() - {SETTLED}))
           union all select s.execution_id::text from suspended s
           where not exists (select from execution e where e.id = s.execution_id and e.status = 'waiting')""",
    ),
    Invariant(
        "I11",
        "each recorded step belongs to an existing run",
        """select distinct s.execution_id::text from step s
           where not exists (select from execution e where e.id = s.execution_id)""",
    ),
    Invariant(
        "I10f",
        "each ended execution without a parent is queued for the archive",
        """select e.id::text from execution e left join (select unnest(ids) as id from finished) f on f.id = e.id
           where e.finished_at is not null and e.parent is null and f.id is null""",
    ),
    Invariant(
        "I12",
        "pending work has its rows: the events that wait for their rules or are in open bursts, and the "
        "fires that are open or wait",
        """select u.event_id::text from unmatched u where not exists (select from event e where e.id = u.event_id)
           union select b.event_id::text from burst_event b
           where b.burst is null and not exists (select from event e where e.id = b.event_id)
           union select o.execution_id::text from (
               select schedule, due_at, execution_id from open_fire
               union all select schedule, due_at, execution_id from waiting_fire) o
           where not exists (select from fire f where f.schedule = o.schedule and f.due_at = o.due_at)""",
    ),
    Invariant(
        "moves",
        "every status change was a legal move",
        # A row from `requested` to `requested` is not a move: it records the new place in line after a change of the start.
        """select h.execution_id::text from history h where h.old is not null and (h.old, h.new) <> ('requested', 'requested')
               and not exists (select from legal_move l where l.subject = 'execution' and l.old = h.old and l.new = h.new)""",
    ),
)


LIMITED = "select * from ({}) v (id) limit $1"


async def violations(session: Session, invariant: Invariant, limit: int) -> list[str]:
    """Return at most `limit` ids that violate an invariant."""
    return [row["id"] for row in await session.fetch(LIMITED.format(invariant.violations), limit)]
