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


_MACHINE = (
    "Read the log of the worker and the system log of its machine. [Task executors](../task-executors.md) "
    "describes the limits and options."
)
REPORTED: Mapping[str, ReportedError] = {
    "HttpStatus": ReportedError(
        "The answer to an HTTP action has a status that the action does not expect.",
        "The service refused the request (4xx) or failed (5xx). `penstock show` prints the body of the answer.",
        "Correct the request, or name the statuses that you expect. The attempt is only repeated if the "
        "action has a `retry` policy. The policy may name `HttpStatus503` or `HttpStatus`: [call an "
        "API](../how-to/call-an-api.md).",
    ),
    "HttpUnreachable": ReportedError(
        "The address of an HTTP action could not be reached, or stopped sending.",
        "The service is down, its name does not resolve, the network is down, or the answer took longer than the timeout.",
        "Try the address from the worker's machine. To repeat such attempts, give the action a `retry` policy.",
    ),
    "ExitStatus": ReportedError(
        "The program of a command action ended with an exit status other than 0.",
        "The program failed. The message has the exit status and the last line of standard error.",
        "Read the output of the program with `penstock logs`. A program can end with status 75 to request "
        "a retry: [commands](../task-executors.md#command).",
    ),
    "Killed": ReportedError(
        "The program of an action was killed by a signal.",
        "If the signal is SIGKILL, the machine or the container was often out of memory.",
        _MACHINE,
    ),
    "CommandNotStarted": ReportedError(
        "The program of a command action cannot be started on the worker.",
        "The program is not installed on the worker, is not executable, or its working directory is missing.",
        "Install the program on every worker that serves the action. Or give the workers with the program "
        "a label or a route of their own.",
    ),
    "ProcessDied": ReportedError(
        "The child process of an attempt ended without an outcome.",
        "The code crashed the interpreter, or the kernel killed the process because memory was short.",
        _MACHINE,
    ),
    "ProcessNotStarted": ReportedError(
        "The child process of an attempt could not be started.",
        "The module of the action cannot be imported in the child process, or the machine has no memory left.",
        _MACHINE,
    ),
    "Stopped": ReportedError(
        "An attempt on a cluster was stopped.",
        "The attempt was cancelled, or the cluster is shutting down.",
        _MACHINE,
    ),
    "CancelledError": ReportedError(
        "A durable function ended because its end was requested. Another cause: the attempt of a worker that calls a "
        "gateway ended as cancelled, although no end was requested.",
        "The run was cancelled or timed out. Python's own error for a cancelled task has the same name.",
        "`penstock history` shows the request and its author.",
    ),
    "TimeoutError": ReportedError(
        "An attempt took longer than its timeout and was ended.",
        "The code is slow, or waits for a service that does not answer. Python's own error for a timeout "
        "has the same name.",
        "Raise the `timeout` of the action, or find out what the code waits for: [timeouts](../timeouts.md).",
    ),
    "WorkerLost": ReportedError(
        "The worker of an attempt was lost, and the attempt is not repeated.",
        "The worker was killed, hung, or was cut off from the network. The attempt is not repeated if "
        "`on_worker_loss` is `fail`, or if the execution lost its worker too often.",
        "Find out why the worker ended. [Recovery](../recovery.md) describes the reaction to a lost worker.",
    ),
    "HandedBack": ReportedError(
        "Workers that call a gateway handed the execution back 100 times in a row, over more than a day.",
        "These workers take the execution, but do not run it. The message names them.",
        "Read the logs of these workers. Repair or stop the workers, and start the execution again.",
    ),
    "TaskFailed": ReportedError(
        "A task of a workflow failed, and no transition of the workflow handles the failure.",
        "The `cause` of this error is the error of the task.",
        "Correct the task, and rerun the failed tasks: `penstock rerun ID --from-failed`. To handle such "
        "failures in the workflow, add a transition for failures: [workflows](../workflows.md).",
    ),
    "TransitionFailed": ReportedError(
        "An expression in a transition of a workflow failed.",
        "The expression uses a name or a value that does not exist.",
        "Correct the expression that the message names. `penstock lint` finds wrong names before a run.",
    ),
    "ItemsFailed": ReportedError(
        "Items of a fan-out failed.",
        "The error names the items, and the first failure is its `cause`.",
        "Correct the cause, and rerun the failed items: [fan-out](../how-to/fan-out.md).",
    ),
    "Failed": ReportedError(
        "A workflow ended itself as failed.",
        "The workflow reached a task with the action `fail`.",
        "The message has the reason that the workflow gives.",
    ),
    "WorkflowTooDeep": ReportedError(
        "Workflows are nested deeper than `max_workflow_depth`.",
        "The usual cause is a workflow that runs itself.",
        "Add a condition that ends the recursion.",
    ),
    "DeadLetter": ReportedError(
        "The message of an execution could not be handled, and all retries failed.",
        "The text of the error names the reason. The message is kept as a dead letter.",
        "Remove the reason, and start the execution again: [dead letters](../how-to/dead-letters.md).",
    ),
    "OutsideError": ReportedError(
        "An outside system reported that the work of an action has failed.",
        "The outside system sent an error without a type to the address of the callback, or to a webhook.",
        "Look for the failure in the outside system: [finish from outside](../how-to/finish-from-outside.md).",
    ),
    "NonRetryable": ReportedError(
        "The code of an action ruled out another attempt.",
        "The code raised `NonRetryable`, so the retry policy was not applied.",
        "Remove the cause that the message names, and run the action again: `penstock rerun ID`.",
    ),
    "Retry": ReportedError(
        "The code of an action requested another attempt, but all attempts were used up.",
        "The code raised `Retry` in the last attempt that the retry policy allows.",
        "Raise `max_attempts` of the action's retry policy, or find out why the code needs so many attempts.",
    ),
}
"""The errors by the name that `penstock why` and `penstock show` print."""
