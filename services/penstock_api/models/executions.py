"""The models of executions, for starting, showing and controlling them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import AfterValidator, Field

from penstock.language.terms.budgets import MAX_UNITS, UNIT, WhenSpent
from penstock.language.terms.bursts import StartKeep
from penstock.language.terms.column_ranges import HIGHEST_PRIORITY, MAX_AMOUNT
from penstock.language.terms.options import Wrong
from penstock.language.terms.run_labels import MAX_LABELS, MAX_VALUE, check_labels
from penstock.language.workflows.progress import SentCommand
from penstock.operate.durable_steps import Step
from penstock.store.admission.budgets import BudgetShare
from penstock.store.executions.effects import Effect
from penstock.store.executions.execution_list import FAILURE
from penstock.store.executions.log_lines import LogLine
from penstock.store.executions.past_attempts import PastAttempt
from penstock.store.session.answer_fields import Item
from penstock_api.models.model import (
    Answer,
    Duration,
    Given,
    Instant,
    MaxDepth,
    MaxDescendants,
    Tenant,
    Text,
)


def _labels(labels: dict[str, str]) -> dict[str, str]:
    try:
        return check_labels(labels)
    except Wrong as wrong:
        raise ValueError(f"{wrong}. {wrong.hint}") from None


class Start(Given):
    """A start of an action or a workflow."""

    action: str = Field(description="An action or workflow, such as `shop.charge`.", max_length=300)
    parameters: dict[str, Any] = Field(default_factory=dict)
    secrets: dict[str, str] = Field(
        default_factory=dict,
        max_length=100,
        description="Parameters with a stored secret as their value, each with the name of the secret. Needs the scope define.",
    )
    tenant: Tenant = "public"
    priority: int = Field(default=0, ge=-HIGHEST_PRIORITY, le=HIGHEST_PRIORITY)
    delay: Duration | None = Field(
        default=None, description='The time until the start: seconds, or a text such as "5m".'
    )
    at: Instant | None = Field(default=None, description="The instant of the start.")
    expires_at: Instant | None = Field(
        default=None, description="An execution that has not started by this instant ends as `timeout`."
    )
    budget: dict[str, Annotated[float, Field(gt=0, le=MAX_AMOUNT)]] | None = Field(
        default=None,
        min_length=1,
        max_length=MAX_UNITS,
        description="An amount for each unit, shared by all of its tree.",
    )
    when_spent: WhenSpent = Field(
        default="refuse", description="What to do with an execution that needs more than its budget has left."
    )
    max_depth: MaxDepth = None
    max_descendants: MaxDescendants = None
    labels: Annotated[dict[str, str], AfterValidator(_labels)] = Field(
        default_factory=dict,
        max_length=MAX_LABELS,
        description=f"Labels by which lists find it. A value has 1 to {MAX_VALUE} characters.",
    )
    debounce: Duration | None = Field(
        default=None,
        description="Starts with one key become one execution, which begins when no further start came for this time: "
        'seconds, or a text such as "5s".',
    )
    debounce_key: str | None = Field(
        default=None,
        max_length=1000,
        description="Starts with the same key, action and tenant are of one burst.",
    )
    at_most: Duration | None = Field(default=None, description="The longest time of a burst.")
    keep: StartKeep = Field(default="last", description="The start of a burst that gives the parameters.")


class Started(Answer):
    id: UUID = Field(description="The id of the execution, which is durably stored.")


class Progress(Answer):
    """The progress of a run, as the run reported it."""

    done: float = Field(description="The progress, from 0 to 1.")
    text: str
    at: datetime
    attempt: int


class Task(Answer):
    """A task of a workflow's run, with the tasks of the workflow that it runs, if it runs one."""

    name: str
    does: str
    after: list[str]
    status: str
    begun: datetime | None
    ended: datetime | None
    items: int | None
    waited: float | None = Field(default=None, description="Seconds in which none of its executions ran.")
    ran: float | None = Field(
        default=None, description="Seconds in which at least one of its executions ran."
    )
    executions: dict[str, int] = Field(description="The number of its executions by status.")
    execution: UUID | None = Field(description="The id of its only or its first execution.")
    kept: bool = Field(description="True if its result was kept from the run before.")
    critical: bool = Field(description="True for a task on the critical path.")
    tasks: list[Task]


class Trace(Answer):
    id: str = Field(description="The id of the trace, in the notation of W3C.")
    url: str | None = Field(description="The address that shows the trace, by PENSTOCK_TRACE_URL.")


class Ending(Answer):
    """The outcome of an execution; secrets are `***`."""

    id: UUID
    status: str
    finished: bool
    result: Any
    error: Any
    failure: str | None = Field(default=None, description=FAILURE)


class RaiseBudget(Given):
    """A higher amount of a budget."""

    unit: str = Field(pattern=f"^{UNIT}$", description="The unit, such as tokens.")
    amount: float = Field(gt=0, le=MAX_AMOUNT)


