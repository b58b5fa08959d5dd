"""A breaker, as small as it gets: some executions, and the key that they share.

Each call of the service may complete, fail, or be lost with its worker. Two of them are retried once. One step is one
transaction. A fault takes one mechanism away.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

REQUESTED, QUEUED, SCHEDULED, RUNNING = "requested", "queued", "scheduled", "running"
COMPLETED, FAILED, CANCELLED = "completed", "failed", "cancelled"
FINAL = (COMPLETED, FAILED, CANCELLED)
HOLDING = (SCHEDULED, RUNNING)
CLOSED, OPEN, PROBING, RELEASING = "closed", "open", "probing", "releasing"
"""PROBING: the time of the probe has come. Its call may be under way."""
MAX_ATTEMPTS = (2, 2, 1, 1)
"""Of each execution. What has one attempt is not lost: more retries show nothing new."""
EXECUTIONS = len(MAX_ATTEMPTS)
FAILURES, SIZE = 2, 2
"""The breaker opens when so many of the last `SIZE` attempts have failed."""

FAULTS = {
    "no lock on the key": "threshold",
    "nothing is counted": "threshold",
    "failures from before the opening count again": "threshold",
    "a probe starts beside another": "I3k",
    "a call under way counts as the probe": "I10",
    "a claim does not look at the breaker": "I3k",
    "what is taken back goes to the end of its line": "I4",
    "what was not claimed is not taken back": "I10",
    "a lost probe keeps its slot": "I10",
    "nothing is promoted when the probe is due": "I10",
    "a failed probe begins the release": "release",
    "an older call begins the release": "release",
    "all start when the probe has completed": "I3k",
}
"""What is taken away, and the invariant that must then be violated."""
COUNTING_FAULTS = {
    "running calls are not counted": "I3c",
    "failures are not counted with running calls": "I3c",
    "running calls are not counted while it releases": "I3c",
    "nothing is promoted when a call has failed": "I10",
}
"""The same for a breaker that counts running calls."""


class Execution(NamedTuple):
    """`place`: where it stands in line. `due`: where it must stand, by the instant at which it became ready. `is_new`: it was
    admitted since the breaker opened."""

    status: str = REQUESTED
    attempt: int = 0
    place: int = 0
    due: int = 0
    is_new: bool = False


class State(NamedTuple):
    """`ended` has the last attempts that the breaker knows (true: failed), and `happened` those that there were."""

    executions: tuple[Execution, ...]
    breaker: str = CLOSED
    allowed: int = 1
    passed: int = 0
    ended: tuple[bool, ...] = ()
    happened: tuple[bool, ...] = ()
    completions: int = 0
    """The number of calls that have completed since the release began."""
    readers: frozenset[tuple[int, bool, tuple[bool, ...]]] = frozenset()
    """(execution, whether it failed, the attempts that it read) of transactions that have read and not written."""
    wrong: str = ""


class Breakers:
    """The possible steps in a state. `fault`: the missing mechanism, if there is one. `counts_running`: a running call counts as
    a failure until it has ended."""

    misfortunes: tuple[str, ...] = ("lose", "cancel", "fail")

    def __init__(self, fault: str = "", *, counts_running: bool = False) -> None:
        self.fault = fault
        self.counts_running = counts_running

    def beginning(self) -> State:
        return State(tuple(Execution(place=n, due=n) for n in range(EXECUTIONS)))

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
        if s.breaker == CLOSED and sum(s.happened) >= FAILURES:
            return "threshold"
        if self.counts_running and self._at_risk(s) > FAILURES:
            return "I3c"
        bound = {CLOSED: EXECUTIONS, OPEN: 0, PROBING: 1, RELEASING: 2 + s.completions}[s.breaker]
        return "I3k" if self._new_calls(s) > bound else ""

    def steps(self, s: State) -> Iterator[tuple[str, State]]:
        if s.breaker == OPEN:
            probing = s._replace(breaker=PROBING)
            yield (
                "the probe is due",
                probing
                if self.fault == "nothing is promoted when the probe is due"
                else self._promoted(probing),
            )
        for e, execution in enumerate(s.executions):
            if execution.status == REQUESTED and not any(
                other.status == REQUESTED for other in s.executions[:e]
            ):
                yield f"admit {e}", self._promoted(self._with(s, e, status=QUEUED))
            if execution.status in (REQUESTED, QUEUED, SCHEDULED) and e == 0:
                yield f"cancel {e}", self._promoted(self._with(s, e, status=CANCELLED, is_new=False))
            if execution.status == SCHEDULED:
                yield from self._claim(s, e)
            if execution.status == RUNNING:
                yield from self._ends(s, e)
        for reader in s.readers:
            e, failed, ended = reader
            yield (
                f"write {e}",
                self._counted(s._replace(readers=s.readers - {reader}, ended=ended), e, failed),
            )

    def _claim(self, s: State, e: int) -> Iterator[tuple[str, State]]:
        execution = s.executions[e]
        is_blocked = s.breaker in (OPEN, PROBING) and not execution.is_new
        if is_blocked and self.fault != "what was not claimed is not taken back":
            place = (
                max(other.place for other in s.executions) + 1
                if self.fault == "what is taken back goes to the end of its line"
                else execution.place
            )
            yield f"take back {e}", self._promoted(self._with(s, e, status=QUEUED, place=place))
        if not is_blocked or self.fault == "a claim does not look at the breaker":
            claimed = self._with(s, e, status=RUNNING, attempt=execution.attempt + 1)
            yield f"claim {e}", claimed._replace(wrong="I3k") if is_blocked else claimed

    def _ends(self, s: State, e: int) -> Iterator[tuple[str, State]]:
        execution = s.executions[e]
        if execution.attempt < MAX_ATTEMPTS[e]:
            # The attempt counts as neither. The execution keeps its place.
            keeps = self.fault == "a lost probe keeps its slot" and s.breaker == PROBING
            lost = self._with(s, e, status=QUEUED, is_new=execution.is_new and keeps)
            yield f"lose {e}", self._promoted(lost)
        for failed in (False, True):
            name = f"{'fail' if failed else 'complete'} {e}"
            again = failed and execution.attempt < MAX_ATTEMPTS[e]
            last = max(other.due for other in s.executions) + 1
            status = QUEUED if again else FAILED if failed else COMPLETED
            ended = self._with(
                s,
                e,
                status=status,
                place=last if again else execution.place,
                due=last if again else execution.due,
            )
            if self.fault == "no lock on the key" and s.breaker == CLOSED:
                happened = ended._replace(happened=(*s.happened, failed)[-SIZE:])
                reader = (e, failed, s.ended)
                # Until the end of the other transactions, the attempt has not ended for the invariant.
                yield (
                    f"{name} without a lock",
                    happened._replace(readers=s.readers | {reader}, happened=s.happened),
                )
            else:
                yield name, self._counted(ended, e, failed)

    # -- under the lock of the key -------------------------------------------------------------------------------

    def _counted(self, s: State, e: int, failed: bool) -> State:
        """Count an ended attempt, and admit what may start now."""
        is_new = s.executions[e].is_new
        s = self._with(s, e, is_new=False)
        if s.breaker in (OPEN, PROBING):
            return self._promoted(self._probed(s, failed, is_new))
        if s.breaker == RELEASING and not is_new:
            return self._promoted(s)
        s = s._replace(happened=(*s.happened, failed)[-SIZE:])
        if self.fault != "nothing is counted":
            s = s._replace(ended=(*s.ended, failed)[-SIZE:])
        if sum(s.ended) >= FAILURES:
            return self._opened(s)
        if s.breaker == RELEASING and not failed:
            s = s._replace(passed=s.passed + 1, completions=s.completions + 1)
            if s.passed >= s.allowed:
                s = s._replace(allowed=2 * s.allowed, passed=0)
        if s.breaker == RELEASING and not self._line(s) and not self._is_older_scheduled(s):
            s = s._replace(breaker=CLOSED, allowed=1, passed=0, completions=0)
        if failed and self.fault == "nothing is promoted when a call has failed":
            return s
        return self._promoted(s)

    def _opened(self, s: State) -> State:
        is_true = sum(s.happened) >= FAILURES
        keeps = self.fault == "failures from before the opening count again"
        older = tuple(execution._replace(is_new=False) for execution in s.executions)
        return State(
            older,
            OPEN,
            ended=s.ended if keeps else (),
            readers=s.readers,
            wrong="" if is_true else "threshold",
        )

    def _probed(self, s: State, failed: bool, is_new: bool) -> State:
        """Handle the end of an attempt while the breaker is open: only a probe counts."""
        if not is_new and self.fault != "an older call begins the release":
            is_mistaken = self.fault == "a call under way counts as the probe" and s.breaker == PROBING
            return s._replace(allowed=0) if is_mistaken else s
        if failed and self.fault != "a failed probe begins the release":
            return s._replace(breaker=OPEN) if is_new else s
        is_true = is_new and not failed
        return s._replace(breaker=RELEASING, allowed=2, passed=0, wrong="" if is_true else "release")

    def _promoted(self, s: State) -> State:
        """Admit in the order of the line, as far as the breaker has room."""
        while (line := self._line(s)) and self._has_room(s):
            e = line[0]
            overtakes = any(s.executions[other].due < s.executions[e].due for other in line)
            s = self._with(s, e, status=SCHEDULED, is_new=s.breaker != CLOSED)
            if overtakes:
                return s._replace(wrong="I4")
        return s

    def _has_room(self, s: State) -> bool:
        if self.counts_running and s.breaker != OPEN and not self._has_room_for_failures(s):
            return False
        if s.breaker in (CLOSED, OPEN):
            return s.breaker == CLOSED
        if s.breaker == PROBING and self.fault == "a probe starts beside another":
            return True
        if s.breaker == RELEASING and self.fault == "all start when the probe has completed":
            return True
        kept = sum(e.is_new and e.status == QUEUED for e in s.executions)
        return self._new_calls(s) + kept < s.allowed

    def _has_room_for_failures(self, s: State) -> bool:
        counts_none = self.fault == "running calls are not counted" or (
            self.fault == "running calls are not counted while it releases" and s.breaker == RELEASING
        )
        failed = 0 if self.fault == "failures are not counted with running calls" else sum(s.ended)
        return failed + (0 if counts_none else self._counted_calls(s)) < FAILURES

    def _at_risk(self, s: State) -> int:
        """Return how many calls reach a service that is down: those that failed, and those that are under way."""
        return sum(s.happened) + self._counted_calls(s)

    def _counted_calls(self, s: State) -> int:
        """Return the number of calls under way whose end counts. While the breaker is closed all do."""
        if s.breaker == CLOSED:
            return sum(e.status in HOLDING for e in s.executions)
        return self._new_calls(s)

    def _new_calls(self, s: State) -> int:
        """Return the number of calls that were admitted since the breaker opened."""
        return sum(e.is_new and e.status in HOLDING for e in s.executions)

    def _is_older_scheduled(self, s: State) -> bool:
        return any(e.status == SCHEDULED and not e.is_new for e in s.executions)

    def _line(self, s: State) -> list[int]:
        waiting = [e for e, execution in enumerate(s.executions) if execution.status == QUEUED]
        return sorted(waiting, key=lambda e: s.executions[e].place)

    def _with(self, s: State, e: int, **changes: object) -> State:
        executions = list(s.executions)
        executions[e] = executions[e]._replace(**changes)  # type: ignore[arg-type]
        return s._replace(executions=_ranked(executions))


def _ranked(executions: list[Execution]) -> tuple[Execution, ...]:
    """Return the executions with places from 0, so that states that differ only in numbers are one state. An ended
    execution has no place."""
    executions = [e._replace(place=0, due=0) if e.status in FINAL else e for e in executions]
    places = sorted({e.place for e in executions} | {e.due for e in executions})
    rank = {place: n for n, place in enumerate(places)}
    return tuple(e._replace(place=rank[e.place], due=rank[e.due]) for e in executions)
