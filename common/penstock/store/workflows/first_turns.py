"""The submit of a workflow together with its first turn, in one round trip."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from penstock.store.executions.executions import Submission, Submitted, with_watchers
from penstock.store.session.database import Session, Transaction
from penstock.store.workflows.children import NewChild
from penstock.store.workflows.state import NewState


@dataclass(slots=True)
class FirstTurn:
    """The first turn of a workflow that is about to be submitted: its state, and the tasks that start. `targets` are
    the definitions of the tasks that the submitter took from memory, by ref."""

    submission: Submission
    new: NewState
    children: Sequence[NewChild]
    targets: Mapping[str, int]


MAY_BEGIN = (
    "select from pg_proc where oid = to_regproc('begin_workflow') and has_function_privilege(oid, 'execute')"
)


async def may_begin(session: Session) -> bool:
    """Return True if the role of this session may write first turns. The role of a client must not."""
    return bool(await session.fetch(MAY_BEGIN))


BEGIN = """
select messages, stale, existing, conflicts, begun
from begin_workflow($1::uuid[], $2, $3, $4::text[], $5::text[], $6::smallint, $7,
    $8::text[], $9::integer[], $10::boolean[], $11::text[], $12::integer[], $13::text[], $14::text[],
    $15::text[], $16::integer[], $17::uuid[], $18::integer[], $19::integer[], $20::text[], $21::text[], $22::text[])
"""


async def submit(tx: Transaction, turn: FirstTurn) -> tuple[Submitted, bool]:
    """Create the workflow's execution, and write its first turn. Commits by itself (`stage_alone`): `tx` must not have
    run a statement. Return also whether the turn was written. Otherwise an executor takes it, as after every submit."""
    submission, children = turn.submission, turn.children
    _, heads, _, tasks, failing, records, _, writers, names, values = turn.new.columns()
    arguments = (
        [submission.id],
        submission.namespace,
        submission.definition,
        [submission.params],
        [submission.origin],
        submission.priority,
        not tx.session.pooler,
        heads,
        tasks,
        failing,
        records,
        writers,
        names,
        values,
        list(turn.targets),
        list(turn.targets.values()),
        [child.id for child in children],
        [child.namespace for child in children],
        [child.definition for child in children],
        [child.parameters for child in children],
        [child.origin for child in children],
        [child.task for child in children],
    )
    [row] = await tx.stage_alone(*with_watchers(BEGIN, [submission], *arguments))
    submitted = Submitted(row["stale"], dict(row["existing"]), dict(row["conflicts"]))
    return submitted, row["begun"]
