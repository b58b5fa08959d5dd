"""The commands to durable functions: signals, results of steps, and re-runs from a step."""

from __future__ import annotations

import re
from typing import Any
from uuid import UUID

import orjson

from penstock.client.sent_signals import sent_signal
from penstock.client.signal_receivers import check_receiver, unknown_key
from penstock.engine.durable.journal import signal_key
from penstock.engine.durable.names import signal_name
from penstock.engine.durable.records import SIGNAL, Key
from penstock.errors import Conflict, InvalidInput, NotFound
from penstock.language.schemas import check_value
from penstock.language.schemas.question_schema import checked_answer
from penstock.language.terms.column_ranges import INTEGER
from penstock.language.terms.options import did_you_mean
from penstock.language.terms.outside_names import check_tenant
from penstock.run.sent_signal import SentSignal
from penstock.store.definitions import catalog
from penstock.store.durable import steps
from penstock.store.durable.steps import NewSignal
from penstock.store.executions import executions, inquiries
from penstock.store.session.database import Session, Transaction

_KEY = re.compile(r"([1-9]\d*/)*[^/\x00-\x1f]{1,200}")
"""The name of a step, with its branch in front."""


def _checked_key(text: str) -> Key:
    """Return the key of a step that a function may have. Raises InvalidInput for a text that is not a valid step name."""
    key = Key.of_label(text)
    if not _KEY.fullmatch(key.name) or key.ordinal > INTEGER:
        raise InvalidInput(
            f"no step can have the name {text!r}",
            hint="Write the name of a step (`charge`, `charge:2` for the second one, `2/charge` in a branch).",
        )
    return key


async def check_answer(tx: Transaction, id: UUID, name: str, ordinal: int | None, result: str) -> None:
    """Check a result (JSON) that is to answer the question of this step or, without an ordinal, of this task. Raises
    InvalidInput if the result does not fit the schema of the question."""
    inquiry = await inquiries.of_step(tx, id, name, ordinal)
    if inquiry is not None and inquiry.schema is not None:
        checked_answer(orjson.loads(result), orjson.loads(inquiry.schema), cap=tx.settings.payload_cap)


async def signal(
    tx: Transaction, id: UUID | None, key: str | None, tenant: str | None, name: str | None, value: Any
) -> SentSignal:
    """Send a signal to a durable function. Return whether the function waits for it. Raises DefinitionError if the name is
    not valid, and InvalidInput if the receiver or the value is not valid. Raises NotFound for an unknown key, and Conflict
    if the execution has ended or is not a durable function."""
    check_receiver(id, key, tenant)
    receiver = await receiver_of(tx, id, key, "public" if tenant is None else tenant)
    return await send_signal(tx, checked_signal(receiver, name, value, tx.settings.payload_cap))


async def receiver_of(db: Session | Transaction, id: UUID | None, key: str | None, tenant: str) -> UUID:
    """Return the id of a signal's receiver: `id`, or the execution that was started with this key in the tenant. Raises
    InvalidInput if not exactly one of `id` and `key` is given, and NotFound for an unknown key."""
    check_receiver(id, key)
    if id is not None:
        return id
    execution = await executions.with_key(db, check_tenant(tenant), str(key))
    if execution is None:
        raise unknown_key(str(key), tenant)
    return execution


def checked_signal(id: UUID, name: str | None, value: Any, cap: int) -> NewSignal:
    """Return a signal to a durable function, ready to be sent. Its value has at most `cap` bytes of JSON. Raises
    DefinitionError if the name is not valid, and InvalidInput if the value is not."""
    return NewSignal(id, *signal_content(name, value, cap))


def signal_content(name: str | None, value: Any, cap: int) -> tuple[str, str]:
    """Return the name of a signal, checked, and its value as JSON of at most `cap` bytes. Raises DefinitionError
    if the name is not valid, and InvalidInput if it is missing or the value is not valid."""
    if name is None:
        raise InvalidInput("the signal has no name", hint='Give the name of ctx.signal: signal(id, "paid").')
    return signal_name(name), check_value(value, cap, what="the signal's value").decode()


