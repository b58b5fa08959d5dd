"""The order in line, by the knowledge of the submitter."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from uuid import UUID

from penstock.store.session.database import Row, Session
from tests.chaos.load import Intent

ADMISSIONS = """
select distinct on (execution_id) execution_id as id, seq, since, admitted_at from admission
where execution_id = any($1::uuid[]) order by execution_id, seq
"""


async def overtaken(session: Session, intent: Intent) -> list[str]:
    """Return the executions that stood in line and saw a later submit get in first. The instants of the database are not
    used. An execution that was lost on the way to the line, and has not stood in it yet, may be passed."""
    passed: list[str] = []
    for line in intent.lines.values():
        admissions = {row["id"]: row for row in await session.fetch(ADMISSIONS, line)}
        passed += _overtaken(line, admissions)
    return passed


def _overtaken(line: Sequence[UUID], admissions: dict[UUID, Row]) -> Iterator[str]:
    places = {id: place for place, id in enumerate(line)}
    order = sorted(admissions.values(), key=lambda row: row["seq"])
    for n, late in enumerate(order):
        for early in order[:n]:
            if places[early["id"]] > places[late["id"]] and early["admitted_at"] > late["since"]:
                yield f"{late['id']} by {early['id']}"
                break
