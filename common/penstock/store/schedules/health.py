"""The health of schedules: their troubles, with reasons."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from penstock.store.processes import presence
from penstock.store.schedules import figures
from penstock.store.schedules.figures import FireCount, FiredAhead, Troubled
from penstock.store.session.database import Session

LATE = 30.0
"""Seconds after which a due schedule that was not fired is late. Replicas look every few seconds."""
ORPHANED = 1800.0
"""Seconds after which a fire is orphaned if its execution has not started. Half an hour is the field's value."""
STALLED, MOST_STALLED = 1800.0, 5
"""Seconds after which an open run is stalled, and the number of stalled runs up to which there is no trouble."""
WINDOW, MOST_MISSED = 3600.0, 10
"""Seconds for which missed fires are counted, and the number of them up to which there is no trouble."""
STALE = 60.0
"""Seconds without a heartbeat after which an executor does not count as alive."""


@dataclass(frozen=True, slots=True)
class ScheduleTrouble:
    """A problem of a schedule, or of all schedules, and the next step that helps."""

    kind: Annotated[
        str,
        Field(
            description="`no executor`, `broken` (it cannot be planned), `late`, `erroring` (its latest execution "
            "failed), `orphaned` (no worker began its execution), `stalled` (its execution does not "
            "end), `missed`, or `ahead` (the database's clock went back, so future instants have "
            "already fired)."
        ),
    ]
    schedule: Annotated[str | None, Field(description="The schedule; null: it concerns all.")]
    says: Annotated[str, Field(description="The problem, as a sentence.")]
    hint: Annotated[str, Field(description="The next step that helps.")]


async def troubles(session: Session) -> list[ScheduleTrouble]:
    """Return the troubles of schedules now; an empty list if there is none."""
    troubles: list[ScheduleTrouble] = []
    if (await figures.figures(session, LATE, 60.0)).active and not await presence.executors(session, STALE):
        troubles.append(
            ScheduleTrouble(
                "no executor",
                None,
                "no executor is online, so schedules start nothing",
                "Start `penstock executor`.",
            )
        )
    troubled = await figures.troubled(session, LATE)
    troubles += [_broken(row) if row.error else _late(row) for row in troubled]
    for row in await figures.erroring(session):
        sentence = f"the fire of {row.due_at:%Y-%m-%d %H:%M:%S} UTC has the outcome {row.how}"
        hint = (
            f"penstock show {row.execution_id}"
            if row.execution_id
            else "Correct the schedule and apply it again."
        )
        troubles.append(
            ScheduleTrouble("erroring", row.schedule, f"{sentence}: {row.error or ''}".rstrip(": "), hint)
        )
    for late in await figures.orphaned(session, ORPHANED):
        sentence = (
            f"{late.count} of its executions have not begun on a worker. The oldest of them was due at "
            f"{late.first:%Y-%m-%d %H:%M:%S} UTC"
        )
        troubles.append(
            ScheduleTrouble(
                "orphaned",
                late.schedule,
                sentence,
                "Check that a worker has the action of the schedule and serves its route.",
            )
        )
    troubles += _several(
        "stalled",
        await figures.stalled(session, STALLED),
        MOST_STALLED,
        "executions have been open for too long",
    )
    troubles += _several(
        "missed",
        await figures.missed(session, WINDOW),
        MOST_MISSED,
        "start times were missed in the last hour",
    )
    troubles += [_ahead(row) for row in await figures.ahead(session, LATE)]
    return troubles


def _ahead(row: FiredAhead) -> ScheduleTrouble:
    sentence = (
        f"the database's clock was set back after the schedule fired for {row.since:%Y-%m-%d %H:%M:%S} UTC. "
        "The schedule fires again after that instant"
    )
    hint = (
        f"To let it fire earlier, run: penstock schedule enable {row.schedule}. The schedule then fires for each "
        "start time for which it has not fired yet."
    )
    return ScheduleTrouble("ahead", row.schedule, sentence, hint)


def _broken(row: Troubled) -> ScheduleTrouble:
    return ScheduleTrouble("broken", row.schedule, str(row.error), "Correct the schedule and apply it again.")


def _late(row: Troubled) -> ScheduleTrouble:
    sentence = f"its start is {row.late:.0f} s late"
    return ScheduleTrouble(
        "late", row.schedule, sentence, "Search the logs of the executors for the text loop=schedules."
    )


def _several(kind: str, rows: Iterable[FireCount], limit: int, description: str) -> list[ScheduleTrouble]:
    """Return troubles of one kind, if all schedules together have more than `limit`."""
    rows = list(rows)
    if sum(row.count for row in rows) <= limit:
        return []
    return [
        ScheduleTrouble(
            kind,
            row.schedule,
            f"{'at least ' if row.has_more else ''}{row.count} {description}",
            f"`penstock schedule history {row.schedule}` shows them.",
        )
        for row in rows
    ]
