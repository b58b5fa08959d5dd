"""The completion of executions by other systems: by a signed address, or by the id of what they wait for."""

from __future__ import annotations

import hmac
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, cast
from uuid import UUID

import orjson

from penstock.errors import Conflict, InvalidInput, NotFound
from penstock.language.moves import REQUESTED, RUNNING, WAITING
from penstock.language.policies.after_attempt import Ending, ending_of
from penstock.language.policies.policies import RetryPolicy
from penstock.language.terms.redaction import cleaned, concealed, hidden_forms
from penstock.operate import secrets
from penstock.operate.execution_tokens import packed, unpacked
from penstock.run.outcomes import Outcome, TaskError
from penstock.store.access import secrets as stored_secrets
from penstock.store.access import signing_key
from penstock.store.executions import effects, outside_waits
from penstock.store.executions.outside_waits import WaitingAttempt
from penstock.store.session.database import Session, Transaction

PATH = "/callbacks/"
"""The beginning of the path of every callback."""
GOES_ON = frozenset({RUNNING, WAITING})
"""The statuses of an execution whose attempt may still wait for work outside."""
Kind = Literal["result", "error", "progress", "heartbeat"]
OUTCOMES = frozenset({"result", "error"})
"""The kinds of reports that end a wait."""


@dataclass(frozen=True, slots=True)
class Report:
    """A report of another system: a `result`, an error, a progress from 0 to 1 with a `text`, or a heartbeat."""

    kind: Kind
    value: Any = None
    text: str | None = None

    @classmethod
    def by_hand(cls, result: Any, error: str | None) -> Report:
        """Return the outcome that an operator gives: a result, or an error. Raises InvalidInput for both."""
        if error is None:
            return cls("result", result)
        if result is not None:
            raise InvalidInput(
                "an outcome has either a result or an error", hint="Give exactly one of the two."
            )
        return cls("error", error)

    @classmethod
    def of(cls, body: Any) -> Report:
        """Return the report in the body of a callback. Raises InvalidInput for a body of another form."""
        kinds = [
            kind
            for kind in ("result", "error", "progress", "heartbeat")
            if isinstance(body, Mapping) and kind in body
        ]
        if len(kinds) != 1 or set(body) - {*kinds, "text"}:
            raise InvalidInput(
                "the body is not a report of an outcome",
                hint='Send {"result": ...}, {"error": "..."}, {"progress": 0.4, "text": "..."} or {"heartbeat": true}.',
            )
        kind, value, text = kinds[0], body[kinds[0]], body.get("text")
        if kind == "progress" and (
            isinstance(value, bool)
            or not isinstance(value, int | float)
            or not 0 <= value <= 1
            or math.isnan(value)
        ):
            raise InvalidInput("`progress` is not a number from 0 to 1", hint='Send {"progress": 0.4}.')
        if kind == "heartbeat" and value is not True:
            raise InvalidInput("`heartbeat` is not true", hint='Send {"heartbeat": true}.')
        if text is not None and (not isinstance(text, str) or len(text) > 1000):
            raise InvalidInput(
                "`text` is not a text of at most 1,000 characters", hint="Send a shorter text."
            )
        return cls(cast(Kind, kind), value, text)


async def callback_path(session: Session, worker: UUID, execution: UUID, attempt: int) -> str | None:
    """Return the path of the callback of an attempt that this worker runs; None if it no longer does."""
    signature = await signing_key.sign(session, worker, execution, attempt, "callback")
    return None if signature is None else PATH + packed(execution, attempt, signature)


async def attempt_of(session: Session, signed: str) -> tuple[UUID, int]:
    """Return the execution and the attempt of a callback. Raises NotFound for a forged address."""
    parts = unpacked(signed)
    if parts is not None:
        execution, attempt, signature = parts
        if hmac.compare_digest(
            signature, await signing_key.expected(session, execution, attempt, "callback")
        ):
            return execution, attempt
    raise NotFound("there is no such callback", hint="Use the address that the action passed on, unchanged.")