async def send_signal(tx: Transaction, new: NewSignal) -> SentSignal:
    """Send a checked signal. Return whether the function waits for it. Raises Conflict if the execution has ended or is not
    a durable function."""
    awaits = await steps.awaited_signals(
        tx, new.execution_id
    )  # read before the signal is sent, since the signal may wake the function
    if not await steps.signal(tx, new.execution_id, signal_key(new.name, 1).name, new.value):
        raise await _cannot_receive(tx, new.execution_id)
    return sent_signal(new.name, awaits, new.execution_id)


async def _cannot_receive(tx: Transaction, id: UUID) -> Conflict:
    """Return the error for a signal to an execution that has ended, or is not a durable function."""
    hint = f"`penstock show {id}` shows its kind."
    rows = await executions.find(tx, [id])
    if rows and rows[0].finished_at is not None:
        body = (await catalog.bodies(tx, [rows[0].definition_id])).get(rows[0].definition_id, {})
        if "durable" in body:
            return Conflict(
                f"{id} has ended: it is {rows[0].status}", hint=f"Run it again with: penstock rerun {id}"
            )
    return Conflict(f"{id} is not a durable function that runs or waits", hint=hint)


async def give(
    tx: Transaction,
    id: UUID,
    kind: str,
    step: str,
    result: str,
    *,
    by: str,
    reason: str | None,
    ahead: bool = False,
) -> bool:
    """Set the result (JSON) of a step, so that the step does not run. A child that the step started is cancelled.
    `ahead`: the run may not have asked for the step yet.

    Return False if `id` is not an unfinished durable function. Raises Conflict if the step has ended. Raises InvalidInput
    for a name that no step can have, and for an answer that its question refuses. Raises NotFound for a step that the run
    has not asked for, unless `ahead` is set.
    """
    name, ordinal = _checked_key(step)
    # Check before the write: the write records the step, and the step would then count as asked for.
    unasked = None if ahead else await _unasked_error(tx, id, step, name, ordinal)
    if kind == "set_result":
        await check_answer(tx, id, name, ordinal, result)
    outcome = await steps.give(tx, id, name, ordinal, result, kind=kind, by=by, reason=reason)
    if outcome.is_running and unasked is not None:
        raise unasked
    if outcome.is_running and not outcome.is_set:
        raise Conflict(
            f"the step {step} is over, and its result is final",
            hint=f"Run it again from there: penstock rerun {id} --from {step}",
        )
    if outcome.open_child is not None:
        await executions.cancel(tx, [outcome.open_child], "its step was given a result")
    return outcome.is_running


async def _unasked_error(tx: Transaction, id: UUID, step: str, name: str, ordinal: int) -> NotFound | None:
    """Return the error for a step that the run has not asked for; None if it has, or if the step is the next one of a name
    that it has asked for."""
    last_ordinals = await steps.asked(tx, id)
    last = max(last_ordinals.get(name, 0), last_ordinals.get(f"{SIGNAL}/{name}", 0))
    if last and ordinal <= last + 1:
        return None
    names = sorted(Key(recorded.removeprefix(f"{SIGNAL}/"), 1).label for recorded in last_ordinals)
    return NotFound(
        f"{id} has no recorded request for a step {step!r} so far",
        hint=f"{did_you_mean(step, names)} For a step that the function has not requested yet, use --ahead "
        '("ahead": true over HTTP).',
    )


async def check_kept(tx: Transaction, id: UUID, step: str) -> None:
    """Raise NotFound if the journal has no record of this step."""
    keys = [Key(record.name, record.ordinal) for record in await steps.recorded(tx, id)]
    if Key.of_label(step) not in keys:
        names = sorted({key.label for key in keys})
        raise NotFound(f"{id} has recorded no step {step!r}", hint=did_you_mean(step, names))


async def keep(tx: Transaction, new: UUID, old: UUID, step: str | None) -> None:
    """Copy the records of completed steps to the re-run `new`: those before `step`, or all if it is None."""
    name, ordinal = (None, 0) if step is None else Key.of_label(step)
    await steps.keep(tx, new, old, name, ordinal)
