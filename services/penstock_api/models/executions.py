"""The models of executions, for starting, showing and controlling them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import AfterValidator, Field

from penstock.language.terms.budgets import MAX_UNITS, UNIT, WhenSpent
from penstock.language.terms.column_ranges import HIGHEST_PRIORITY, MAX_AMOUNT
from penstock.language.terms.debounce import StartKeep
from penstock.language.terms.options import Wrong
from penstock.language.terms.run_labels import MAX_LABELS, MAX_VALUE, check_labels
from penstock.language.workflows.progress import SentCommand
from penstock.operate.durable_steps import Step
from penstock.store.admission.budgets import BudgetShare
from penstock.store.executions.effects import Effect
from penstock.store.executions.execution_list import FAILURE, PAUSED, WAITS_FOR, ListedWait
from penstock.store.executions.log_lines import LogLine
from penstock.store.executions.past_attempts import PastAttempt
from penstock.store.session.http_field_types import Item
from penstock_api.models.model import (
    Answer,
    Duration,
    Given,
    Instant,
    MaxDepth,
    MaxDescendants,
    ReasonText,
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
    parameters: dict[str, Any] = Field(
        default_factory=dict, description="The parameters, which must match the schema of the action."
    )
    secrets: dict[str, str] = Field(
        default_factory=dict,
        max_length=100,
        description='Parameters whose values are stored secrets, each with the name of its secret: `{"api_key": '
        '"NAME"}`. Needs the scope `define`.',
    )
    tenant: Tenant = Field(default="public", description="The tenant of the execution.")
    priority: int = Field(default=0, ge=-HIGHEST_PRIORITY, le=HIGHEST_PRIORITY)
    delay: Duration | None = Field(
        default=None, description='The time until the start: seconds, or a text such as "5m". null: no delay.'
    )
    at: Instant | None = Field(
        default=None, description="The instant of the start. null: now, or after `delay`."
    )
    expires_at: Instant | None = Field(
        default=None,
        description="An execution that has not started by this instant ends as `timeout`. null: never.",
    )
    budget: dict[str, Annotated[float, Field(gt=0, le=MAX_AMOUNT)]] | None = Field(
        default=None,
        min_length=1,
        max_length=MAX_UNITS,
        description="An amount for each unit, shared by the execution and all executions that it starts. null: no budget.",
    )
    when_spent: WhenSpent = Field(
        default="refuse",
        description="The reaction to a spent budget. `refuse`: an execution that needs more than is left is "
        "cancelled. `wait`: it waits until the budget is raised.",
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
        description="Requests with the same `debounce_key` become one execution. It begins when no further request has "
        'come for this time: seconds, or a text such as "5s". null: each request is an execution.',
    )
    debounce_key: str | None = Field(
        default=None,
        max_length=1000,
        description="Requests with the same key, action and tenant become one execution. null: the action and the tenant "
        "are the key.",
    )
    at_most: Duration | None = Field(
        default=None,
        description='The maximum debounce time after the first request: seconds, or a text such as "5m". null: no bound.',
    )
    keep: StartKeep = Field(
        default="last",
        description="The request that gives the parameters to the debounced execution: the last or the first.",
    )


class Started(Answer):
    id: UUID = Field(description="The id of the execution, which is durably stored.")


class Progress(Answer):
    """The progress of a run, as the run reported it."""

    done: float = Field(description="The progress, from 0 to 1.")
    text: str = Field(description="The reported text. Empty: there is none.")
    at: datetime = Field(description="The instant of the report.")
    attempt: int


class Task(Answer):
    """A task of an execution of a workflow, with the tasks of the workflow that it runs, if it runs one."""

    name: str = Field(description="The name of the task.")
    does: str = Field(description="The action or workflow that it runs, or the kind of its wait.")
    after: list[str]
    status: str = Field(
        description="`not started`: tasks before it have not ended. `due`: it is about to start. `paused`: "
        "it starts when the workflow is resumed. Otherwise a status of an execution, such as "
        "`running` or `failed`."
    )
    begun: datetime | None = Field(
        description="The instant at which its first execution was created; null: it has none."
    )
    ended: datetime | None = Field(
        description="The instant at which its last execution ended; null: it has not ended."
    )
    items: int | None = Field(
        description="The number of items, if it runs once for each item of a list; else null."
    )
    waited: float | None = Field(
        default=None,
        description="The seconds since it began in which none of its executions ran; null: not known.",
    )
    ran: float | None = Field(
        default=None, description="The seconds in which at least one of its executions ran; null: not known."
    )
    executions: dict[str, int] = Field(
        description='The number of its executions by status, such as `{"completed": 3}`.'
    )
    execution: UUID | None = Field(
        description="The id of its only or its first execution; null: it has none."
    )
    kept: bool = Field(description="True if its result was kept from the run before.")
    dropped: int = Field(
        default=0,
        description="The number of its executions that are past their retention, and not stored any more.",
    )
    critical: bool = Field(description="True for a task on the critical path.")
    paused: bool = Field(
        default=False,
        description="True: it continues when its workflow, or the workflow that it runs, is resumed. Its status does not "
        "change with the pause.",
    )
    held: bool = Field(
        default=False,
        description="True: it continues when a hold is released. Its status does not change with the hold.",
    )
    skipped_because: str | None = Field(
        default=None,
        description="The reason why it was skipped without an execution; null: it was not, or the reason is not known.",
    )
    tasks: list[Task] = Field(description="The tasks of the workflow that it runs. Empty: it runs none.")


class Trace(Answer):
    id: str = Field(description="The trace id, as in the header `traceparent` (W3C Trace Context).")
    url: str | None = Field(
        description="The URL of the trace, from PENSTOCK_TRACE_URL; null: that is not set."
    )


class Ending(Answer):
    """The outcome of an execution; secrets are `***`."""

    id: UUID = Field(description="The id of the execution.")
    status: str
    finished: bool = Field(description="True if it has ended, so that the status is final.")
    result: Any
    error: Any
    failure: str | None = Field(default=None, description=FAILURE)


class RaiseBudget(Given):
    """A higher amount of a budget."""

    unit: str = Field(pattern=f"^{UNIT}$", description="The unit, such as tokens.")
    amount: float = Field(
        gt=0, le=MAX_AMOUNT, description="The new amount of the whole budget, higher than the present one."
    )


class Budget(Answer):
    """A budget of the execution's tree."""

    owner: UUID = Field(description="The execution that has the budget.")
    unit: str = Field(description="The unit, such as tokens.")
    amount: float = Field(description="The size of the whole budget.")
    when_spent: str = Field(
        description="The reaction to a spent budget. `refuse`: an execution that needs more than is left "
        "is cancelled. `wait`: it waits until the budget is raised."
    )
    used: float = Field(description="The amount that ended attempts used.")
    reserved: float = Field(description="The amount that is reserved for attempts that have not ended.")
    remaining: float = Field(
        description="The amount that is left: `amount` less `used` and `reserved`. Below 0 if attempts "
        "took more than they had reserved."
    )
    shares: list[BudgetShare] = Field(description="The part of each action.")