async def complete(tx: Transaction, execution: UUID, outcome: Report, by: str) -> None:
    """Settle the wait of an execution for something outside by hand, with a result or an error. Raises Conflict if it
    does not wait for this, and InvalidInput for an outcome that cannot be stored."""
    wait = await outside_waits.find(tx, execution)
    if wait is None:
        raise no_outside_wait(execution)
    await report(tx, tx.settings.payload_cap, execution, wait.attempt, outcome, by)
    tx.tell(execution=execution, outcome=outcome.kind)


def no_outside_wait(execution: UUID) -> Conflict:
    """Return the error for an outcome by hand of an execution that waits for nothing outside."""
    return Conflict(
        f"execution {execution} does not wait for an outside system",
        hint=f"To see what it waits for, run `penstock why {execution}`.",
    )


async def report(
    tx: Transaction, cap: int, execution: UUID, attempt: int, outcome: Report, by: str = "its callback"
) -> str:
    """Settle the wait of an attempt with a result or an error, once. Return `settled`, `kept` if the attempt still
    runs, or `same` if it was settled with this outcome before. Raises Conflict if it is over, NotFound if no execution
    has this id, and InvalidInput for an outcome that cannot be stored."""
    rows = await outside_waits.attempts(tx, [execution])
    if not rows:
        return await _report_archived(tx, cap, execution, attempt, outcome)
    outcome = await _masked(tx, rows[0], outcome)
    answer = await outside_waits.settle(tx, execution, attempt, _outcome(rows[0], outcome, cap), by)
    if answer == "over":
        status = rows[0].status if rows[0].attempt == attempt else f"at attempt {rows[0].attempt}"
        raise over(execution, status, outcome.kind)
    return answer


def over(execution: UUID, status: str, kind: Kind) -> Conflict:
    """Return the error for a report that comes too late for an execution with this status."""
    hint = "Stop the work: its outcome is no longer accepted."
    if kind in OUTCOMES:
        hint = "Only the first outcome is accepted, and only before the execution ends. Nothing was changed."
    return Conflict(
        f"execution {execution} no longer waits for this outcome: its status is {status}", hint=hint
    )


async def _report_archived(tx: Transaction, cap: int, execution: UUID, attempt: int, outcome: Report) -> str:
    """Return `same` for the outcome with which an archived execution ended. Raises NotFound if no execution has this
    id, Conflict if it ended with another outcome, and InvalidInput for an outcome that cannot be stored."""
    end = await outside_waits.archived(tx, execution)
    if end is None:
        raise NotFound(
            f"no execution {execution}", hint="Ended executions are deleted when their retention is over."
        )
    ending = _outcome(None, outcome, cap)
    stored, sent = (end.result, ending.result) if ending.error is None else (end.error, ending.error)
    if end.attempt != attempt or end.status != ending.status or _value(stored) != _value(sent):
        raise over(execution, end.status, outcome.kind)
    return "same"


def _value(text: str | None) -> Any:
    return None if text is None else orjson.loads(text)


async def progress(session: Session, execution: UUID, attempt: int, outcome: Report) -> None:
    """Note the progress or the heartbeat of work outside. It changes nothing while the action of the attempt still
    runs, since its wait has not begun. Raises Conflict if the attempt is over, and NotFound if no execution has this
    id."""
    rows = await outside_waits.attempts(session, [execution])
    for row in rows:
        outcome = await _masked(session, row, outcome)
    value = float(outcome.value) if outcome.kind == "progress" else None
    if not await outside_waits.note_progress(session, execution, attempt, value, outcome.text):
        # Read the rows again: the attempt may have begun or ended its wait between the first query and the note.
        rows = await outside_waits.attempts(session, [execution])
        if any(row.attempt == attempt and row.status in GOES_ON for row in rows):
            return
        raise await _stopped(session, execution, attempt, rows, outcome.kind)


async def _stopped(
    session: Session, execution: UUID, attempt: int, rows: Sequence[WaitingAttempt], kind: Kind
) -> Conflict | NotFound:
    """Return the error for a report about an attempt that is over."""
    end = None if rows else await outside_waits.archived(session, execution)
    if not rows and end is None:
        return NotFound(
            f"no execution {execution}", hint="Ended executions are deleted when their retention is over."
        )
    status = rows[0].status if rows else end.status if end else ""
    if rows and rows[0].attempt != attempt:
        status = f"at attempt {rows[0].attempt}"
    return over(execution, status, kind)


