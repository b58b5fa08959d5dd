"""The messages of the worker protocol. A field that this version does not know is ignored, as a later one may send it."""

from __future__ import annotations

from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints

from penstock_api.models.model import Answer, Id, Instant

MOST_IN_BATCH = 500
LONGEST_WAIT_S = 60.0
LINE_LIMIT = 16 * 1024
PROTOCOL = 1

Name = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]+$")]
Ref = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.-]{1,300}$")]
AttemptNumber = Annotated[int, Field(ge=1, le=2_147_483_647, description="The number of the attempt.")]
ExecutionId = Annotated[Id, Field(description="The execution.")]


def _checked_carry(carry: dict[str, Any]) -> dict[str, Any]:
    """Check the fields of a carry that Penstock itself reads. Other fields belong to the worker."""
    answers, sleeps, until = carry.get("answers", []), carry.get("sleeps", 0), carry.get("until", "")
    if not isinstance(answers, list):
        raise ValueError("has `answers` that are not a list: leave them out, or send those of the attempt")
    if not isinstance(sleeps, int) or isinstance(sleeps, bool) or not 0 <= sleeps <= 2**31:
        raise ValueError("has `sleeps` that are not a number of sleeps, from 0 on")
    if not isinstance(until, str):
        raise ValueError("has an `until` that is not the text of an instant")
    return carry


Carry = Annotated[dict[str, Any], AfterValidator(_checked_carry)]


class Sent(BaseModel):
    """The base of messages of workers."""

    model_config = ConfigDict(extra="ignore", strict=True)


class OfferedAction(Sent):
    """An action for which a worker has the code. Its schemas are compared with those of the definition."""

    ref: Ref = Field(description="The action, such as `ml.train`. It must have a definition.")
    parameters: dict[str, Any] | None = Field(
        default=None,
        description="The JSON Schema of the parameters that the code takes. null: it is not compared.",
    )
    result: dict[str, Any] | None = Field(
        default=None,
        description="The JSON Schema of the result that the code returns. null: it is not compared.",
    )


class Hello(Sent):
    """The first message of a worker."""

    protocol: Literal[1] = Field(default=1, description="The version of the protocol.")
    name: Name = Field(description="The name of the worker, for people.")
    language: Name = Field(description="The language of the worker, such as typescript.")
    sdk: Name = Field(description="The library that speaks the protocol, with its version.")
    routes: list[Name] = Field(
        default_factory=lambda: ["default"],
        min_length=1,
        max_length=100,
        description="The routes (work queues) that it serves.",
    )
    actions: list[OfferedAction] = Field(
        min_length=1, max_length=2000, description="The actions for which it has the code."
    )
    labels: dict[Name, Name] = Field(
        default_factory=dict,
        max_length=100,
        description='The properties of the worker, as texts by name: `{"gpu": "a100"}`. It gets an action '
        "only if it has all labels that the action asks for.",
    )
    slots: int = Field(ge=1, le=10_000, description="The number of attempts that it runs at once.")


class SchemaDifference(Answer):
    """A place at which a schema of the worker differs from that of the current definition."""

    action: str = Field(description="The action.")
    part: Literal["parameters", "result"] = Field(description="The schema that differs.")
    text: str = Field(
        description="The place in the schema, with the value of the worker and that of the definition."
    )


class Welcome(Answer):
    """The answer to a hello."""

    protocol: int = Field(default=PROTOCOL, description="The version of the protocol.")
    worker: UUID = Field(description="The id of this worker.")
    session: str = Field(description="The secret of the session, for the header Penstock-Session.")
    beat_every: float = Field(description="The seconds between two heartbeats.")
    lost_after: float = Field(
        description="The seconds without a heartbeat after which other workers get its attempts."
    )
    wait_at_most: float = Field(description="The maximum of `wait` in a take or a heartbeat, in seconds.")
    batch_at_most: int = Field(
        description="The maximum number of entries in `ends`, `lines` or `reports` of one request."
    )
    result_bytes: int = Field(description="The maximum size of a result, in bytes of JSON.")
    differences: list[SchemaDifference] = Field(
        description="The differences between the schemas of the hello and those of the definitions, at most 20. They do not stop "
        "the work: the schemas of the definitions apply."
    )