class Execution(Answer):
    """Everything about an execution; secrets are `***`."""

    id: UUID = Field(description="The id of the execution.")
    status: str
    namespace: str
    action: str
    kind: str | None = Field(
        description="`action`, `workflow`, or `wait` (a task that waits for an event or an answer); null if it "
        "is archived."
    )
    queue: str | None = Field(
        description="The work queue, such as `work.gpu` for the route `gpu`; null for a wait, or if it is archived."
    )
    attempt: int = Field(
        description="The number of times that a worker began it, whatever the outcome; 0 if none has."
    )
    failures: int = Field(
        description="The number of its attempts that failed or timed out. A retry policy counts these."
    )
    recoveries: int = Field(
        description="The number of its attempts that were lost with their worker. `max_recoveries` of the "
        "action bounds these."
    )
    priority: int
    parent: UUID | None
    task: str | None
    item: Item
    created_at: datetime
    ready_at: datetime | None = Field(
        description="The instant at which it, or its retry, became ready. It decides the place in the queue. null "
        "if it is archived."
    )
    since: datetime | None = Field(
        description="The beginning of its present wait for a limit or a worker, if that is later than "
        "`ready_at`; else null."
    )
    not_before: datetime | None = Field(
        description="The instant before which it does not start (a delay, a retry); null: there is none, or it is held."
    )
    finished_at: datetime | None
    reason: str | None = Field(description="The reason for its present status; null: not known.")
    waited: float | None = Field(
        default=None, description="The seconds for which it waited; null: its history is not kept any more."
    )
    ran: float | None = Field(
        default=None,
        description="The seconds for which it ran; for a workflow: for which at least one of its tasks ran. null: "
        "its history is not kept any more.",
    )
    title: str | None = Field(
        default=None, description="The title of the run; null: its action declares none."
    )
    key: str | None = Field(
        default=None,
        description="The idempotency key of its start; if several debounced starts share it, of the first one. null: it has "
        "none, or the key is not kept any more.",
    )
    labels: dict[str, str] = Field(
        default_factory=dict,
        description="The labels: texts by name, with those inherited from the workflow or rule.",
    )
    params: Any = Field(description="The parameters; secrets are `***`.")
    options: Any = Field(description="The options of its start, such as its budget; null: there are none.")
    origin: Any = Field(
        description="The starter: `by` names the caller, and `started_by` the execution that started it. "
        "null: not known."
    )
    trace: Trace | None = Field(
        default=None, description="The trace of the execution; null: it is not traced."
    )
    result: Any
    error: Any
    failure: str | None = Field(default=None, description=FAILURE)
    waits_for: ListedWait | None = Field(default=None, description=WAITS_FOR)
    paused: bool = Field(default=False, description=PAUSED)
    attempts: list[PastAttempt] = Field(description="Its attempts, oldest first.")
    budgets: list[Budget] = Field(default_factory=list, description="The budgets of its tree.")
    progress: Progress | None = Field(description="The last reported progress; null: none was reported.")
    told: list[SentCommand] = Field(
        description="The commands that were sent to it, such as `pause`, and the answers to its questions, oldest first."
    )
    effects: list[Effect] = Field(
        default_factory=list,
        description="The events that it published and the executions that it started: at most 200, oldest first.",
    )
    tasks: list[Task] = Field(default_factory=list, description="The tasks of a workflow.")
    critical_path: list[str] = Field(
        default_factory=list,
        description="The names of the tasks that determined how long the workflow took, in order. Empty: "
        "it is not a workflow.",
    )
    durable: bool = Field(description="True for a durable function.")
    steps: list[Step] = Field(default_factory=list, description="The steps of a durable function.")
    state: dict[str, Any] = Field(
        default_factory=dict, description="The values that a durable function has set with ctx.set."
    )


