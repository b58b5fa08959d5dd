"""The rows: a function each, named after it, in the file of its part of the table. Its docstring is the row's sentence; what
it returns is the line that is printed, and what it found wrong it raises."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from types import ModuleType

from tests.parity.host import Host
from tests.parity.rows import (
    cron_fires,
    cron_times,
    dispatcher,
    executor_flow,
    executor_once,
    executor_recovery,
    scaling,
    scaling_losses,
    task_ends,
    task_rules,
    task_runs,
)

Try = Callable[[Host], Awaitable[str]]
PARTS: tuple[ModuleType, ...] = (
    executor_flow,
    executor_once,
    executor_recovery,
    scaling,
    scaling_losses,
    task_rules,
    task_runs,
    task_ends,
    cron_times,
    cron_fires,
    dispatcher,
)
NAMED = re.compile(r"([astcd])(\d\d)_\w+")


@dataclass(frozen=True, slots=True)
class Row:
    name: str
    says: str
    run: Try

    @property
    def long(self) -> bool:
        """Return true if it has an installation of its own, and so takes long: such rows begin first."""
        return not {"site", "alone"}.isdisjoint(self.run.__code__.co_names)


def _rows() -> list[Row]:
    rows = []
    for part in PARTS:
        for name, value in vars(part).items():
            named = NAMED.fullmatch(name)
            if named and callable(value):
                rows.append(Row(f"{named[1].upper()}{int(named[2])}", (value.__doc__ or "").strip(), value))
    order = "ASTCD"
    return sorted(rows, key=lambda row: (order.index(row.name[0]), int(row.name[1:])))


ROWS = _rows()
