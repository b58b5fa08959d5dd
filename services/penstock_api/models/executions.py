"""The models of executions, for starting, showing and controlling them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import BeforeValidator, Field

from penstock.language.terms.column_ranges import HIGHEST_PRIORITY
from penstock_api.models.model import Answer, Given, Instant, JsonText, Seconds, Tenant, Text


def _item(value: int | None) -> int | None:
    return None if value == -1 else value


Item = Annotated[
    int | None, BeforeValidator(_item), Field(description="Of a task with items, which; else null.")
]


class Start(Given):
    """A start of an action or a workflow."""

    action: str = Field(description="An action or workflow, such as `shop.charge`.", max_length=300)
    parameters: dict[str, Any] = Field(default_factory=dict)
    secrets: dict[str, str] = Field(
        default_factory=dict,
        max_length=100,
        description="Parameters that are secrets of the store, each with the secret's name. Needs the scope define.",
    )
    tenant: Tenant = "public"
    priority: int = Field(default=0, ge=-HIGHEST_PRIORITY, le=HIGHEST_PRIORITY)
    delay: float | None = Field(default=None, ge=0, le=3e8, description="Seconds to put the start off.")
    at: Instant | None = Field(default=None, description="The instant to start at.")
    expires_at: Instant | None = Field(
        default=None, description="One that has not started by then ends as `timeout`."
    )


class Started(Answer):
    id: UUID = Field(description="The execution. It is stored for good.")


class ListedExecution(Answer):
    id: UUID
    status: str
    action: str
    namespace: str = Field(description="`tenant::pack::action`, or `tenant::pack::workflow::task`.")
    attempt: int
    created_at: datetime
    finished_at: datetime | None
    parent: UUID | None
    task: str | None
    item: Item


class Attempt(Answer):
    """An attempt of an execution."""

    attempt: int
    outcome: str = Field(
        description="running, completed, failed, timeout, cancelled, lost, deferred, waiting ..."
    )
    worker: str | None
    started_at: datetime | None = Field(description="null where it is older than the history is kept.")
    ended_at: datetime | None
    duration: Seconds | None
    error: JsonText = Field(description="What it failed with, or what it carried over to the next one.")


class Progress(Answer):
    """The progress of a run, as the run reported it."""

    done: float = Field(description="From 0 to 1.")
    text: str
    at: datetime
    attempt: int


class Told(Answer):
    """A command of a person to a run."""

    kind: str
    task: str | None
    value: Any
    by: str
    reason: str | None
    created_at: datetime
    obeyed_at: datetime | None
    error: str | None


class Task(Answer):
    """A task of a workflow's run, with the tasks of the workflow that it runs, if it runs one."""

    name: str
    does: str
    after: list[str]
    status: str
    begun: datetime | None
    ended: datetime | None
    items: int | None
    waited: float | None = Field(default=None, description="Seconds without any execution that ran.")
    ran: float | None = Field(default=None, description="Seconds in which some execution ran.")
    executions: dict[str, int] = Field(description="How many it has, by status.")
    execution: UUID | None = Field(description="The only one, or the first.")
    kept: bool = Field(description="Its result is that of the run before.")
    critical: bool = Field(description="On the critical path.")
    tasks: list[Task]


class Step(Answer):
    """A recorded step of a durable function."""

    label: str = Field(description="What `skip`, `set-result` and `rerun` call it: `charge`, `1/charge:2`.")
    name: str
    ordinal: int = Field(description="The how-manyth of this name; 1 for the first.")
    branch: list[int] = Field(description="The numbers of the tasks around it, outermost first.")
    kind: str = Field(description="step, value, version, sleep, run, map, ask, wait_for, signal, given.")
    status: str
    tries: int
    took: float = Field(description="Seconds that its function ran.")
    at: datetime
    result: Any
    error: Any
    execution: UUID | None = Field(description="Its own, if it has one.")


class Trace(Answer):
    id: str = Field(description="As W3C writes it.")
    url: str | None = Field(description="Where it is shown, as PENSTOCK_TRACE_URL says.")