class Budget(Answer):
    """A budget of the execution's tree."""

    owner: UUID = Field(description="The execution for which it was made.")
    unit: str
    amount: float
    when_spent: str
    used: float
    reserved: float
    remaining: float
    shares: list[BudgetShare]


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
    waited: float | None = Field(default=None, description="Seconds for which it waited.")
    ran: float | None = Field(
        default=None, description="Seconds for which it ran; for a workflow, in which any of its tasks ran."
    )
    title: str | None = Field(default=None, description="The title, if its action has one.")
    labels: dict[str, str] = Field(default_factory=dict, description="The labels, with the inherited ones.")
    params: Any
    options: Any
    origin: Any
    trace: Trace | None = Field(default=None, description="The trace, if the execution is traced.")
    result: Any
    error: Any
    failure: str | None = Field(default=None, description=FAILURE)
    attempts: list[PastAttempt]
    budgets: list[Budget] = Field(default_factory=list, description="The budgets of its tree.")
    progress: Progress | None = Field(description="The last reported progress.")
    told: list[SentCommand]
    effects: list[Effect] = Field(default_factory=list, description="At most 200, oldest first.")
    tasks: list[Task] = Field(default_factory=list, description="The tasks of a workflow.")
    critical_path: list[str] = Field(default_factory=list)
    durable: bool = Field(description="True for a durable function.")
    steps: list[Step] = Field(default_factory=list, description="The steps of a durable function.")
    state: dict[str, Any] = Field(
        default_factory=dict, description="The values that a durable function has set with ctx.set."
    )


class Log(Answer):
    lines: list[LogLine]
    next: str | None = Field(
        description="The value of `after` for the next lines; null if nothing was printed yet."
    )
    ended: bool = Field(description="True if the execution has ended, and these were its last lines.")


class Why(Answer):
    id: UUID
    status: str
    because: str = Field(description="One word for programs: `limit`, `worker`, `timer` ...")
    sentence: str = Field(
        description="One sentence for people, about what it waits for in the end, at any depth."
    )
    details: list[str] = Field(description="Further sentences, such as the command that helps.")
    says: str = Field(description="The sentence and the details, as one text.")
    facts: dict[str, Any]


Reason = Annotated[Text | None, Field(description="The reason, stored with the run.")]


class Because(Given):
    reason: Reason = None


class NewPriority(Given):
    priority: int = Field(
        ge=-HIGHEST_PRIORITY,
        le=HIGHEST_PRIORITY,
        description="The priority: higher goes first, and 0 is the default.",
    )


class PriorityChanged(Answer):
    changed: int = Field(
        description="The number of executions that had another priority, including its tasks."
    )


class Reschedule(Given):
    """The new start of an execution: `at`, or after `delay`. Without both it starts at once."""

    at: Instant | None = Field(default=None, description="The instant at which it starts.")
    delay: Duration | None = Field(
        default=None, description='The time until it starts: seconds, or a text such as "5m".'
    )
    reason: Reason = None


class Rescheduled(Answer):
    at: datetime = Field(description="The instant at which it starts.")


class ToldToEnd(Answer):
    told: int = Field(description="The number of executions that were asked to end.")


TaskOrStep = Annotated[
    Text, Field(description="A task of a workflow, or the label of a durable function's step.")
]


Ahead = Annotated[
    bool,
    Field(
        description="True: also a step that the durable function has not asked for yet. False: such a step is refused."
    ),
]


class Skip(Given):
    task: TaskOrStep
    reason: Reason = None
    ahead: Ahead = False


class SetResult(Given):
    task: TaskOrStep
    result: Any
    reason: Reason = None
    ahead: Ahead = False


class Complete(Given):
    """The outcome of a wait for an outside system: a result, or an error."""

    result: Any = None
    error: Text | None = Field(
        default=None, description="The error of its attempt. The retry policy decides about another attempt."
    )


class Rerun(Given):
    from_failed: bool = Field(
        default=False,
        description="For a workflow or a durable function: keep the tasks or steps that succeeded.",
    )
    from_task: Text | None = Field(
        default=None,
        description="For a workflow: keep tasks that do not come after this one. For a durable function: keep steps before it.",
    )
    parameters: dict[str, Any] | None = Field(
        default=None,
        description="Parameters that replace those of the same names. The others stay. `customer.name` is a path.",
    )
    unset: list[Text] = Field(
        default=[], description="Parameters to leave out, so that their defaults apply."
    )
    labels: Annotated[dict[str, str], AfterValidator(_labels)] = Field(
        default_factory=dict,
        max_length=MAX_LABELS,
        description="Labels to add, or to replace. The others stay. A label that is made of a parameter gets the new value.",
    )
    reason: Reason = None


class Signal(Given):
    """A signal to a durable function."""

    name: Text = Field(description="The name of the signal, as in `ctx.signal(name)`.")
    value: Any = Field(default=None, description="The value that `ctx.signal` returns.")


class Accepted(Answer):
    """The confirmation of a stored command, which will be followed."""

    id: UUID
    command: Literal["pause", "resume", "skip", "set_result"]
    by: str
