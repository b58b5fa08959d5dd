"""The messages of an execution that no handler could handle. The execution goes on once the fault is repaired; until
then the answer names it."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any
from uuid import UUID

from penstock.errors import Undecodable
from penstock.messaging import envelope
from penstock.operate.why.answer import count, span
from penstock.settings import Settings
from penstock.store.executions import executions
from penstock.store.outbox import dead_letters
from penstock.store.outbox.dead_letters import RecentLetter
from penstock.store.session.database import Session


async def given_up(
    session: Session, execution: UUID, queues: list[str], settings: Settings
) -> tuple[str, str, dict[str, Any]] | None:
    """Return the newest dead letter of these queues that names this execution or one of its tasks: as a clause, a sentence
    that says what to do, and facts. None for none."""
    letters = [(letter, _ids(letter)) for letter in await dead_letters.recent(session, queues)]
    if not letters:
        return None
    named = sorted(set().union(*(ids for _, ids in letters)))
    concerned = await executions.itself_or_tasks(session, execution, named)
    letter = next((letter for letter, ids in letters if ids & concerned), None)
    if letter is None:
        return None
    clause = (
        f"waits for a fix: executors could not handle its message on {letter.queue} ({count(letter.count, 'time')}, last "
        f"{span(letter.age)} ago): {letter.reason}"
    )
    what_to_do = (
        f"An executor sends the message again every {span(settings.restage_age)}, so the execution "
        f"continues once the cause is fixed. See the message with: penstock dead-letters show {letter.id}"
    )
    facts = {name: value for name, value in asdict(letter).items() if name != "body"}
    return clause, what_to_do, facts


def _ids(letter: RecentLetter) -> set[UUID]:
    try:
        return set(envelope.decode(letter.body).ids)
    except Undecodable:
        return set()