class Ending(Answer):
    """The outcome of an execution; secrets are `***`."""

    id: UUID
    status: str
    finished: bool
    result: Any
    error: Any


class Effect(Answer):
    """An event that an action published through its worker, or an execution that it started."""

    id: UUID
    kind: Literal["event", "execution"]
    created_at: datetime
    name: str | None = Field(
        description="The trigger or the action; null if the row is older than the retention."
    )
    status: str | None = Field(description="The status of an execution.")


class Execution(Answer):
    """Everything about an execution; secrets are `***`."""

    id: UUID
    status: str
    namespace: str
    action: str
    kind: str | None
    queue: str | None
    attempt: int
    failures: int
    recoveries: int
    priority: int
    parent: UUID | None
    task: str | None
    item: Item
    created_at: datetime
    ready_at: datetime | None
    since: datetime | None
    not_before: datetime | None
    finished_at: datetime | None
    reason: str | None
    waited: float | None = Field(default=None, description="Seconds in which it did not run.")
    ran: float | None = Field(
        default=None, description="Seconds that it ran; of a workflow, in which any of its tasks did."
    )
    params: Any
    options: Any
    origin: Any
    trace: Trace | None = Field(default=None, description="What it belongs to, if it is traced.")
    result: Any
    error: Any
    attempts: list[Attempt]
    progress: Progress | None = Field(description="What it said last of how far it is.")
    told: list[Told]
    effects: list[Effect] = Field(default_factory=list, description="At most 200, oldest first.")
    tasks: list[Task] = Field(default_factory=list, description="Of a workflow.")
    critical_path: list[str] = Field(default_factory=list)
    durable: bool = Field(description="Whether it is a durable function.")
    steps: list[Step] = Field(default_factory=list, description="Of a durable function.")
    state: dict[str, Any] = Field(default_factory=dict, description="What it shows of itself (ctx.set).")


class Move(Answer):
    at: datetime
    old: str | None
    new: str
    attempt: int
    actor: str | None
    reason: str | None


class LogLine(Answer):
    attempt: int
    seq: int
    stream: str
    line: str
    at: datetime
    worker_id: UUID
    worker: str


class Log(Answer):
    lines: list[LogLine]
    next: str | None = Field(description="`after` of what comes next; null where it has printed nothing yet.")
    ended: bool = Field(description="It has ended, and these were its last lines.")


class Why(Answer):
    id: UUID
    status: str
    because: str = Field(description="One word for programs: `limit`, `worker`, `timer` ...")
    says: str = Field(description="A sentence for people.")
    facts: dict[str, Any]


Reason = Annotated[Text | None, Field(description="Kept with the run.")]


class Because(Given):
    reason: Reason = None


class NewPriority(Given):
    priority: int = Field(
        ge=-HIGHEST_PRIORITY, le=HIGHEST_PRIORITY, description="Higher goes first; 0 is ordinary."
    )


class PriorityChanged(Answer):
    changed: int = Field(description="How many executions had another priority: it and its tasks.")


class ToldToEnd(Answer):
    told: int = Field(description="How many were told.")


TaskOrStep = Annotated[
    Text, Field(description="A task of a workflow; of a durable function a step, by its label.")
]


class Skip(Given):
    task: TaskOrStep
    reason: Reason = None


class SetResult(Given):
    task: TaskOrStep
    result: Any
    reason: Reason = None


class Rerun(Given):
    from_failed: bool = Field(
        default=False, description="Of a workflow or a durable function: keep what succeeded."
    )
    from_task: Text | None = Field(
        default=None,
        description="Of a workflow: keep what does not come after this task. Of a durable function: what came before this step.",
    )
    parameters: dict[str, Any] | None = Field(
        default=None, description="Parameters that replace those of the same names, in a whole re-run."
    )
    reason: Reason = None


class Signal(Given):
    """A signal to a durable function."""

    name: Text = Field(description="What it waits for: `ctx.signal(name)`.")
    value: Any = Field(default=None, description="What `ctx.signal` gives it.")


class Accepted(Answer):
    """The confirmation of a stored command, which will be followed."""

    id: UUID
    command: Literal["pause", "resume", "skip", "set_result"]
    by: str
