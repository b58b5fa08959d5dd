"""The waits for an instant, and for signals to a run."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import Any

from penstock.engine.durable.calls import Answer, Call
from penstock.engine.durable.core import Core, failure
from penstock.engine.durable.records import COMPLETED, FAILED, SLEEP, Record, cause_of

NOT_SENT = '{"message": "nothing was told in time"}'


async def sleep_for(core: Core, record: Record, span: timedelta) -> None:
    """Wait until this sleep is over, counted from its first beginning. A sleep also ends when an operator sets its
    result."""
    await core.result(record, partial(sleep, core, record, span))


async def sleep(core: Core, record: Record, span: timedelta, call: Call) -> None:
    """Wait until the instant, then check that no earlier result is still to be delivered."""
    until = await core.until_recorded(record, span)
    core.deliveries.expect(call, until)
    await core.waiting.until(until, cause_of(record))
    await core.look()
    core.deliveries.settle(call, _nothing, until)


async def await_signal(core: Core, name: str, order: int, deadline: Record | None, span: timedelta) -> Any:
    """Return the payload of a signal. Raises StepTimedOut once the deadline has passed without a signal, which stays
    recorded. A deadline that an operator has removed never passes."""
    if deadline is None or deadline.status == COMPLETED:
        call = Call(None, partial(_signal, core), signal=name, order=order)
    else:
        work = partial(_until_deadline, core, deadline, name, span)
        call = Call(deadline, work, signal=name, order=order)
        if deadline.status == FAILED:
            call.answer = _late(deadline)
    return await core.deliveries.result_of(call)


async def _signal(core: Core, call: Call) -> None:
    await core.write_values()
    await core.waiting.for_signal()


async def _until_deadline(core: Core, deadline: Record, name: str, span: timedelta, call: Call) -> None:
    """Wait for the deadline, and record that it has passed. The recording transaction checks that no signal was sent
    before."""
    until = await core.until_recorded(deadline, span)
    core.deliveries.expect(call, until)
    await core.waiting.for_signal(until)
    number = await core.deliveries.decision(call, until)
    signals = core.deliveries.signals
    # An earlier call for the same signal name may be recording that its own deadline has passed.
    async with signals.decided(name):
        key = signals.key_for(name, call)
        passed = Record(
            deadline.key, deadline.position, SLEEP, FAILED, deadline.result, NOT_SENT, asked_after=deadline.asked_after,
            told=number, unless=key
        )  # fmt: skip
        written = await core.written(passed)
        if written.key != passed.key and _is_sent_after(written, deadline, span):
            passed.unless = None
            written = await core.written(passed)
        if written.key != passed.key:
            signals.arrive([written])
            # The signals before it, for the calls ahead in line, were not read yet.
            if signals.next(name) is None:
                sent, _ = await core.ours(core.backend.look(signals.awaited(), []))
                signals.arrive(sent)
            core.deliveries.serve(call)
            return
    if written.status == FAILED:
        call.record = written
        core.deliveries.settle(call, _late(written))
        return
    # An operator has removed the deadline meanwhile. The call returns its number, and waits on without a deadline.
    call.record = call.number = None
    core.deliveries.wake()
    await _signal(core, call)


def _is_sent_after(signal: Record, deadline: Record, span: timedelta) -> bool:
    """Return whether a signal was sent after a deadline that an earlier attempt recorded. Both instants are the
    database's: the clock of an attempt lags by the time that its records took to load."""
    return signal.at is not None and deadline.at is not None and signal.at > deadline.at + span


def _late(deadline: Record) -> Answer:
    def answer() -> Any:
        raise failure(deadline, "timeout", deadline.error, late=True)

    return answer


def _nothing() -> None:
    return None
