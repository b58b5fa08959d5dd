"""The protocol of claim, admit, release and advance, as small as it gets: a state, and what may happen in it.

Two executions under a limit of one, with a worker that may freeze, be taken for dead, and come back; or a workflow
whose two children are joined by a third; or two submits that assign their executions to workers with permits. Messages
may come twice or late, and a publisher may die before it publishes. What is one step here is one transaction there (or
one side of its lock). A fault takes one mechanism away.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

NEW = "new"
"""Not submitted yet."""
REQUESTED, QUEUED, SCHEDULED, RUNNING, CANCELING = "requested", "queued", "scheduled", "running", "canceling"
COMPLETED, CANCELLED = "completed", "cancelled"
FINAL = (COMPLETED, CANCELLED)
LIMIT = 1
MOST_ATTEMPTS = 2
"""Losses that are looked at: one more attempt shows nothing new."""

FAULTS = {
    "no guard on the status when scheduling": "I1",
    "no guard on the status when claiming": "I1",
    "no fence": "I2",
    "no lock on the key": "I3",
    "who came last is promoted first": "I4",
    "nobody is promoted when a slot is freed": "I10",
    "slot kept on cancel": "I10",
    "no lock on the workflow": "I6",
    "published before the commit": "I10",
    "not in the outbox": "I10",
    "acked before the commit": "I10",
    "final is not guarded": "I9",
    "no sweep": "I10",
    "no look for notices that were lost": "I10",
    "a notice is believed after a look": "I1",
    "a notice is believed after a silence": "I2",
}
"""What is taken away, and the invariant that must then be found violated."""


class Execution(NamedTuple):
    status: str = REQUESTED
    attempt: int = 0
    owner: int = -1
    parent: bool = False
    task: str = ""
    claims: int = 0
    """How often its present attempt was claimed."""
    ends: int = 0
    """How often it was made final."""
    begun: int = 0
    """How often its present attempt was begun, where a submit assigned it."""


class State(NamedTuple):
    executions: tuple[Execution, ...]
    slots: frozenset[int]
    waiters: tuple[int, ...]
    outbox: frozenset[tuple[str, int]]
    """Staged, and not yet known to be published. The relay may always publish it (again)."""
    messages: frozenset[tuple[str, int]]
    """On the broker. A message is taken and may stay all the same: that is a second copy, or one not acked."""
    held: tuple[tuple[int, int, int], ...]
    """(worker, execution, attempt) that workers believe to be theirs."""
    dead: frozenset[int]
    """Workers that were taken for dead."""
    deciding: frozenset[tuple[str, int]]
    """Who has read what a decision rests on, and has not committed: only without a lock."""
    permits: frozenset[int] = frozenset()
    """Workers that a submit may assign an execution to."""
    notices: frozenset[tuple[int, int]] = frozenset()
    """(worker, execution) of notifications that are on their way."""
    wrong: str = ""
    """The invariant that a step has just violated, where the state alone does not show it."""


def _beginning(scenario: str) -> State:
    executions = {
        "limit": (Execution(), Execution()),
        "line": (Execution(), Execution(), Execution()),
        "join": (Execution(parent=True, task="left"), Execution(parent=True, task="right")),
        "permits": (Execution(NEW), Execution(NEW)),
    }[scenario]
    if scenario == "permits":
        nothing: frozenset[tuple[str, int]] = frozenset()
        return State(
            executions, frozenset(), (), nothing, nothing, (), frozenset(), nothing, frozenset((0, 1))
        )
    staged = frozenset(("requested", e) for e in range(len(executions)))
    return State(executions, frozenset(), (), staged, frozenset(), (), frozenset(), frozenset())


class Protocol:
    """The possible moves in a state. `fault`: the missing mechanism, if there is one."""

    misfortunes: tuple[str, ...] = ("cancel", "worker 0 falls", "worker 0 dies", "lose", "die with")

    def __init__(self, scenario: str, fault: str = "") -> None:
        self.scenario, self.fault = scenario, fault
        self.limited = scenario in ("limit", "line")
        self.lossy = scenario in ("limit", "permits")

    def beginning(self) -> State:
        return _beginning(self.scenario)

    def violated(self, s: State) -> str:
        """Return the invariant (as DESIGN names them) that does not hold in a state, or nothing."""
        if s.wrong:
            return s.wrong
        if any(execution.claims > 1 or execution.begun > 1 for execution in s.executions):
            return "I1"
        if len(s.slots) > LIMIT:
            return "I3"
        tasks = [execution.task for execution in s.executions if execution.task]
        if len(tasks) != len(set(tasks)):
            return "I6"
        return "I9" if any(execution.ends > 1 for execution in s.executions) else ""

    def is_too_far(self, s: State) -> bool:
        """Return true for a state whose attempts are not looked at."""
        return any(execution.attempt > MOST_ATTEMPTS for execution in s.executions)

    def is_at_rest(self, s: State) -> bool:
        """Return true if all is final, nothing is held and a join was made, or if the model ends: an attempt more was not
        looked at."""
        final = all(execution.status in FINAL for execution in s.executions)
        joined = self.scenario != "join" or len(s.executions) == 3
        if final and not s.slots and not s.waiters and joined:
            return True
        return any(
            execution.attempt == MOST_ATTEMPTS and execution.status not in FINAL for execution in s.executions
        ) and any(
            execution.owner in s.dead or execution.status in (QUEUED, SCHEDULED, RUNNING, CANCELING)
            for execution in s.executions
        )

    def steps(self, s: State) -> Iterator[tuple[str, State]]:
        """Every step that may follow, by name."""
        for message in s.outbox:
            yield (
                f"publish {message}",
                s._replace(outbox=s.outbox - {message}, messages=s.messages | {message}),
            )
            if self.fault == "not in the outbox":  # its publisher dies, and no other process knows of it
                yield f"lose {message}", s._replace(outbox=s.outbox - {message})
        for message in s.messages:
            kind, e = message
            without = s._replace(messages=s.messages - {message})
            if self.fault == "acked before the commit":
                yield f"die with {message}", without
            for source in (without, s):  # its only copy, or one of two
                yield from getattr(self, f"_{kind}")(source, e)
        yield from self._deciding(s)
        yield from self._workers(s)
        if self.scenario == "permits":
            yield from self._assignments(s)
        for e, execution in enumerate(s.executions):
            if self.lossy and execution.status not in (*FINAL, CANCELING, NEW) and e == 0:
                yield f"cancel {e}", self._cancel(s, e)

    # -- executors -------------------------------------------------------------------------------------------

    def _requested(self, s: State, e: int) -> Iterator[tuple[str, State]]:
        execution = s.executions[e]
        if execution.status != REQUESTED and self.fault != "no guard on the status when scheduling":
            yield f"requested {e} again", s
            return
        if execution.status in FINAL or execution.status == QUEUED:
            return
        if self.fault == "published before the commit":
            early = s.messages | {("work", e)}
            yield f"publish {e} early", s._replace(messages=early, deciding=s.deciding | {("commit", e)})
        elif not self.limited:
            yield f"schedule {e}", self._scheduled(s, e)
        elif self.fault == "no lock on the key":
            room = not s.slots and not s.waiters
            yield f"look {e}", s._replace(deciding=s.deciding | {("room" if room else "full", e)})
        else:
            yield f"admit {e}", self._admitted(s, e, not s.slots)

    def _deciding(self, s: State) -> Iterator[tuple[str, State]]:
        for kind, e in s.deciding:
            remaining = s._replace(deciding=s.deciding - {(kind, e)})
            if kind == "join":
                yield "join", self._join(remaining)
            elif kind == "commit":
                yield f"commit {e}", self._moved(remaining, e, status=SCHEDULED)
            elif remaining.executions[e].status == REQUESTED:
                yield f"decide {e}", self._admitted(remaining, e, kind == "room")

    def _admitted(self, s: State, e: int, room: bool) -> State:
        if room and not s.waiters:
            return self._scheduled(s._replace(slots=s.slots | {e}), e)
        return self._moved(s, e, status=QUEUED)._replace(waiters=(*s.waiters, e))

    def _scheduled(self, s: State, e: int) -> State:
        if s.executions[e].status == SCHEDULED:
            s = s._replace(wrong="I1")
        return self._moved(s, e, status=SCHEDULED)._replace(outbox=s.outbox | {("work", e)})

    def _completed(self, s: State, e: int) -> Iterator[tuple[str, State]]:
        if not s.executions[e].parent or any(execution.status not in FINAL for execution in s.executions):
            yield f"completed {e}, nothing follows", s
        elif self.fault == "no lock on the workflow":
            if not any(execution.task == "both" for execution in s.executions):
                yield f"look at the join after {e}", s._replace(deciding=s.deciding | {("join", e)})
        else:
            yield (
                f"advance after {e}",
                s if any(execution.task == "both" for execution in s.executions) else self._join(s),
            )

    def _join(self, s: State) -> State:
        count = len(s.executions)
        if count > 3:
            return s
        new = (*s.executions, Execution(task="both"))
        return s._replace(executions=new, outbox=s.outbox | {("requested", count)})

    # -- permits ---------------------------------------------------------------------------------------------

    def _assignments(self, s: State) -> Iterator[tuple[str, State]]:
        for e, execution in enumerate(s.executions):
            if execution.status == NEW:
                yield from self._submit(s, e)
        for notice in s.notices:
            worker, e = notice
            without = s._replace(notices=s.notices - {notice})
            yield f"lose the notice of {e}", without
            yield f"worker {worker} hears of {e}", self._heard(without, worker, e)
        for e, execution in enumerate(s.executions):
            worker = execution.owner
            looks = worker not in s.dead and self.fault != "no look for notices that were lost"
            if looks and not execution.begun and self._owns(s, worker, e):
                yield f"worker {worker} looks up {e}", self._begin(s, worker, e)
        if 0 not in s.dead:
            yield "worker 0 falls silent", s._replace(dead=s.dead | {0})

    def _submit(self, s: State, e: int) -> Iterator[tuple[str, State]]:
        takers = s.permits - s.dead
        for worker in takers:
            moved = self._moved(s, e, status=RUNNING, attempt=1, owner=worker, claims=1)
            assigned = moved._replace(permits=s.permits - {worker}, notices=s.notices | {(worker, e)})
            yield f"submit {e} to worker {worker}", assigned
        if not takers:
            yield f"submit {e}", self._scheduled(s, e)

    def _owns(self, s: State, worker: int, e: int) -> bool:
        execution = s.executions[e]
        mine = execution.owner == worker and execution.attempt == 1
        return mine and execution.status in (RUNNING, CANCELING)

    def _heard(self, s: State, worker: int, e: int) -> State:
        """A notice comes, perhaps late: after a look, or after the worker stood still and lost its work."""
        if not self._owns(s, worker, e):
            return s._replace(wrong="I2") if self.fault == "a notice is believed after a silence" else s
        if s.executions[e].begun and self.fault != "a notice is believed after a look":
            return s
        return self._begin(s, worker, e)

    def _begin(self, s: State, worker: int, e: int) -> State:
        begun = self._moved(s, e, begun=s.executions[e].begun + 1)
        return begun._replace(held=tuple(sorted({*s.held, (worker, e, 1)})))

    # -- workers ---------------------------------------------------------------------------------------------

    def _work(self, s: State, e: int) -> Iterator[tuple[str, State]]:
        execution = s.executions[e]
        if execution.status != SCHEDULED:
            if self.fault == "no guard on the status when claiming" and execution.status == RUNNING:
                yield f"claim {e} again", self._moved(s, e, claims=execution.claims + 1)
            yield f"work {e} again", s
            return
        for worker in (0, 1) if self.lossy else (1,):
            if worker not in s.dead:
                moved = self._moved(
                    s, e, status=RUNNING, attempt=execution.attempt + 1, owner=worker, claims=1
                )
                held = (*s.held, (worker, e, execution.attempt + 1))
                yield f"worker {worker} claims {e}", moved._replace(held=tuple(sorted(held)))

    def _workers(self, s: State) -> Iterator[tuple[str, State]]:
        for mine in s.held:
            worker, e, attempt = mine
            remaining = s._replace(held=tuple(h for h in s.held if h != mine))
            execution = s.executions[e]
            ours = (
                execution.owner == worker
                and execution.attempt == attempt
                and execution.status in (RUNNING, CANCELING)
            )
            if ours:
                yield f"worker {worker} ends {e}", self._end(remaining, e, COMPLETED)
                if execution.status == CANCELING:
                    yield f"worker {worker} stops {e}", self._end(remaining, e, CANCELLED)
            elif self.fault == "no fence" and execution.status in (RUNNING, CANCELING):
                yield (
                    f"worker {worker} ends what is another's",
                    self._end(remaining._replace(wrong="I2"), e, COMPLETED),
                )
            elif self.fault == "final is not guarded" and execution.status in FINAL:
                yield f"worker {worker} ends {e} again", self._moved(remaining, e, ends=execution.ends + 1)
            else:
                yield f"worker {worker} has lost {e}", remaining
            if worker not in s.dead and worker == 0:  # it dies with it, or freezes; the other one lives on
                yield f"worker {worker} falls silent", s._replace(dead=s.dead | {worker})
                yield f"worker {worker} dies", remaining._replace(dead=s.dead | {worker})
        if self.fault != "no sweep":
            for e, execution in enumerate(s.executions):
                if execution.owner in s.dead and execution.status in (RUNNING, CANCELING):
                    yield f"sweep {e}", self._swept(s, e)

    def _swept(self, s: State, e: int) -> State:
        if s.executions[e].status == CANCELING:
            return self._end(s, e, CANCELLED)
        s = self._moved(s, e, status=REQUESTED, owner=-1, claims=0, begun=0)
        return self._released(s._replace(outbox=s.outbox | {("requested", e)}), e)

    def _cancel(self, s: State, e: int) -> State:
        if s.executions[e].status == RUNNING:
            return self._moved(s, e, status=CANCELING)
        return self._end(s, e, CANCELLED)

    def _end(self, s: State, e: int, status: str) -> State:
        s = self._moved(s, e, status=status, ends=s.executions[e].ends + 1)
        s = s._replace(outbox=s.outbox | {("completed", e)}) if s.executions[e].parent else s
        if self.fault == "slot kept on cancel" and status == CANCELLED:
            return s._replace(waiters=tuple(w for w in s.waiters if w != e))
        return self._released(s, e)

    def _released(self, s: State, e: int) -> State:
        waiters = tuple(w for w in s.waiters if w != e)
        freed = e in s.slots
        s = s._replace(slots=s.slots - {e}, waiters=waiters)
        if not freed or not waiters or self.fault == "nobody is promoted when a slot is freed":
            return s
        first = waiters[-1 if self.fault == "who came last is promoted first" else 0]
        wrong = "I4" if first != waiters[0] else s.wrong
        remaining = tuple(w for w in waiters if w != first)
        return self._scheduled(s._replace(waiters=remaining, slots=s.slots | {first}, wrong=wrong), first)

    def _moved(self, s: State, e: int, **changes: object) -> State:
        changed = s.executions[e]._replace(**changes)  # type: ignore[arg-type]
        return s._replace(executions=(*s.executions[:e], changed, *s.executions[e + 1 :]))
