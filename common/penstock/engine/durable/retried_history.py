"""The changes to the records of a run before it is tried again after a failed attempt."""

from __future__ import annotations

from penstock.engine.durable.records import CANCELLED, FAILED, STARTED, STEP, SUPERSEDED, History, Key, Record
from penstock.language.moves.executions import CANCELING


def forget_failure(history: History) -> tuple[set[Key], list[Record]]:
    """Prepare the records of a failed attempt for the next attempt. The failed steps that caused the failure begin
    again, and so do failed steps with an undelivered failure. Cancellations that followed the first of these
    failures are taken back. A call with a cancelled child is set aside, so that it starts another child.

    Return the keys of the calls that were made after that failure: they count only if the next attempt makes them again
    in the same situation. Also return the changed records, to be written at once. Otherwise an attempt that fails
    earlier would bring the old failure back."""
    failure = history.failure
    if failure is None:
        return set(), []
    causes = [record for record in history.records.values() if _is_cause(record, history)]
    numbers = [record.told for record in causes if record.told is not None and record.told <= failure.told]
    for record in causes:
        record.status, record.result, record.error, record.told = STARTED, None, None, None
        record.tries, record.took = 0, 0.0
    if not numbers:
        return set(), causes
    first = min(numbers)
    taken_back = [r for r in history.records.values() if r.status == CANCELLED and (r.told or 0) >= first]
    for record in taken_back:
        child = history.children.get(record.key)
        cancelled = child is not None and child.status in (CANCELING, CANCELLED)
        record.status, record.told = SUPERSEDED if cancelled else STARTED, None
    tentative = {
        key
        for key, record in history.records.items()
        if record.asked_after >= first and record.status != SUPERSEDED
    }
    return tentative, [*causes, *taken_back]


def _is_cause(record: Record, history: History) -> bool:
    failure = history.failure
    assert failure is not None
    if record.status != FAILED or record.kind != STEP or record.attempt > failure.attempt:
        return False
    return record.key in failure.causes or record.told is None or record.told > failure.told
