"""A start of `penstock` in a process with a wrong clock: `python wrong_clock.py 3600 executor`. With several numbers,
`0,3600,-3600`, it begins with the first, and jumps to the next at each SIGUSR1.

Only what Python code is told is wrong. Timeouts and sleeps go by another clock, which runs as it should.
"""

from __future__ import annotations

import datetime
import itertools
import signal
import sys
import time
from importlib.metadata import entry_points
from typing import Any

_time, _time_ns = time.time, time.time_ns
_datetime = datetime.datetime


class _Either(type):
    """Datetimes that were made before, or by C code, are datetimes still."""

    def __instancecheck__(cls, thing: object) -> bool:
        return isinstance(thing, _datetime)


class _Wrong(_datetime, metaclass=_Either):
    @classmethod
    def now(cls, tz: datetime.tzinfo | None = None) -> Any:
        return _datetime.fromtimestamp(time.time(), tz)

    @classmethod
    def utcnow(cls) -> Any:
        return _datetime.fromtimestamp(time.time(), datetime.UTC).replace(tzinfo=None)


def main() -> None:
    aheads = itertools.cycle([int(ahead) for ahead in sys.argv[1].split(",")])
    ahead = next(aheads)

    def jump(*_: object) -> None:
        nonlocal ahead
        ahead = next(aheads)

    signal.signal(signal.SIGUSR1, jump)
    time.time = lambda: _time() + ahead
    time.time_ns = lambda: _time_ns() + ahead * 10**9
    import penstock.cli

    penstock.cli.build()  # the imports of commands, which have the types of real datetimes
    for service in entry_points(group="penstock.services"):
        service.load()
    for module in list(sys.modules.values()):
        if module.__name__.startswith("penstock") and getattr(module, "datetime", None) is _datetime:
            module.datetime = _Wrong  # type: ignore[attr-defined]
    datetime.datetime = _Wrong  # type: ignore[misc]
    penstock.cli.main(sys.argv[2:])


if __name__ == "__main__":
    main()
