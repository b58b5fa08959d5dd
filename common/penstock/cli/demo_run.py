"""One run of the demo: its events, their progress, and their results."""

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
from penstock.language.rules.event_rules import compile_rule, evaluate
from penstock.store.events import events as store
from penstock.store.upkeep import demo
from penstock.store.upkeep.demo import ActionFigures, NotCompleted

TRIGGER = "git.commit"
FILES = "git.measure_file"
COMMITS = "git.survey"
TOGETHER = "git.sum_up"
PAUSE = 0.2
"""The seconds between two looks at the progress."""
STUCK = 90.0
"""The seconds without progress after which the demo gives up."""


@dataclass(frozen=True, slots=True)
class Figures:
    """The number, the rate and the kinds of executions that ran. `largest` and `event` are ids of rows that the demo
    suggests to show."""

    actions: Sequence[ActionFigures]
    matches: int
    executions: int
    duration: timedelta
    largest: UUID | None
    event: UUID


class DemoRun:
    """A run of the demo, which publishes the events and follows their executions."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._events: list[UUID] = []
        self._reports: list[UUID] = []
        self._left: list[UUID] = []
        self._expected: Counter[str] = Counter()
        self._matches = 0

    async def left_over(self) -> int:
        """Return the number of executions that an earlier run did not finish. The demo waits for them, too."""
        self._left = await demo.unfinished(self._client.session)
        return len(self._left)

    async def publish(self, payloads: Sequence[dict[str, Any]]) -> None:
        """Publish all events at once. The client puts pending ones into one transaction."""
        self._events = await asyncio.gather(*(self._client.publish(TRIGGER, payload) for payload in payloads))

    async def expected(self) -> dict[str, int]:
        """Return the number of expected executions of each action. It evaluates the rules here, as `penstock rules
        test` does."""
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
        """Yield the number of ended executions of each action until all have ended. Raises ConnectionFailed without
        progress."""
        loop = asyncio.get_running_loop()
        previous: dict[str, int] = {}
        moved = loop.time()
        while True:
            counts = await demo.ended(self._client.session, self._events)
            yield counts
            if counts != previous:
                previous, moved = counts, loop.time()
            all_there = all(counts.get(action, 0) >= count for action, count in self._expected.items())
            if all_there and not await demo.any_open(self._client.session, self._left):
                return
            if loop.time() - moved > STUCK:
                raise ConnectionFailed(
                    f"no execution has made progress for {STUCK:.0f} s",
                    hint="Find the cause with `penstock doctor` and `penstock executions`.",
                )
            await asyncio.sleep(PAUSE)

    async def report(self) -> dict[str, Any]:
        """Run a last action, which makes a report of the results, and return the report."""
        results: dict[str, list[Any]] = {COMMITS: [], "git.weigh": [], "git.read_documents": []}
        for action, result in await demo.results(self._client.session, self._events):
            results[action].append(orjson.loads(result))
        commits, large, documents = results.values()
        id = await self._client.start(
            "git.report", {"commits": commits, "large": large, "documents": documents}
        )
        self._reports.append(id)
        report: dict[str, Any] = await self._client.result(id, timeout=STUCK)
        return report

    async def failed(self) -> list[NotCompleted]:
        """Return up to ten executions that did not complete."""
        return await demo.not_completed(self._client.session, self._events, self._reports)

    async def figures(self) -> Figures:
        session = self._client.session
        actions = await demo.figures(session, self._events, self._reports)
        largest = await demo.largest(session, self._events)
        return Figures(
            actions=actions,
            matches=await demo.matches(session, self._events),
            executions=sum(action.ran for action in actions),
            duration=max(action.ended_at for action in actions) - min(action.began_at for action in actions),
            largest=largest.execution_id if largest else None,
            event=largest.event_id if largest else self._events[0],
        )
