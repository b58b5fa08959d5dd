"""The texts of `penstock explain` for errors that attempts and tasks report by a name, and that no Python code can catch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ReportedError:
    """The meaning of the name, the cause, and the remedy."""

    meaning: str
    why: str
    do: str


_MACHINE = "Look at the log of the worker and of its machine. [Task executors](../task-executors.md) have the limits and options."
REPORTED: Mapping[str, ReportedError] = {
    "HttpStatus": ReportedError(
        "The answer to an HTTP action has a status that the action does not expect.",
        "The service refused the request (4xx) or failed (5xx). `penstock show` has the body of the answer.",
        "Mend the request, or name the statuses that you expect. Only a `retry` policy of the action repeats the attempt. "
        "It may list `HttpStatus503` or `HttpStatus`: [call an API](../how-to/call-an-api.md).",
    ),
    "HttpUnreachable": ReportedError(
        "The address of an HTTP action could not be reached, or fell silent.",
        "The service is down, its name does not resolve, or a network or its timeout is in the way.",
        "Try the address from the worker's machine. A `retry` policy repeats the attempt.",
    ),
    "ExitStatus": ReportedError(
        "The program of a command action ended with another exit status than 0.",
        "The program failed. The message has its status and the last line of its standard error.",
        "`penstock logs` has what it wrote. Status 75 asks for a retry: [commands](../task-executors.md#command).",
    ),
    "Killed": ReportedError(
        "The program of an action was killed by a signal.",
        "SIGKILL often means that memory ran out.",
        _MACHINE,
    ),
    "CommandNotStarted": ReportedError(
        "The program of a command action cannot be started on the worker.",
        "It is not installed there, may not be executed, or its working directory is missing.",
        "Install it on every worker that serves the action, or give the workers that have it a label or a route.",
    ),
    "ProcessDied": ReportedError(
        "The child process of an attempt ended by itself.",
        "The code crashed the interpreter, or the kernel was out of memory.",
        _MACHINE,
    ),
    "ProcessNotStarted": ReportedError(
        "The child process of an attempt could not be started.",
        "The module cannot be imported there, or the machine has no room.",
        _MACHINE,
    ),
    "Stopped": ReportedError(
        "An attempt on a cluster was told to stop.", "It was cancelled, or its cluster ends.", _MACHINE
    ),
    "CancelledError": ReportedError(
        "A durable function was asked to end, and ended.",
        "The run was cancelled, or its time was over. Python raises the same name where a task is cancelled. A worker that calls "
        "a gateway has ended an attempt as cancelled, and no end was requested.",
        "`penstock history` says which request it was, and from whom.",
    ),
    "TimeoutError": ReportedError(
        "An attempt took longer than its timeout and was ended.",
        "The work is slow, or it waits for something that does not answer. Python raises the same name for waits of its own.",
        "Raise `timeout` of the action, or find what it waits for: [timeouts](../timeouts.md).",
    ),
    "WorkerLost": ReportedError(
        "The worker of an attempt was lost, and the action may not run again.",
        "The worker was killed, hung, or was cut off, and `on_worker_loss` is `fail`, or the work was lost too often.",
        "Find out what ended the worker. [Recovery](../recovery.md) says what follows a loss.",
    ),
    "HandedBack": ReportedError(
        "Workers that call a gateway handed the execution back 100 times in a row, over more than a day.",
        "They take it, and do not run it. The message names them.",
        "See their logs. Mend or stop these workers, and start the execution again.",
    ),
    "TaskFailed": ReportedError(
        "A task of a workflow failed, and nothing handled that.",
        "The error has the failure of the task as its `cause`.",
        "Mend the task, and run again what failed: `penstock rerun ID --from-failed`. A transition for failures handles it "
        "instead: [workflows](../workflows.md).",
    ),
    "TransitionFailed": ReportedError(
        "The values or conditions of a transition failed in a workflow.",
        "An expression reads a name or a value that is not there.",
        "Mend the expression that the message names. `penstock lint` finds wrong names before a run.",
    ),
    "ItemsFailed": ReportedError(
        "Items of a fan-out failed.",
        "The error names the items, and the first failure is its `cause`.",
        "Mend these items, and run again what failed: [fan-out](../how-to/fan-out.md).",
    ),
    "Failed": ReportedError(
        "A workflow said by itself that it fails.", "Its task `fail` was reached.", "The message says why."
    ),
    "WorkflowTooDeep": ReportedError(
        "Workflows run inside one another deeper than `max_workflow_depth`.",
        "Mostly a workflow runs itself.",
        "End the circle.",
    ),
    "DeadLetter": ReportedError(
        "The message of an execution could not be handled, again and again.",
        "The message says why. It is kept as a dead letter.",
        "See [dead letters](../how-to/dead-letters.md), mend the reason, and start the execution again.",
    ),
    "OutsideError": ReportedError(
        "The system outside reported a failure of the work that an action gave to it.",
        "It called the address of the callback, or a webhook, with an error without a type.",
        "Look there: [finish from outside](../how-to/finish-from-outside.md).",
    ),
    "NonRetryable": ReportedError(
        "The code of an action said that another attempt is of no use.",
        "It raised `NonRetryable`, so the retry policy was not asked.",
        "Mend what the message says, and run it again: `penstock rerun ID`.",
    ),
    "Retry": ReportedError(
        "The code of an action asked for another attempt, and none was left.",
        "It raised `Retry` in its last attempt.",
        "Raise `max_attempts` of the action's retry policy, or mend what it waits for.",
    ),
}
"""The errors by the name that `penstock why` and `penstock show` print."""
