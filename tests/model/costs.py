"""Admission by cost, as small as it gets: some executions, and a key that they share.

In the scenario `weights` the key has a maximum, and an execution holds its cost until its attempt ends. In `budget` the key is
the budget of a tree. An attempt reserves its cost, and the ledger keeps what it took. One step is one transaction. A worker may
be lost, reports may come twice or late, and users cancel. A fault takes one mechanism away.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

REQUESTED, QUEUED, SCHEDULED, RUNNING = "requested", "queued", "scheduled", "running"
COMPLETED, CANCELLED = "completed", "cancelled"
FINAL = (COMPLETED, CANCELLED)
HOLDING = (SCHEDULED, RUNNING)
MAX_ATTEMPTS = 2
"""An attempt that is the last one is not lost: one more shows nothing new."""
SCENARIOS = {"weights": (3, (2, 2, 1, 1, 4)), "budget": (6, (2, 2, 2, 1))}
"""Of each scenario: the maximum of the key, and the costs of the executions. The last one of `weights` never fits."""
TRUE_COSTS = (1, 3)
"""An attempt in `budget` takes less than its cost, or more."""

FAULTS = {
    "no lock on the key": "I3",
    "holders are counted and not their costs": "I3",
    "a cheap execution passes a dear one": "I4",
    "a cost that never fits waits": "I10",
    "nothing is promoted when a cost is given back": "I10",
    "no lock on the budget": "I3b",
    "a lost attempt gives back what it reserved": "I3b",
    "an attempt that was not claimed stays in the ledger": "I3b",
    "a second report is added to the ledger": "I3b",
    "a late report changes the ledger": "I2",
    "a cost that a spent budget lacks waits": "I10",
}
"""What is taken away, and the invariant that must then be violated."""


class Execution(NamedTuple):
    status: str = REQUESTED
    attempt: int = 0
    """The last attempt that was claimed."""


class Entry(NamedTuple):
    """The part of the budget that an attempt reserved, and the part that it took (None: not reported)."""

    execution: int
    attempt: int
    reserved: int
    spent: int | None = None

    @property
    def taken(self) -> int:
        return self.reserved if self.spent is None else self.spent


class State(NamedTuple):
    executions: tuple[Execution, ...]
    ledger: tuple[Entry, ...] = ()
    reports: frozenset[tuple[int, int, int]] = frozenset()
    """(execution, attempt, true cost) that a worker sent. A report may come again."""
    readers: frozenset[tuple[int, bool]] = frozenset()
    """(execution, whether it fits) of transactions that have read and not written: only without a lock."""
    wrong: str = ""
    """The invariant that a step has just violated, where the state alone does not show it."""


class Costs:
    """The possible steps in a state. `fault`: the missing mechanism, if there is one."""

    misfortunes: tuple[str, ...] = ("lose", "cancel", "report")

    def __init__(self, scenario: str, fault: str = "") -> None:
        self.fault = fault
        self._is_budget = scenario == "budget"
        self._maximum, self._costs = SCENARIOS[scenario]

    def beginning(self) -> State:
        return State(tuple(Execution() for _ in self._costs))

    def is_too_far(self, s: State) -> bool:
        """Return true for a state whose successors show nothing new."""
        return False

    def is_at_rest(self, s: State) -> bool:
        """Return true if all is final."""
        return all(execution.status in FINAL for execution in s.executions)

    def violated(self, s: State) -> str:
        """Return the invariant that does not hold in a state, or nothing."""
        if s.wrong:
            return s.wrong
        if not self._is_budget:
            return "I3" if self._taken(s) > self._maximum else ""
        entries = [(entry.execution, entry.attempt) for entry in s.ledger]
        if set(entries) != self._attempts(s) or len(entries) != len(set(entries)):
            return "I3b"
        return "I3b" if sum(min(e.reserved, e.taken) for e in s.ledger) > self._maximum else ""

    def _attempts(self, s: State) -> set[tuple[int, int]]:
        """Return all attempts that were claimed, and those that are scheduled."""
        return {
            (e, attempt)
            for e, execution in enumerate(s.executions)
            for attempt in range(1, execution.attempt + 1 + (execution.status == SCHEDULED))
        }

    def steps(self, s: State) -> Iterator[tuple[str, State]]:
        for e, execution in enumerate(s.executions):
            if execution.status == REQUESTED:
                yield from self._request(s, e)
            if execution.status in (REQUESTED, QUEUED, SCHEDULED) and e == 0:
                yield f"cancel {e}", self._promoted(self._given_back(self._moved(s, e, CANCELLED), e))
            if execution.status == SCHEDULED:
                claimed = execution._replace(status=RUNNING, attempt=execution.attempt + 1)
                yield f"claim {e}", self._with(s, e, claimed)
            if execution.status == RUNNING:
                yield from self._ends(s, e)
        for reader in s.readers:
            e, fits = reader
            read = s._replace(readers=s.readers - {reader})
            if read.executions[e].status == REQUESTED:
                yield f"write {e}", self._admitted(read, e) if fits else self._moved(read, e, QUEUED)
        for report in s.reports:
            yield f"report {report} again", self._reported_late(s, *report)

    def _request(self, s: State, e: int) -> Iterator[tuple[str, State]]:
        never_fits = not self._is_budget and self._costs[e] > self._maximum
        if never_fits and self.fault != "a cost that never fits waits":
            yield f"refuse {e}", self._moved(s, e, CANCELLED)
        elif self.fault in ("no lock on the key", "no lock on the budget"):
            fits = self._fits(s, e) and not self._line(s)
            yield f"read {e}", s._replace(readers=s.readers | {(e, fits)})
        else:
            yield f"admit {e}", self._promoted(self._moved(s, e, QUEUED), is_request=True)

    def _ends(self, s: State, e: int) -> Iterator[tuple[str, State]]:
        attempt = s.executions[e].attempt
        for cost in TRUE_COSTS if self._is_budget else (0,):
            settled = self._settled(self._moved(s, e, COMPLETED), e, attempt, cost)
            yield (
                f"end {e} at {cost}",
                self._promoted(settled)._replace(reports=s.reports | {(e, attempt, cost)}),
            )
        if attempt == MAX_ATTEMPTS:
            return
        lost = self._moved(s, e, QUEUED)
        if self.fault == "a lost attempt gives back what it reserved":
            lost = lost._replace(
                ledger=tuple(n for n in lost.ledger if (n.execution, n.attempt) != (e, attempt))
            )
        yield f"lose {e}", self._promoted(lost)._replace(reports=s.reports | {(e, attempt, TRUE_COSTS[1])})

    def _reported_late(self, s: State, e: int, attempt: int, cost: int) -> State:
        """Handle a report of an attempt that has ended: the fence drops it."""
        if not self._is_budget:
            return s
        if self.fault == "a second report is added to the ledger":
            return s._replace(ledger=(*s.ledger, Entry(e, attempt, self._costs[e], cost)))
        changed = self._settled(s, e, attempt, cost)
        if self.fault == "a late report changes the ledger" and changed != s:
            return changed._replace(wrong="I2")
        return s

    # -- under the lock of the key -------------------------------------------------------------------------------

    def _line(self, s: State) -> list[int]:
        return [e for e, execution in enumerate(s.executions) if execution.status == QUEUED]

    def _taken(self, s: State) -> int:
        if self._is_budget:
            return sum(entry.taken for entry in s.ledger)
        return sum(self._costs[e] for e, execution in enumerate(s.executions) if execution.status in HOLDING)

    def _fits(self, s: State, e: int) -> bool:
        if self.fault == "holders are counted and not their costs":
            return sum(execution.status in HOLDING for execution in s.executions) < self._maximum
        return self._taken(s) + self._costs[e] <= self._maximum

    def _promoted(self, s: State, is_request: bool = False) -> State:
        """Admit in order as far as the costs fit. Refuse what a spent budget lacks."""
        if self.fault == "nothing is promoted when a cost is given back" and not is_request:
            return s
        while line := self._line(s):
            fitting = [e for e in line if self._fits(s, e)]
            if self.fault == "a cheap execution passes a dear one" and fitting:
                s = self._admitted(s, fitting[0])
            elif line[0] in fitting:
                s = self._admitted(s, line[0])
            elif self._is_spent(s) and self.fault != "a cost that a spent budget lacks waits":
                s = self._moved(s, line[0], CANCELLED)
            else:
                break
        return s

    def _is_spent(self, s: State) -> bool:
        return self._is_budget and not any(execution.status in HOLDING for execution in s.executions)

    def _admitted(self, s: State, e: int) -> State:
        overtakes = any(other < e for other in self._line(s))
        s = self._moved(s, e, SCHEDULED)
        if self._is_budget:
            s = s._replace(ledger=(*s.ledger, Entry(e, s.executions[e].attempt + 1, self._costs[e])))
        return s._replace(wrong="I4") if overtakes else s

    def _given_back(self, s: State, e: int) -> State:
        """Delete the entry of an attempt that no worker has claimed."""
        if self.fault == "an attempt that was not claimed stays in the ledger":
            return s
        unclaimed = (e, s.executions[e].attempt + 1)
        return s._replace(ledger=tuple(n for n in s.ledger if (n.execution, n.attempt) != unclaimed))

    def _settled(self, s: State, e: int, attempt: int, cost: int) -> State:
        return s._replace(
            ledger=tuple(
                n._replace(spent=cost) if (n.execution, n.attempt) == (e, attempt) else n for n in s.ledger
            )
        )

    def _moved(self, s: State, e: int, status: str) -> State:
        return self._with(s, e, s.executions[e]._replace(status=status))

    def _with(self, s: State, e: int, execution: Execution) -> State:
        return s._replace(executions=(*s.executions[:e], execution, *s.executions[e + 1 :]))
