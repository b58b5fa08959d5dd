"""Whether a cron expression can be read, and which part of it cannot."""

from __future__ import annotations

from datetime import UTC, datetime

from cronsim import CronSim, CronSimError

from penstock.options import Wrong, did_you_mean

WORDS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_FIELDS = ("second", "minute", "hour", "day-of-month", "month", "day-of-week")
_RANGES = {
    "second": "0-59",
    "minute": "0-59",
    "hour": "0-23",
    "day-of-month": "1-31, or L for the last",
    "month": "1-12 or JAN-DEC",
    "day-of-week": "0-7 or SUN-SAT, where 0 and 7 are Sunday",
}


def checked_cron(given: object) -> str:
    """The expression, written the one way: words replaced, single spaces, capitals. Raises Wrong."""
    if not isinstance(given, str):
        raise Wrong("is not a cron expression: it must be text", "Write '0 2 * * *', in quotes.")
    text = given.strip()
    if text.startswith("@"):
        if text not in WORDS:
            raise Wrong(f"is an unknown word: {text!r}", did_you_mean(text, [*WORDS, "@every 90s"]))
        text = WORDS[text]
    fields = text.upper().split()
    if len(fields) not in (5, 6):
        raise Wrong(
            f"has {len(fields)} fields: {given!r}",
            "Five: minute hour day-of-month month day-of-week; six have the second first.",
        )
    try:
        next(CronSim(" ".join(fields), datetime(2024, 1, 1, tzinfo=UTC)))
    except CronSimError as error:
        raise _explained(fields, given, str(error).removeprefix("Bad ")) from None
    except StopIteration:
        raise Wrong(f"never comes: {given!r}", "No date in the next fifty years fits it.") from None
    return " ".join(fields)


def _explained(fields: list[str], given: str, bad: str) -> Wrong:
    if bad not in _FIELDS:
        return Wrong(f"is not a cron expression: {given!r}", None)
    position = _FIELDS.index(bad) - (6 - len(fields))
    return Wrong(
        f"{bad} {fields[position]!r} (field {position + 1} of {given!r}) is wrong, or names a date that never comes",
        f"A {bad} is {_RANGES[bad]}; lists 1,2, ranges 1-5 and steps */2 are allowed.",
    )
