"""The errors that Penstock raises, as one tree. Each docstring says what the error means and what to do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any


class PenstockError(Exception):
    """An error that Penstock can explain. `hint` says what to do next."""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class ConfigurationError(PenstockError):
    """A setting is wrong, or two settings contradict each other. The message names the setting."""


class MissingExtra(ConfigurationError):
    """A part of Penstock needs libraries that are not installed. The message has the line that installs them. The exit code
    is that of wrong usage, 2."""


class ConnectionFailed(PenstockError):
    """PostgreSQL or RabbitMQ could not be reached within the deadline."""


class ClientUnusable(PenstockError):
    """A client was called after its `close`, or in a process that was forked from the client's own. Create another client."""


class ServerFull(ConnectionFailed):
    """PostgreSQL, this database or this role has no room for one more connection. Raise its limit, run fewer processes, or let
    each have fewer (`PENSTOCK_DATABASE_CONNECTIONS`)."""


class NotMigrated(ConfigurationError):
    """The database has no schema yet, or not the functions that this release calls. Run `penstock migrate`."""


class ServersNotReady(PenstockError):
    """A service was told how long to wait for its servers (`--wait`), and they were not ready. Its exit code is 3."""


class PartEnded(PenstockError):
    """A part that a service must not live without has ended, so the service ends. Start it again, and look at its log."""


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
    """A template or condition does not parse, failed, or went over its time or size limit."""


class InvalidInput(PenstockError):
    """A payload or parameters do not match their schema, or are too large; nothing was stored."""


class CheckTooCostly(InvalidInput):
    """Checking a value against its schema takes more steps than one check may. The value is refused once and not tried
    again: send a smaller value, or simplify the schema."""


class NotFound(PenstockError):
    """No action, rule, event, execution, schedule or limit has this name or id."""


class Conflict(PenstockError):
    """The request contradicts what is already stored, such as an idempotency key with other parameters."""


class WrongClock(PenstockError):
    """This machine's clock differs from the database's by more than an hour, so its ids would be out of order. They
    are replaced by ids of the database's clock. Set this machine's clock right (NTP)."""


class IllegalMove(PenstockError):
    """A status change that `penstock.language.moves` does not declare. The database refused it."""


class ResultNotStorable(PenstockError):
    """A result that is not JSON, is too large, or holds NUL, NaN or Infinity."""


class BatchMismatch(PenstockError):
    """A function that takes a batch did not return a list with one result for each item. All its items failed."""


class Undecodable(PenstockError):
    """A message that is not in Penstock's wire format. It goes to the dead letters with this reason."""


class ExecutionFailed(PenstockError):
    """The awaited execution ended with another status than `completed`."""

    def __init__(
        self, message: str, *, hint: str | None = None, execution_id: object = None, status: str = "failed"
    ) -> None:
        super().__init__(message, hint=hint)
        self.execution_id = execution_id
        self.status = status


class NoExecutor(PenstockError):
    """No task executor of this name is registered on this worker. The work stays ready for another one."""


class NoCapacity(PenstockError):
    """The task executor runs as many attempts as it may. The work stays ready; nothing was started."""


class OutsideRun(PenstockError):
    """A function that only works inside a running action was called outside of one."""


class AddressRefused(PenstockError):
    """An HTTP action or a subscription names an address that is private to this network and not on the allow-list."""


class PartitionDropped(PenstockError):
    """A partition was dropped by another replica while it was read. Nothing has to be done."""


class NotAuthenticated(PenstockError):
    """The caller is unknown: it sent no token, or one that is invalid or has expired. Send a valid one."""


class TooManyAttempts(PenstockError):
    """A caller repeats too often what should succeed at once, such as a sign-in. Wait for `seconds`."""

    def __init__(self, message: str, *, hint: str | None = None, seconds: float = 1.0) -> None:
        super().__init__(message, hint=hint)
        self.seconds = seconds


class NotAllowed(PenstockError):
    """The caller has no right to do this. A user with the scope `admin` can create a token that has it."""


class KeysChanged(PenstockError):
    """The values of a tenant are encrypted since this process last looked. It reads the keys, and tries again by itself."""


class ClaimLost(PenstockError):
    """An attempt no longer belongs to this worker: another one continues it, or it has ended. Its report is not
    stored."""


class UnknownSession(NotFound):
    """A session of a worker at a gateway has ended: the worker said goodbye, or sent no heartbeat for too long. Its
    attempts are no longer its own. It begins another session."""


class StepFailed(PenstockError):
    """A step of a durable function failed after all its attempts, or the execution that it waited for ended with
    another status than `completed`. `status` is that status, and `type` is the type of the error. `final`: the
    function ruled out another attempt. `cause` names what failed inside the step, as `penstock.run.root_cause` says.
    `traceback` is that of the step's function, empty if there is none."""

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
    """A durable function does not request the steps that its run has recorded: its code was changed, or is not
    deterministic. Restore the code, or let the change apply to new runs only (`ctx.version`). `penstock replay ID
    --against FILE.py` tries the code."""


class NothingAwaited(PenstockError):
    """A durable function waits, and its attempt knows of nothing that would end the wait. The run fails instead of
    waiting for ever. It is a defect of Penstock: report it with the code of the function."""
