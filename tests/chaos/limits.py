"""Ten thousand through a limit while processes are killed and messages come twice; and the ledger of what happened."""

from __future__ import annotations

import asyncio
import bisect
import random
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from penstock.store.session.database import Row
from tests.chaos import limited
from tests.crash.processes import Fleet
from tests.flows.installation import Installation

EXECUTORS, WORKERS = 3, 2
AGAIN = """
select s.* from (
    select n.queue, array_agg(e.id) as ids from (select execution_id from live order by random() limit 40) l
    join execution e on e.id = l.execution_id join namespace n on n.id = e.namespace_id
    where e.status in ('scheduled', 'running') group by n.queue
    union all
    select 'execution.requested', array_agg(execution_id) from (
        select execution_id from live union all select execution_id from waiter limit 200) x having count(*) > 0
) o cross join lateral unnest(stage(o.queue, o.ids, 20)) s
"""
OPEN = "select execution_id from live union all select execution_id from waiter limit 1"
LOG = """
select limit_id, group_value, rank, turn, ready_at, execution_id, since, admitted_at, held, allowed
from admission order by limit_id, group_value, seq
"""
FREED = """
select a.limit_id, a.group_value, a.admitted_at as at, 1 as change, a.allowed from admission a
union all
select a.limit_id, a.group_value, f.at, -1, null from admission a cross join lateral (
    select min(h.at) as at from history h where h.execution_id = a.execution_id and h.at > a.admitted_at
        and h.new not in ('scheduled', 'running', 'canceling')) f
where f.at is not null
order by 1, 2, 3, 4
"""


@dataclass(frozen=True)
class Ledger:
    """The counts of a run; the last five must be 0, but for `really_over` where a live worker was taken for dead."""

    limit: int
    keys: int
    executions: int
    seconds: float
    kills: int
    copies: int
    recovered: int
    over_limit: int
    """Admissions that found the key full: as counted under its lock, or anew from the history."""
    out_of_order: int
    leaked: int
    lost: int
    really_over: int
    """Instants at which more really ran than may, as the actions themselves wrote it down."""

    def __str__(self) -> str:
        return (
            f"limit {self.limit}, {self.keys} keys: {self.executions} executions in {self.seconds:.1f} s "
            f"({self.executions / self.seconds:.0f}/s), {self.kills} kills, {self.copies} copies of messages, "
            f"{self.recovered} attempts lost with a worker; over the limit {self.over_limit}, out of order "
            f"{self.out_of_order}, slots leaked {self.leaked}, executions lost {self.lost}, really over {self.really_over}"
        )


async def run(
    house: Installation, database: str, broker: str | None, folder: Path, *,
    limit: int, keys: int, count: int, kill_every: float,
) -> Ledger:  # fmt: skip
    """Submit `count`, kill and copy until all have ended, and read what happened."""
    action = limited.ACTIONS[limit]
    await house.apply(*limited.ACTIONS.values())
    marks, draw = folder / "marks", random.Random(limit * 1000 + keys)
    with Fleet(
        database, broker, folder / "services.log",
        heartbeat_interval=1.0, stale_threshold=5.0, sweep_interval=0.5, restage_age=5.0,
    ) as fleet:  # fmt: skip
        fleet.environment[limited.LEDGER] = str(marks)

        def start(role: str) -> None:
            if role == "executor":
                process = fleet.executor()
            else:
                process = fleet.start("worker", "--module", "tests.chaos.limited", "--concurrency", "100")
            roles[process.pid] = role

        roles: dict[int, str] = {}
        deaths: dict[int, float] = {}
        for role in ["executor"] * EXECUTORS + ["worker"] * WORKERS:
            start(role)
        await house.until("select 1 from process where kind = 'worker'", seconds=120)
        began, copies = time.monotonic(), 0
        submitting = asyncio.ensure_future(submit(house, action.ref, count, keys))
        next_kill = began + kill_every
        while True:
            await asyncio.sleep(0.3)
            if submitting.done() and not await house.rows(OPEN):
                break
            copies += sum(len(row["ids"]) for row in await house.rows(AGAIN))
            if time.monotonic() > next_kill:
                next_kill = time.monotonic() + kill_every
                victim = draw.choice(fleet.alive)
                fleet.kill(victim)
                deaths[victim.pid] = time.monotonic()
                start(roles.pop(victim.pid))
        seconds = time.monotonic() - began
        submitting.result()
        await house.quiet(60)
        kills = fleet.killed
    [[recovered]] = await house.rows("select coalesce(sum(recoveries), 0) from execution")
    [[completed]] = await house.rows("select count(*) from execution where status = 'completed'")
    [[leaked]] = await house.rows("select count(*) from slot")
    log = await house.rows(LOG)
    return Ledger(
        limit=limit, keys=keys, executions=count, seconds=seconds, kills=kills, copies=copies, recovered=recovered,
        over_limit=over_limit(log, await house.rows(FREED)),
        out_of_order=out_of_order(log),
        leaked=leaked,
        lost=count - completed,
        really_over=really_over(marks, deaths, limit),
    )  # fmt: skip


async def submit(house: Installation, ref: str, count: int, keys: int) -> None:
    for first in range(0, count, 500):
        await house.client.start_many(
            ref, [{"key": f"k{n % keys}"} for n in range(first, min(first + 500, count))]
        )


def over_limit(log: Sequence[Row], steps: Sequence[Row]) -> int:
    """Count the admissions over the limit, as counted under the key's lock and again by the history."""
    counted: int = sum(row["held"] > row["allowed"] for row in log)
    holders: dict[tuple[int, str], int] = defaultdict(int)
    for row in steps:
        key = row["limit_id"], row["group_value"]
        holders[key] += row["change"]
        if row["change"] > 0 and holders[key] > row["allowed"]:
            counted += 1
    return counted


def out_of_order(log: Sequence[Row]) -> int:
    """Return the admissions before which an execution with a later place was admitted, while they stood in line."""
    wrong = 0
    by_key: dict[tuple[int, str], list[Row]] = defaultdict(list)
    for row in log:
        by_key[row["limit_id"], row["group_value"]].append(row)
    for rows in by_key.values():
        instants: list[object] = []
        latest: list[tuple[int, tuple[object, ...]]] = []  # indexes with a place that no later one exceeds
        for n, row in enumerate(rows):
            place = (row["rank"], row["turn"], row["ready_at"], row["execution_id"])
            first = bisect.bisect_right(instants, row["since"])
            at = bisect.bisect_left(latest, first, key=lambda one: one[0])
            if at < len(latest) and latest[at][1] > place:
                wrong += 1
            while latest and latest[-1][1] <= place:
                latest.pop()
            latest.append((n, place))
            instants.append(row["admitted_at"])
    return wrong


def really_over(marks: Path, deaths: dict[int, float], limit: int) -> int:
    """Count the executions over the limit, if killed ones ran until their kill."""
    starts: dict[tuple[str, ...], float] = {}
    steps: list[tuple[float, int, str]] = []
    for line in marks.read_text().splitlines():
        sign, *run, at = line.split()
        if sign == "+":
            starts[tuple(run)] = float(at)
            steps.append((float(at), 1, run[0]))
        else:
            del starts[tuple(run)]
            steps.append((float(at), -1, run[0]))
    steps += [(deaths.get(int(run[1]), float("inf")), -1, run[0]) for run in starts]
    running: dict[str, int] = defaultdict(int)
    count = 0
    for _, change, key in sorted(steps):
        running[key] += change
        count += change > 0 and running[key] > limit
    return count