async def report_by_id(
    tx: Transaction, cap: int, tenant: str, name: str, outcome: Report, by: str, *, event: UUID | None = None
) -> list[UUID]:
    """Settle the waits of a tenant for this id. Without one, keep the outcome for a day, for an execution that is about
    to wait for it. The settled executions are recorded as effects of the `event` that brought the outcome, if there is one.
    Return the executions that were settled."""
    waiting = await outside_waits.named(tx, tenant, name)
    if not waiting:
        await outside_waits.keep_early(tx, tenant, name, _outcome(None, outcome, cap), event)
        return []
    settled = []
    for row in await outside_waits.attempts(tx, waiting):
        text = _outcome(row, await _masked(tx, row, outcome), cap)
        if await outside_waits.settle(tx, row.execution_id, row.attempt, text, by) == "settled":
            settled.append(row.execution_id)
    if event is not None and settled:
        await effects.record_continued(tx, [(event, id) for id in settled])
    return settled


async def _masked(db: Session | Transaction, row: WaitingAttempt, outcome: Report) -> Report:
    """Return a report without the stored secrets that the attempt was given. A secret that was deleted since is not
    masked. Raises ConfigurationError without a master key."""
    if not row.secrets:
        return outcome
    sealed = await stored_secrets.find(db, row.tenant, row.secrets)
    forms = hidden_forms([await secrets.opened(db.settings, secret) for secret in sealed])
    return replace(
        outcome, value=cleaned(outcome.value, forms), text=outcome.text and concealed(outcome.text, forms)
    )


def _outcome(row: WaitingAttempt | None, outcome: Report, cap: int) -> Ending:
    """Return an outcome in its stored form. An error leads to another attempt if the retry policy of the attempt allows
    one. Raises InvalidInput for a value that is too large or cannot be stored."""
    if row is None:
        return ending_of_report(outcome, RetryPolicy(max_attempts=1), 0, cap)
    options = orjson.loads(row.options) if row.options else {}
    retry = options.get("retry") or orjson.loads(row.definition).get("retry") or {}
    return ending_of_report(outcome, RetryPolicy.model_validate(retry), row.failures, cap)


def ending_of_report(outcome: Report, policy: RetryPolicy, failures: int, cap: int) -> Ending:
    """Return the ending of an attempt by a result or an error from outside. Another attempt follows an error if the policy
    allows one after so many failures. Raises InvalidInput for a value that is larger than `cap` bytes or cannot be stored."""
    if outcome.kind == "result":
        encoded = Outcome.returned(outcome.value, cap)
        if encoded.error is not None:
            raise InvalidInput(
                f"the result cannot be stored: {encoded.error.message}",
                hint="Send a smaller result, as JSON.",
            )
        return ending_of(encoded, RetryPolicy(max_attempts=1), 0)
    ending = ending_of(Outcome.failed(outside_error(outcome.value)), policy, failures)
    if ending.status == REQUESTED:
        ending.delay = policy.delay_before(failures + 2, 0.0)
    return ending


def outside_error(value: Any) -> TaskError:
    """Return the error of a report. Raises InvalidInput for a value of another form."""
    if isinstance(value, str):
        return TaskError("OutsideError", value)
    if isinstance(value, Mapping):
        kind, message, retryable = (
            value.get("type", "OutsideError"),
            value.get("message"),
            value.get("retryable"),
        )
        if (
            isinstance(kind, str)
            and 0 < len(kind) <= 200
            and isinstance(message, str)
            and isinstance(retryable, bool | None)
            and not set(value) - {"type", "message", "retryable"}
        ):
            return TaskError(kind, message, retryable=retryable)
    raise InvalidInput(
        "the error is neither a text nor an object with type and message",
        hint='Send {"error": "the build failed"}, or {"error": {"type": "Build", "message": "...", "retryable": false}}.',
    )
