"""The records that the next attempt forgets of an attempt that failed and is tried again."""

from __future__ import annotations

from penstock.language.durable.records import (
    CANCELLED,
    FAILED,
    STARTED,
    STEP,
    SUPERSEDED,
    History,
    Key,
    Record,
)


def forget_failure(history: History) -> tuple[set[Key], list[Record]]:
    """Forget the failed steps that caused the failure, and those whose failure was not told. Take back the cancellations that
    came after the first of these failures was told, and return the records of these. Return before them the keys of the calls
    that were made after that failure: they count only if they are made again in the same situation."""
    failure = history.failure
    if failure is None:
        return set(), []
    causes = [record for record in history.records.values() if _is_cause(record, history)]
    told = [record.told for record in causes if record.told is not None and record.told <= failure.told]
    for record in causes:
        del history.records[record.key]
    if not told:
        return set(), []
    first = min(told)
    taken_back = [r for r in history.records.values() if r.status == CANCELLED and (r.told or 0) >= first]
    for record in taken_back:
        record.status, record.told = STARTED, None
        if record.kind == STEP:
            record.result, record.tries = None, 0
    tentative = {
        key
        for key, record in history.records.items()
        if record.asked_after >= first and record.status != SUPERSEDED
    }
    return tentative, taken_back


def _is_cause(record: Record, history: History) -> bool:
    failure = history.failure
    assert failure is not None
    if record.status != FAILED or record.kind != STEP or record.attempt > failure.attempt:
        return False
    return record.key in failure.causes or record.told is None or record.told > failure.told
