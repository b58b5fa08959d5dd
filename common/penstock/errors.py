"""The errors that Penstock raises, as one tree. Each docstring says what the error means and what to do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any


class PenstockError(Exception):
    """An error that Penstock can explain. `hint` says what to do next."""

    awaited = False
    """True in a service that tries again until an operator has mended the cause, such as a missing schema."""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class ConfigurationError(PenstockError):
    """A setting is wrong, or two settings contradict each other. The message names the setting."""


class MissingExtra(ConfigurationError):
    """A part of Penstock needs libraries that are not installed. The message has the pip command that installs them.
    The exit code is 2, as for wrong usage."""


class ConnectionFailed(PenstockError):
    """PostgreSQL or RabbitMQ could not be reached in time."""


class ClientUnusable(PenstockError):
    """A client was called after its `close`, or in a process that was forked from the client's own. Create another client."""


class ServerFull(ConnectionFailed):
    """The limit of connections of PostgreSQL, of the database or of the role is reached. Raise the limit, run fewer
    processes, or let each process have fewer connections (`PENSTOCK_DATABASE_CONNECTIONS`)."""


class NotMigrated(ConfigurationError):
    """The database has no schema yet, or lacks functions that this release calls. Run `penstock migrate`."""


class ServersNotReady(PenstockError):
    """The servers of a service were not ready within the time of `--wait`. The service ends with exit code 3."""


class PartEnded(PenstockError):
    """An essential part of a service has ended, so the service ends. Start the service again, and read its log."""


class DefinitionError(PenstockError):
    """An action, trigger, rule, workflow, limit, route or schedule is wrong as written."""


def as_one(errors: Sequence[DefinitionError]) -> DefinitionError:
    """Return one error for several, with a line and a hint for each. A single error is returned unchanged."""
    if len(errors) == 1:
        return errors[0]
    lines = [
        error.message
        if "\n" in error.message or not error.hint
        else f"{error.message.removesuffix('.')}. {error.hint}"
        for error in errors
    ]
    text = "\n".join(lines)
    return DefinitionError(text, hint=f"{len(text.splitlines())} problems were found; nothing was stored.")


@contextmanager
def all_at_once() -> Iterator[Callable[[], AbstractContextManager[None]]]:
    """Collect errors and raise them as one. In the block, `with problem(): ...` keeps a DefinitionError and goes on."""
    errors: list[DefinitionError] = []

    @contextmanager
    def problem() -> Iterator[None]:
        try:
            yield
        except DefinitionError as error:
            errors.append(error)

    yield problem
    if errors:
        raise as_one(errors)


class ExpressionError(DefinitionError):
    """A template or condition does not parse, failed, or exceeded its limit of steps or size."""


class InvalidInput(PenstockError):
    """A payload or parameters do not match their schema, or are too large. Nothing was stored."""


class CheckTooCostly(InvalidInput):
    """The check of a value against its schema takes more steps than are allowed. The value is refused, and not tried
    again. Send a smaller value, or simplify the schema."""


class NotFound(PenstockError):
    """No action, rule, event, execution, schedule or limit has this name or id."""


class Conflict(PenstockError):
    """The request contradicts what is already stored, such as an idempotency key with other parameters."""


class WrongClock(PenstockError):
    """The clock of this machine differs from that of the database by more than an hour, so the ids that it creates are
    refused. Clients replace such ids by ids from the clock of the database. Correct the clock of this machine (NTP)."""


class IllegalMove(PenstockError):
    """The database refused a status change that is not allowed. `penstock.language.moves` declares the allowed ones."""


class ResultNotStorable(PenstockError):
    """A result is not JSON, is too large, or contains NUL, NaN or Infinity."""


class BatchMismatch(PenstockError):
    """A function that takes a batch did not return a list with one result for each item. All items of the batch
    failed."""


class Undecodable(PenstockError):
    """A message does not have Penstock's wire format. It becomes a dead letter with this reason."""


class ExecutionFailed(PenstockError):
    """A call waited for the result of an execution, and the execution ended with another status than `completed`."""

    def __init__(
        self, message: str, *, hint: str | None = None, execution_id: object = None, status: str = "failed"
    ) -> None:
        super().__init__(message, hint=hint)
        self.execution_id = execution_id
        self.status = status


class NoExecutor(PenstockError):
    """The worker has no task executor of this name. The execution waits for a worker that has it."""


class NoCapacity(PenstockError):
    """The task executor already runs as many attempts as it may. The attempt was not started, and its execution stays
    ready."""


class OutsideRun(PenstockError):
    """A function that only works inside a running action was called outside of an action."""


class AddressRefused(PenstockError):
    """An HTTP action or a subscription may not call an address. The address is in a private network and not on the
    allow-list, or its host name is not valid. A redirect and a link to the next page can also lead to such an address."""


class PartitionDropped(PenstockError):
    """Another replica dropped a partition while this one was reading it. You need to do nothing."""


class NotAuthenticated(PenstockError):
    """The caller is unknown: it sent no token, or one that is invalid or has expired. Send a valid one."""


class TooManyAttempts(PenstockError):
    """Too many attempts of the same kind have failed, such as sign-ins. Wait for `seconds`."""

    def __init__(self, message: str, *, hint: str | None = None, seconds: float = 1.0) -> None:
        super().__init__(message, hint=hint)
        self.seconds = seconds


class NotAllowed(PenstockError):
    """The caller lacks the right to do this. A user with the scope `admin` can create a token that has the right."""


class KeysChanged(PenstockError):
    """The encryption of a tenant was changed while this process was running. The process reads the keys, and tries
    again by itself."""


class ClaimLost(PenstockError):
    """An attempt no longer belongs to this worker: another worker has taken over the execution, or the attempt has
    ended. The worker's report is not stored."""


class UnknownSession(NotFound):
    """The session of a worker at a gateway has ended: the worker has left, or sent no heartbeat for too long. The
    worker no longer owns its attempts. It has to begin another session."""


class StepFailed(PenstockError):
    """A step of a durable function failed in all its attempts, or its child execution ended with another status than
    `completed`. `status` is the status of the step or child, and `type` is the type of the error. `final` is true if
    the step raised an error that forbids another attempt. `cause` names the failure inside the step, as in
    `penstock.run.root_cause`. `traceback` is the traceback of the step's function. It is empty if there is none."""

    def __init__(
        self,
        message: str,
        *,
        name: str,
        ordinal: int = 1,
        status: str = "failed",
        type: str = "",
        final: bool = False,
        cause: Mapping[str, Any] | None = None,
        traceback: str = "",
    ) -> None:
        super().__init__(message)
        self.name = name
        self.ordinal = ordinal
        self.status = status
        self.type = type
        self.final = final
        self.cause = cause
        self.traceback = traceback


class StepTimedOut(StepFailed):
    """The deadline of a step of a durable function passed before its result came."""


class ReplayMismatch(PenstockError):
    """The steps that a durable function requests differ from the recorded steps of its run: the code was changed, or is
    not deterministic. Restore the code, or let the change apply to new runs only (`ctx.version`). `penstock replay ID
    --against FILE.py` tries the code."""


class NothingAwaited(PenstockError):
    """A durable function waits, but nothing could end its wait. The run fails instead of waiting forever. This is a
    defect of Penstock: report it with the code of the function."""