class Log(Answer):
    lines: list[LogLine] = Field(description="The lines, oldest first.")
    next: str | None = Field(
        description="The value of `after` for the next lines; null if nothing was printed yet."
    )
    ended: bool = Field(description="True if the execution has ended, and these were its last lines.")


class Explanation(Answer):
    id: UUID = Field(description="The id of the execution.")
    status: str
    because: str = Field(description="One word for programs: `limit`, `worker`, `timer` ...")
    sentence: str = Field(
        description="One sentence for people. If it waits for a task, the sentence says what the task waits for, at any depth."
    )
    details: list[str] = Field(description="Further sentences, such as the command that helps.")
    says: str = Field(description="The sentence and the details, as one text.")
    facts: dict[str, Any] = Field(
        description="The facts behind the sentence, as data. `path` leads to the task or step, at any "
        "depth, that causes the wait, and `cause` has the facts of that execution."
    )


Reason = Annotated[ReasonText | None, Field(description="The reason, stored with the run. null: none.")]


class CommandReason(Given):
    reason: Reason = None


class NewPriority(Given):
    priority: int = Field(ge=-HIGHEST_PRIORITY, le=HIGHEST_PRIORITY)


class PriorityChanged(Answer):
    changed: int = Field(
        description="The number of executions with a changed priority: the execution and its tasks."
    )


class Reschedule(Given):
    """The new start of an execution: `at`, or after `delay`. Without both it starts at once."""

    at: Instant | None = Field(
        default=None, description="The instant at which it starts. null: after `delay`, or at once."
    )
    delay: Duration | None = Field(
        default=None,
        description='The time until it starts: seconds, or a text such as "5m". null: at the instant in `at`, or at once.',
    )
    reason: Reason = None


class Rescheduled(Answer):
    at: datetime = Field(description="The instant at which it starts.")


class CancelAnswer(Answer):
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
    result: Any = Field(description="The result of the task or step, any JSON.")
    reason: Reason = None
    ahead: Ahead = False


class Complete(Given):
    """The outcome of a wait for an outside system: a result, or an error."""

    result: Any = Field(default=None, description="The result, any JSON. It counts if `error` is null.")
    error: Text | None = Field(
        default=None,
        description="The error of its attempt. The retry policy decides about another attempt. null: the wait has "
        "succeeded.",
    )


class Rerun(Given):
    from_failed: bool = Field(
        default=False,
        description="For a workflow or a durable function: keep the tasks or steps that succeeded.",
    )
    from_task: Text | None = Field(
        default=None,
        description="For a workflow: rerun this task and all tasks after it, and keep the results of the other ended tasks. "
        "For a durable function: rerun from this step, and keep the steps before it. null: no such restriction.",
    )
    parameters: dict[str, Any] | None = Field(
        default=None,
        description="Parameters that replace those of the same names. The others stay. A key may be the path of a value "
        "inside a parameter: `customer.name`. null: no change.",
    )
    unset: list[Text] = Field(
        default=[], description="Parameters to leave out, so that their defaults apply."
    )
    labels: Annotated[dict[str, str], AfterValidator(_labels)] = Field(
        default_factory=dict,
        max_length=MAX_LABELS,
        description="Labels to add, or to replace. The others stay. If a label takes its value from a parameter, it "
        "gets the new value.",
    )
    reason: Reason = None


class Signal(Given):
    """A signal to a durable function."""

    name: Text = Field(description="The name of the signal, as in `ctx.signal(name)`.")
    value: Any = Field(default=None, description="The value that `ctx.signal` returns.")


class SignalByKey(Signal):
    """A signal to the durable function that was started with an idempotency key."""

    key: Text = Field(description="The idempotency key with which the durable function was started.")
    tenant: Tenant = Field(default="public", description="The tenant of the execution.")


class Accepted(Answer):
    """The confirmation of a command. The command is stored, and the run will carry it out."""

    id: UUID = Field(description="The id of the execution that gets the command.")
    command: Literal["pause", "resume", "skip", "set_result"] = Field(description="The stored command.")
    by: str
    notice: str | None = Field(
        None,
        description="Sentences for people if tasks before the named task have not ended. null: there is nothing to note.",
    )
