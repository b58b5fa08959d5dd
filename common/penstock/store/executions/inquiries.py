"""Inquiries: questions to humans that executions wait for."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated
from uuid import UUID

from pydantic import Field

from penstock.store.session.database import Row, Session, Transaction
from penstock.store.session.http_field_types import JsonTextOrNull
from penstock.store.session.rows import first_as, rows_as


@dataclass(frozen=True, slots=True)
class Inquiry:
    """An inquiry. An execution waits for its answer."""

    execution_id: UUID
    status: Annotated[
        str,
        Field(
            description="`created`: it waits for the answer. `responded`: it was answered, by a person or by "
            "its default. `timeout`: no answer came in time. `cancelled`: the execution ended "
            "before an answer came."
        ),
    ]
    prompt: Annotated[str, Field(description="The question.")]
    assignee: Annotated[
        str | None,
        Field(description="The person that may answer; null: each person with the right to answer may."),
    ]
    schema: Annotated[
        JsonTextOrNull, Field(description="The JSON Schema of the answer; null: any JSON is accepted.")
    ]
    due_at: Annotated[
        datetime | None,
        Field(description="The instant until which an answer is accepted; null: there is no bound."),
    ]
    created_at: datetime
    answered_at: Annotated[
        datetime | None, Field(description="The instant of the answer; null: there is none.")
    ]
    responder: Annotated[str | None, Field(description="The author of the answer; null: there is none.")]
    response: Annotated[
        JsonTextOrNull, Field(description="The answer, any JSON; secrets are `***`. null: there is none.")
    ]
    default: Annotated[
        JsonTextOrNull,
        Field(
            description="The answer that counts if none comes until `due_at`; null: the execution ends as `timeout`."
        ),
    ] = None
    run: Annotated[
        AskingRun | None, Field(description="The run that asks; null if it is archived or deleted.")
    ] = None


@dataclass(slots=True)
class AskingRun:
    """The run that asks: the outermost workflow or durable function around the execution, or the execution itself."""

    id: Annotated[UUID, Field(description="The id of the run.")]
    action: str
    finished_at: datetime | None
    labels: Annotated[dict[str, str], Field(description="The labels of the run: texts by name.")]
    task: Annotated[
        str | None,
        Field(description="The name of the task or step that asks; null: the run itself asks."),
    ]
    title: Annotated[
        str | None, Field(description="The title of the run; null: its action declares none.")
    ] = None
    paused: Annotated[
        bool,
        Field(
            description="True: the workflow of the question is paused. An answer is stored at once, and what follows "
            "it starts when the workflow is resumed."
        ),
    ] = False


LIST = """
select execution_id, status, prompt, assignee, schema::text as schema, due_at, created_at, answered_at, responder,
    response::text as response, default_answer::text as "default"
from inquiry i where ($1 or status = 'created') and ($2::text is null or assignee = $2)
    and ($4::text[] is null or exists (select from execution e join namespace n on n.id = e.namespace_id
        where e.id = i.execution_id and split_part(n.name, '::', 1) = any ($4)))
    and ($5::uuid is null or i.execution_id = $5)
order by created_at desc limit $3
"""


async def newest(
    session: Session,
    *,
    answered: bool,
    assignee: str | None,
    limit: int,
    tenants: Collection[str] | None,
    execution: UUID | None = None,
) -> list[Inquiry]:
    """Return at most `limit` open inquiries (with `answered` all) of an assignee (None: of all), newest first. With
    `tenants`, only inquiries of executions of these tenants that are not archived. With `execution`, only its own."""
    tenant_list = None if tenants is None else list(tenants)
    return rows_as(Inquiry, await session.fetch(LIST, answered, assignee, limit, tenant_list, execution))


FIND = """
select execution_id, status, prompt, assignee, schema::text as schema, due_at, created_at, answered_at, responder,
    response::text as response, default_answer::text as "default"