class ActionError(Sent):
    """The error of an action."""

    type: Annotated[str, StringConstraints(min_length=1, max_length=500)] = Field(
        description="The name of the error's class, such as `TimeoutError`."
    )
    message: str = Field(default="", description="The text of the error.")
    traceback: str = Field(default="", description="The traceback, as text. Empty: there is none.")
    kinds: list[Annotated[str, StringConstraints(min_length=1, max_length=500)]] = Field(
        default_factory=list,
        max_length=50,
        description="The names of the error's class and of its bases. Retry policies name these.",
    )
    members: list[list[Annotated[str, StringConstraints(min_length=1, max_length=500)]]] = Field(
        default_factory=list,
        max_length=100,
        description="Of a group of errors: `kinds` of each member. The group is retried if each of them would be.",
    )
    retryable: bool | None = Field(
        default=None,
        description="True: another attempt may follow. False: none follows. null: the retry policy decides.",
    )
    retry_after: float | None = Field(
        default=None,
        ge=0,
        le=3e8,
        allow_inf_nan=False,
        description="The seconds until the next attempt; null: the retry policy decides.",
    )
    answer: dict[str, Any] | None = Field(
        default=None,
        description="Of a failed HTTP call: its `status` and its `body` (the first 2,048 characters); null: another "
        "error.",
    )


class End(Sent):
    """The end of an attempt."""

    execution: ExecutionId
    attempt: AttemptNumber
    outcome: Literal["completed", "failed", "timed_out", "deferred", "cancelled", "handed_back"] = Field(
        description="`completed`: with `result`. `failed`: with `error`. `timed_out`: the attempt took longer than "
        "its `timeout`. `deferred`: the action runs again later. `cancelled`: the attempt ended after a cancel; "
        "without a cancel, it counts as failed. "
        "`handed_back`: the worker stops, or gives the attempt up."
    )
    result: Any = Field(default=None, description="The result of a completed attempt, any JSON.")
    error: ActionError | None = Field(
        default=None, description="The error of a failed attempt; null for other outcomes."
    )
    delay: float | None = Field(
        default=None,
        ge=0,
        le=3e8,
        allow_inf_nan=False,
        description="Of a deferred attempt: the seconds until the next one; null: `until` is set.",
    )
    until: Instant | None = Field(
        default=None, description="Of a deferred attempt: the instant of the next one; null: `delay` is set."
    )
    state: Any = Field(default=None, description="Of a deferred attempt: the state that the next one gets.")
    carry: Carry | None = Field(
        default=None,
        description="Of a deferred attempt: values of the worker's library for the next one, in addition to "
        "`state`; null: none.",
    )
    started: bool = Field(
        default=True,
        description="False: the worker had not begun the attempt that it hands back, so the attempt does not count.",
    )


class Taking(Sent):
    """A request for attempts."""

    request: Id = Field(description="A random id of this request, which stays the same if it is sent again.")
    again: bool = Field(
        default=False, description="True: this request was sent before, and its answer was lost."
    )
    slots: int = Field(ge=1, le=10_000, description="The number of attempts that the worker can begin now.")
    wait: float = Field(default=0.0, ge=0, le=LONGEST_WAIT_S, description="The seconds to wait for work.")
    ends: list[End] = Field(
        default_factory=list,
        max_length=MOST_IN_BATCH,
        description="Ended attempts, as in `POST /api/v1/work/finish`. If there are any, the answer comes "
        "once they are stored, and `wait` is ignored.",
    )


