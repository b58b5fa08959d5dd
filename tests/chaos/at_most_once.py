"""Work that must run at most once (`on_worker_loss="fail"`): what began, and what came of it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID

import orjson

from penstock.language.moves import COMPLETED, FAILED
from penstock.store.session.database import Session
from tests.chaos.load import Intent

ENDS = """
select e.id, e.status, r.result::text as result, coalesce(r.error ->> 'message', e.reason) as reason
from execution e left join result r on r.execution_id = e.id
where e.id = any($1::uuid[]) and e.finished_at is not null
"""
UNKNOWN = """
select count(*) as count from attempt a left join process p on p.id::text = a.worker
where a.error ->> 'message' = 'its worker does not know of it' and p.session is null
"""


@dataclass
class Ended:
    """The ended executions: with the right result, given up with their worker and the reason, or otherwise."""

    right: list[UUID] = field(default_factory=list)
    given_up: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)


async def ended(session: Session, intent: Intent) -> Ended:
    ends = Ended()
    for row in await session.fetch(ENDS, list(intent.once)):
        right = intent.once[row["id"]]
        if row["status"] == COMPLETED and orjson.loads(row["result"]) == right:
            ends.right.append(row["id"])
        elif row["status"] == FAILED:
            ends.given_up.append(f"{row['id']} {row['reason']}")
        else:
            ends.wrong.append(f"{row['id']} {row['status']} {row['result']} (right: {right}) {row['reason']}")
    return ends


def begun_again(starts: Path) -> dict[int, int]:
    """Pieces (by their number) that began more than once, and how often."""
    counts = Counter(int(line) for line in starts.read_text().split())
    return {n: count for n, count in counts.items() if count > 1}


async def unknown_to_their_worker(session: Session) -> int:
    """Return the claimed attempts of which their worker never heard. No worker is lost, and yet they are. Workers that
    call a gateway are left out. Such a worker ends its attempts when its heartbeats are not answered. Later ones do not name
    them."""
    [row] = await session.fetch(UNKNOWN)
    return int(row["count"])
