"""The state of workflows: locked and read, and written after each decision."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import orjson

from penstock.engine.decision import Final
from penstock.engine.serialization import dump_task_state, dump_workflow_state, load_workflow_state
from penstock.engine.state import TaskState, WorkflowState
from penstock.store.outbox import outbox
from penstock.store.outbox.queues import WORKFLOW_STARTED
from penstock.store.session.database import Row, Transaction
from penstock.tracing import Trace, trace_of


@dataclass(slots=True)
class StoredWorkflow:
    """A running workflow as it is stored. `state` is None until it begins. `rerun` names the run that it repeats, and
    where it starts. `stops` counts the requests to stop it. `parameters` and `context` are None if they are large: they
    are read when they are needed."""

    id: UUID
    definition: int
    depth: int
    tenant: str
    state: WorkflowState | None
    rerun: Mapping[str, Any] | None
    stops: int
    stop_status: str | None
    stop_reason: str | None
    created_at: datetime
    parameters: Mapping[str, Any] | None
    context: Mapping[str, Any] | None


@dataclass(slots=True)
class EndedExecution:
    """An execution that has ended. `parent`, `task` and `item` are set for a workflow's task (`item` only in a
    fan-out). `followed`: actions follow its end, and this is the delivery that starts them."""

    id: UUID
    status: str
    parent: UUID | None
    task: str | None
    item: int | None
    followed: bool


OPEN_PARENTS = "select * from open_parents($1::uuid[])"


async def open_parents(
    tx: Transaction, ids: Sequence[UUID]
) -> tuple[list[EndedExecution], list[StoredWorkflow]]:
    """Return the ended executions among `ids` that are children or have followers, and the running workflows of the
    children. The workflows are locked until the transaction ends, and read after they were locked. All of it takes
    one round trip."""
    return ended_and_stored(await tx.fetch(OPEN_PARENTS, ids))


def ended_and_stored(rows: Sequence[Row]) -> tuple[list[EndedExecution], list[StoredWorkflow]]:
    """Parse rows of the database function `open_parents`."""
    executions: list[EndedExecution] = []
    workflows: list[StoredWorkflow] = []
    for row in rows:
        if row["execution_id"] is not None:
            workflows.append(parsed_workflow(row))
        else:
            item = row["item"]
            executions.append(
                EndedExecution(
                    row["id"],
                    row["status"],
                    row["parent"],
                    row["task"],
                    None if item is None or item < 0 else item,
                    row["followed"],
                )
            )
    return executions, workflows


OPEN_WORKFLOWS = "select * from open_workflows($1::uuid[], true)"


async def open_workflows(tx: Transaction, ids: Sequence[UUID]) -> list[StoredWorkflow]:
    """Lock the running workflows among these until the transaction ends, and return them. A workflow that just starts
    gets its row."""
    return [parsed_workflow(row) for row in await tx.fetch(OPEN_WORKFLOWS, ids)]


TRACES = """
select execution_id, (origin -> 'trace')::text as trace from payload where execution_id = any($1::uuid[]) and origin ? 'trace'
"""


async def read_traces(tx: Transaction, ids: Sequence[UUID]) -> dict[UUID, Trace | None]:
    """Return the traces of the traced workflows among these."""
    rows = await tx.fetch(TRACES, ids)
    return {row["execution_id"]: trace_of(orjson.loads(row["trace"])) for row in rows}


def parsed_workflow(row: Row) -> StoredWorkflow:
    """Parse a row of the database function `open_workflows`."""
    state, rerun, parameters, context = row["head"], row["rerun"], row["params"], row["context"]
    return StoredWorkflow(
        row["execution_id"],
        row["definition_id"],
        row["depth"],
        row["tenant"],
        None if state is None else load_workflow_state(state),
        None if rerun is None else orjson.loads(rerun),
        row["stops"],
        row["stop_status"],
        row["stop_reason"],
        row["created_at"],
        None if parameters is None else orjson.loads(parameters),
        None if context is None else orjson.loads(context),
    )


@dataclass(slots=True)
class NewState:
    """The new states of workflows (by id), of tasks (by workflow and task), and the values of variables (by workflow,
    writer and name)."""

    workflows: Mapping[UUID, WorkflowState]
    tasks: Mapping[tuple[UUID, int], TaskState]
    variables: Mapping[tuple[UUID, int, str], Any]

    def columns(self) -> list[list[Any]]:
        """Return the arguments of `write_workflows`."""
        return [
            list(self.workflows),
            [dump_workflow_state(state) for state in self.workflows.values()],
            [id for id, _ in self.tasks],
            [task for _, task in self.tasks],
            [state.failing for state in self.tasks.values()],
            [dump_task_state(state) for state in self.tasks.values()],
            [id for id, _, _ in self.variables],
            [writer for _, writer, _ in self.variables],
            [name for _, _, name in self.variables],
            [orjson.dumps(value).decode() for value in self.variables.values()],
        ]


WRITE = """
select write_workflows($1::uuid[], $2::text[], $3::uuid[], $4::integer[], $5::boolean[], $6::text[],
    $7::uuid[], $8::integer[], $9::text[], $10::text[])
"""


async def write(tx: Transaction, new: NewState) -> None:
    """Write the new state. The caller holds the locks of the workflows."""
    await tx.fetch(WRITE, *new.columns())


EndedWorkflow = tuple[StoredWorkflow, Final]
"""A workflow and its end."""


FINISH = "select finish_workflows($1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[]) as messages"


async def finish(tx: Transaction, ends: Sequence[EndedWorkflow]) -> None:
    """End workflows with their results: their slots are released, and the workflows around them notified."""
    await tx.stage(FINISH, *finish_arguments(ends))


def finish_arguments(ends: Sequence[EndedWorkflow]) -> list[list[Any]]:
    """Return the arguments of `finish_workflows`."""
    return [
        [workflow.id for workflow, _ in ends],
        [final.status for _, final in ends],
        [orjson.dumps(final.output).decode() for _, final in ends],
        [None if final.error is None else orjson.dumps(final.error).decode() for _, final in ends],
        [workflow.stop_reason for workflow, _ in ends],
    ]


async def advance_soon(tx: Transaction, ids: Sequence[UUID]) -> None:
    """Stage a message for each workflow, by which it is advanced again, in a transaction of its own."""
    await outbox.stage(tx, WORKFLOW_STARTED, ids, 1)
