"""The signals of a run, and the calls that wait for them: the nth signal of a name goes to the nth call that gets one."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime

from penstock.engine.durable.calls import Call
from penstock.engine.durable.journal import signal_key
from penstock.engine.durable.records import SIGNAL, Key, Record


class SignalLines:
    """The calls that wait for each signal name, in the order in which they were made."""

    def __init__(self, records: Mapping[Key, Record]) -> None:
        self._rows: dict[Key, Record] = {}
        self._taken: Counter[str] = Counter()
        self._lines: dict[str, list[Call]] = {}
        self._decided: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._made = 0
        self.arrive(record for record in records.values() if record.kind == SIGNAL)

    def number(self) -> int:
        """Return the position of a new call in the line of its signal."""
        self._made += 1
        return self._made

    def arrive(self, records: Iterable[Record]) -> bool:
        """Add these sent signals. Return whether one of them is new."""
        row_count = len(self._rows)
        for record in records:
            self._rows.setdefault(record.key, record)
        return len(self._rows) > row_count

    def join(self, name: str, call: Call) -> None:
        line = self._lines.setdefault(name, [])
        line.append(call)
        line.sort(key=lambda waiting: waiting.order)

    def leave(self, name: str, call: Call) -> None:
        line = self._lines.get(name, [])
        if call in line:
            line.remove(call)
        if not line:
            self._lines.pop(name, None)

    def next(self, name: str) -> Record | None:
        """Return the next signal of this name; None if it was not sent yet."""
        return self._rows.get(signal_key(name, self._taken[name] + 1))

    def recorded(self) -> tuple[int, str] | None:
        """Return the smallest recorded number of a deliverable signal, and the signal's name."""
        numbered = (
            (row.told, name) for name in self._lines if (row := self.next(name)) and row.told is not None
        )
        return min(numbered, default=None)

    def earliest(self) -> tuple[datetime, str] | None:
        """Return the instant and name of the earliest deliverable signal that was never delivered."""
        sent = (
            (row.at, name) for name in self._lines if (row := self.next(name)) and row.told is None and row.at
        )
        return min(sent, default=None)

    def take(self, name: str) -> tuple[Call, Record]:
        """Give the next signal of this name to the first call that waits for it."""
        row, call = self.next(name), self._lines[name][0]
        assert row is not None, "a signal that was sent"
        self._taken[name] += 1
        self.leave(name, call)
        return call, row

    def decided(self, name: str) -> asyncio.Lock:
        """Return the lock under which a call of this name records that its deadline has passed, or finds a signal."""
        return self._decided[name]

    def key_for(self, name: str, call: Call) -> Key:
        """Return the key of the signal that this call would receive. Calls before it with a passed deadline receive
        none."""
        line = self._lines[name]
        served = [waiting for waiting in line[: line.index(call)] if waiting.number is None or waiting.serves]
        return signal_key(name, self._taken[name] + 1 + len(served))

    def awaited(self) -> tuple[Key, ...]:
        """Return the keys of the signals that calls wait for."""
        return tuple(
            signal_key(name, self._taken[name] + nth)
            for name, line in self._lines.items()
            for nth in range(1, len(line) + 1)
        )

    def forget(self) -> None:
        """Drop all waiting calls."""
        self._lines.clear()
