"""The check of executions that wait for each other, and so for ever."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.operate.doctor.finding import Finding, warning
from penstock.operate.why.answer import OTHER_ROUTE, count
from penstock.operate.why.circles import Block, circles
from penstock.settings import Settings
from penstock.store.session.database import Session

MAX_DESCRIBED = 3
"""The maximum number of circles that are described."""


async def findings(session: Session, settings: Settings) -> list[Finding]:
    stuck = await circles(session, settings)
    described = [warning("waits", _sentence(circle), _way_out(circle)) for circle in stuck[:MAX_DESCRIBED]]
    if len(stuck) > MAX_DESCRIBED:
        circle_count = count(len(stuck) - MAX_DESCRIBED, "other circle")
        described.append(
            warning(
                "waits",
                f"{circle_count} of executions wait for each other in the same way",
                "Resolve the listed circles, and run this command again.",
            )
        )
    return described


def _sentence(circle: Sequence[Block]) -> str:
    """Return a sentence that names the wait of each execution, around the circle."""
    clauses = []
    for block, following in zip(circle, [*circle[1:], circle[0]], strict=True):
        name = f"{block.id} ({block.action})"
        if block.by == "child":
            clauses.append(f"{name} waits for its child {following.id}")
        elif block.by == "limit":
            clauses.append(f"{name} waits for a slot of the limit {block.name}, which {following.id} holds")
        else:
            clauses.append(
                f"{name} waits for a slot of a worker of the route {block.name}, which {following.id} holds"
            )
    return f"executions wait for each other, so none of them continues: {'; '.join(clauses)}"


def _way_out(circle: Sequence[Block]) -> str:
    """Return what lets the circle go on now, and what keeps it from coming again."""
    limits = sorted({block.name for block in circle if block.by == "limit"})
    needs_worker = any(block.by == "worker" for block in circle)
    remedies = [f"penstock limit set {limit} MAX (one slot more)" for limit in limits]
    remedies += ["start another worker of the route"] if needs_worker else []
    text = f"To let one of them continue: {', or '.join([*remedies, f'penstock cancel {circle[0].id}'])}."
    if limits:
        text += (
            " Give the child a limit of its own. A durable function releases its slot while it waits, unless the limit has "
            "`while_waiting: keep`."
        )
    return f"{text} {OTHER_ROUTE}" if needs_worker else text