class TakenAttempt(Answer):
    """An attempt with all that a worker needs to run it."""

    execution: UUID = Field(description="The id of the execution.")
    attempt: int
    max_attempts: int = Field(description="The number of attempts that the retry policy allows.")
    action: str
    tenant: str
    namespace: str
    parameters: dict[str, Any] = Field(
        description="The parameters, with the values of stored secrets. Keep them out of files and logs."
    )
    context: dict[str, Any] = Field(
        description="The values that the starter passed beside the parameters, such as `scheduled_time` of a "
        "schedule."
    )
    state: Any = Field(description="The state of the latest deferral; null for none.")
    answers: list[Any] = Field(description="The answers to inquiries so far.")
    carry: dict[str, Any] = Field(
        description="The values of the latest deferral: `state`, and those that the library added in `carry`."
    )
    secrets: dict[str, str] = Field(
        description="The values of the stored secrets that the options of the action refer to, by the names that its "
        "templates use."
    )
    timeout: float | None = Field(description="The seconds that the attempt may take; null: no limit.")
    workflow: UUID | None = Field(
        description="The id of the workflow's execution, if it is a task; else null."
    )
    root: UUID = Field(description="The id of the outermost execution around it, or its own.")
    task: str | None = Field(description="The name of its task in `workflow`; null: it is not a task.")
    waited: float = Field(description="The seconds since the execution became ready.")
    trace: dict[str, str] = Field(description="The W3C trace context for calls of the action.")


class Taken(Answer):
    attempts: list[TakenAttempt] = Field(
        description="The attempts, at most as many as `slots` of the request."
    )
    drain: bool = Field(description="True: the worker must take no more work.")
    lost_attempts: list[UUID] = Field(
        default_factory=list,
        serialization_alias="lost",
        description="The executions in `ends` of the request whose attempt no longer belongs to this worker. Nothing "
        "was stored for them.",
    )


class HeldAttempt(Sent):
    execution: ExecutionId
    attempt: AttemptNumber
    cancelling: bool = Field(
        default=False, description="True: the worker was asked to cancel the attempt, and is ending it."
    )


class Beat(Sent):
    """A heartbeat."""

    holding: list[HeldAttempt] = Field(
        default_factory=list,
        max_length=10_000,
        description="All attempts that the worker holds. An attempt that two heartbeats in a row leave out counts "
        "as lost.",
    )
    draining: bool = Field(default=False, description="True: the worker takes no more work.")
    wait: float = Field(
        default=0.0,
        ge=0,
        le=LONGEST_WAIT_S,
        description="The seconds for which the answer may be held back until there is a cancel or a drain.",
    )


class BeatAnswer(Answer):
    lost_attempts: list[UUID] = Field(
        serialization_alias="lost",
        description="The executions whose attempt no longer belongs to this worker.",
    )
    cancel: list[UUID] = Field(description="The executions whose attempt the worker must end as `cancelled`.")
    drain: bool = Field(description="True: the worker must take no more work.")


class NewLogLine(Sent):
    execution: ExecutionId
    attempt: AttemptNumber
    seq: int = Field(
        ge=1,
        le=2**53,
        description="The number of the line in its attempt. A line that is sent again with its number is stored once.",
    )
    stream: Literal["stdout", "stderr", "log"] = Field(
        default="log",
        description="The output to which the line was written: `stdout`, `stderr`, or `log` (a logger).",
    )
    line: str = Field(
        max_length=LINE_LIMIT, description="The text of the line, with at most 16,384 characters."
    )


class NewLogLines(Sent):
    lines: list[NewLogLine] = Field(min_length=1, max_length=MOST_IN_BATCH, description="The lines to store.")


class ProgressReport(Sent):
    execution: ExecutionId
    attempt: AttemptNumber
    seq: int = Field(
        ge=1,
        le=2**53,
        description="The number of the report in its attempt. A report that is sent again with its number is stored once.",
    )
    done: float = Field(ge=0, le=1, allow_inf_nan=False, description="The part that is done, from 0 to 1.")
    text: str = Field(
        default="",
        max_length=LINE_LIMIT,
        description="A text about the progress, for people. Empty: there is none.",
    )


class ProgressReports(Sent):
    reports: list[ProgressReport] = Field(
        min_length=1, max_length=MOST_IN_BATCH, description="The reports to store."
    )


class LostAttempts(Answer):
    lost_attempts: list[UUID] = Field(
        serialization_alias="lost",
        description="The executions whose attempt no longer belongs to this worker. Nothing was stored for them.",
    )


class Ends(Sent):
    ends: list[End] = Field(min_length=1, max_length=MOST_IN_BATCH, description="The ends of attempts.")
