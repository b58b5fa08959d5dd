"""One run of the demo: its events, how far they have come, and what came of them."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

import orjson

from penstock.client.client import Client
from penstock.errors import ConnectionFailed
from penstock.language.event_rules import compile_rule, evaluate
from penstock.store import events as store
from penstock.store.database import Row

TRIGGER = "git.commit"
FILES = "git.measure_file"
COMMITS = "git.survey"
TOGETHER = "git.sum_up"
PAUSE = 0.2
"""Seconds between looks."""
STUCK = 90.0
"""Seconds without any progress after which the demo gives up."""

LEFT = """
select e.id from execution e join namespace n on n.id = e.namespace_id
where e.finished_at is null and n.action like 'git.%'
"""
OPEN = "select 1 from execution where id = any($1::uuid[]) and finished_at is null limit 1"
OURS = """
with roots as (
    select execution_id from enforcement where event_id = any($1::uuid[]) union all select unnest($2::uuid[])
), ours as (
    select * from execution where id in (select * from roots)
    union all
    select * from execution where parent in (select * from roots)
)
"""
PROGRESS = f"""{OURS}
select n.action, count(*) as count, count(*) filter (where o.finished_at is not null) as ended
from ours o join namespace n on n.id = o.namespace_id group by 1
"""
RESULTS = f"""{OURS}
select n.action, r.result::text as result
from ours o join namespace n on n.id = o.namespace_id join result r on r.execution_id = o.id
left join enforcement f on f.execution_id = o.id
where o.parent is null and o.status = 'completed' order by array_position($1::uuid[], f.event_id)
"""
FAILED = f"""{OURS}
select o.id, o.status, o.reason, n.action from ours o join namespace n on n.id = o.namespace_id
where o.status <> 'completed' order by o.id limit 10
"""
ACTIONS = f"""{OURS}
select n.action, count(*) as ran, count(*) filter (where o.status = 'completed') as completed,
    sum(greatest(o.attempt, 1)) as tries,
    percentile_cont(0.5) within group (order by o.finished_at - o.created_at) as p50,
    percentile_cont(0.95) within group (order by o.finished_at - o.created_at) as p95,
    min(o.created_at) as begun, max(o.finished_at) as ended
from ours o join namespace n on n.id = o.namespace_id group by 1 order by 2 desc, 1
"""
LARGEST = """
select f.execution_id, f.event_id, count(c.id) as children from enforcement f
left join execution c on c.parent = f.execution_id
where f.event_id = any($1::uuid[]) group by 1, 2 order by 3 desc limit 1
"""
MATCHES = "select status, count(*) as count from enforcement where event_id = any($1::uuid[]) group by 1"


@dataclass(frozen=True, slots=True)
class Figures:
    """What ran, how often, how fast. `largest` and `event` are ids of something worth a look."""

    actions: Sequence[Row]
    matches: int
    executions: int
    took: timedelta
    largest: UUID | None
    event: UUID


class Run:
    """Publishes, and follows what comes of it."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._events: list[UUID] = []
        self._reports: list[UUID] = []
        self._left: list[UUID] = []
        self._expected: Counter[str] = Counter()
        self._matches = 0

    async def left_over(self) -> int:
        """How many executions an earlier run did not come to the end of. They are waited for, too."""
        self._left = [row["id"] for row in await self._client.session.fetch(LEFT)]
        return len(self._left)

    async def publish(self, payloads: Sequence[dict[str, Any]]) -> None:
        """Publish them all at once: the client puts what is pending into one transaction."""
        self._events = await asyncio.gather(*(self._client.publish(TRIGGER, one) for one in payloads))

    async def expected(self) -> dict[str, int]:
        """How many executions of each action there will be: the rules are tried here as `penstock rules test` does."""
        rules = [
            (rule.action, compile_rule(orjson.loads(rule.body or "{}")))
            for rule in await store.rules(self._client.session, [TRIGGER], bodies=True)
        ]
        for event in await store.read(self._client.session, self._events):
            payload = orjson.loads(event.payload)
            for action, rule in rules:
                match = evaluate(rule, event, payload)
                if not match.matched:
                    continue
                self._matches += 1
                self._expected[action] += 1
                if action == COMMITS:
                    self._expected[FILES] += len(match.params["paths"])
                    self._expected[TOGETHER] += 1
        return dict(self._expected.most_common())

    async def progress(self) -> AsyncIterator[dict[str, int]]:
        """How many of each action have ended, again and again until all have. Raises ConnectionFailed if it stops."""
        loop = asyncio.get_running_loop()
        before: dict[str, int] = {}
        moved = loop.time()
        while True:
            rows = await self._client.session.fetch(PROGRESS, self._events, [])
            ended = {row["action"]: row["ended"] for row in rows}
            yield ended
            if ended != before:
                before, moved = ended, loop.time()
            all_there = all(ended.get(action, 0) >= count for action, count in self._expected.items())
            if all_there and not await self._client.session.fetch(OPEN, self._left):
                return
            if loop.time() - moved > STUCK:
                raise ConnectionFailed(
                    f"nothing has moved for {STUCK:.0f} s",
                    hint="`penstock doctor` and `penstock executions` tell more.",
                )
            await asyncio.sleep(PAUSE)

    async def report(self) -> dict[str, Any]:
        """Let a last action make a report of the results."""
        found: dict[str, list[Any]] = {COMMITS: [], "git.weigh": [], "git.read_documents": []}
        for row in await self._client.session.fetch(RESULTS, self._events, []):
            found[row["action"]].append(orjson.loads(row["result"]))
        commits, large, documents = found.values()
        id = await self._client.start(
            "git.report", {"commits": commits, "large": large, "documents": documents}
        )
        self._reports.append(id)
        report: dict[str, Any] = await self._client.result(id, timeout=STUCK)
        return report

    async def failed(self) -> list[Row]:
        """Up to ten executions that did not complete."""
        return await self._client.session.fetch(FAILED, self._events, self._reports)

    async def figures(self) -> Figures:
        session = self._client.session
        actions = await session.fetch(ACTIONS, self._events, self._reports)
        largest = await session.fetch(LARGEST, self._events)
        matches = await session.fetch(MATCHES, self._events)
        return Figures(
            actions=actions,
            matches=sum(row["count"] for row in matches),
            executions=sum(row["ran"] for row in actions),
            took=max(row["ended"] for row in actions) - min(row["begun"] for row in actions),
            largest=largest[0]["execution_id"] if largest else None,
            event=largest[0]["event_id"] if largest else self._events[0],
        )
