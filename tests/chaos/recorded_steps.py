"""Durable functions under chaos: each call of a step, by the attempt that made it, against what was recorded of it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from uuid import UUID

from penstock.store.session.database import Session
from tests.chaos import work

RECORDED = """
select s.execution_id, s.ordinal, s.attempt, s.result #>> '{}' as result
from unnest($1::uuid[]) x cross join lateral recorded_steps(x) s where s.name = 'call' and s.status = 'completed'
"""


async def called_again(session: Session, calls: Path, stories: Mapping[UUID, int]) -> list[str]:
    """Return the steps that were called again although an earlier attempt had recorded them, and wrong or missing records."""
    calls_made = [tuple(map(int, line.split())) for line in calls.read_text().splitlines()]
    recorded: dict[tuple[int, int], int] = {}
    faults = []
    for row in await session.fetch(RECORDED, list(stories)):
        n, step = stories[UUID(int=row["execution_id"].int)], row["ordinal"] - 1
        recorded[n, step] = row["attempt"]
        if int(row["result"]) != n + step:
            faults.append(f"step {step} of {n} is recorded as {row['result']}")
    faults += [
        f"attempt {attempt} called step {step} of {n}, which attempt {recorded[n, step]} had recorded"
        for n, step, attempt in calls_made
        if attempt > recorded.get((n, step), attempt)
    ]
    missing = {(n, step) for n in stories.values() for step in range(work.STEPS)} - recorded.keys()
    return faults + [f"step {step} of {n} is not recorded" for n, step in sorted(missing)]