from inquiry where execution_id = $1
"""


async def find(db: Session | Transaction, execution: UUID) -> Inquiry | None:
    """Return the inquiry of an execution."""
    return first_as(Inquiry, await db.fetch(FIND, execution))


OPEN_INSIDE = """
with recursive tree as (
    select e.id from execution e where e.id = $1 and e.finished_at is null
    union all
    select c.id from tree t join execution c on c.parent = t.id where c.finished_at is null
), inside as (
    select * from tree limit 10000
)
select i.execution_id, i.status, i.prompt, i.assignee, i.schema::text as schema, i.due_at, i.created_at, i.answered_at,
    i.responder, i.response::text as response, i.default_answer::text as "default"
from inside t join inquiry i on i.execution_id = t.id and i.status = 'created' order by i.created_at, i.execution_id limit 1
"""


async def open_inside(session: Session, execution: UUID) -> Inquiry | None:
    """Return the oldest open inquiry of an open execution or of those inside it. At most 10,000 executions are searched."""
    return first_as(Inquiry, await session.fetch(OPEN_INSIDE, execution))


RUNS = """
select e.id as asking, r.id, n.action, r.finished_at, e.task, l.key, l.value,
    exists (select from paused_workflow) and exists (
        with recursive around as (
            select e.parent as id
            union all
            select p.parent from around a join execution p on p.id = a.id
        )
        select from around a join paused_workflow k on k.execution_id = a.id) as paused
from execution e join execution r on r.id = coalesce(root_of(e.parent), e.id) join namespace n on n.id = r.namespace_id
left join label l on l.execution_id = r.id
where e.id = any($1::uuid[]) order by l.key
"""


async def runs(session: Session, ids: Sequence[UUID]) -> dict[UUID, AskingRun]:
    """Return the run around each of these executions, without its title. An archived one has none."""
    runs: dict[UUID, AskingRun] = {}
    for row in await session.fetch(RUNS, list(ids)):
        id = UUID(int=row["id"].int)
        run = runs.setdefault(
            UUID(int=row["asking"].int),
            AskingRun(id, row["action"], row["finished_at"], {}, row["task"], paused=row["paused"]),
        )
        if row["key"] is not None:
            run.labels[row["key"]] = row["value"]
    return runs


PROMPTS = "select execution_id, prompt from inquiry where execution_id = any($1::uuid[])"


async def prompts(session: Session, ids: Sequence[UUID]) -> dict[UUID, str]:
    """Return the prompts of the inquiries among these executions."""
    rows: list[Row] = await session.fetch(PROMPTS, list(ids))
    return {UUID(int=row["execution_id"].int): row["prompt"] for row in rows}


LOCK_ASKING = "select 1 from execution where id = $1 for no key update"


async def find_locked(tx: Transaction, execution: UUID) -> Inquiry | None:
    """Return the inquiry of an execution, and lock the execution: it asks nothing else until this transaction ends."""
    await tx.fetch(LOCK_ASKING, execution)
    return await find(tx, execution)


OF_TASKS = """
select i.execution_id, e.task from inquiry i join execution e on e.id = i.execution_id
where e.parent = $1 and i.status = 'created' order by i.created_at limit 3
"""


async def of_tasks(tx: Transaction, workflow: UUID) -> dict[UUID, str]:
    """Return at most three tasks of a workflow's run that wait for an answer, with their names."""
    return {row["execution_id"]: row["task"] for row in await tx.fetch(OF_TASKS, workflow)}


OF_STEP = FIND.replace(
    "where execution_id = $1",
    """where status = 'created' and execution_id = (select c.id from execution c
    where c.parent = $1 and c.task = $2 and ($3::integer is null or c.item = $3) and c.finished_at is null limit 1)""",
)


async def of_step(tx: Transaction, run: UUID, name: str, ordinal: int | None) -> Inquiry | None:
    """Return the open inquiry of a step of a durable function, or of a task of a workflow (`ordinal` is None)."""
    return first_as(Inquiry, await tx.fetch(OF_STEP, run, name, ordinal))


ANSWER = "select messages, moved from answer_inquiry($1, $2, $3)"


async def answer(tx: Transaction, execution: UUID, response: str, by: str) -> bool:
    """Answer the inquiry of an execution; the response (JSON) becomes the execution's result. Return False, and
    change nothing, if the execution does not wait for an answer."""
    [row] = await tx.stage(ANSWER, execution, response, by)
    return bool(row["moved"])
