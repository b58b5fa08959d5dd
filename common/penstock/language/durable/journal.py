"""Holds what a function asks for against what is recorded of its run.

A step is found by name and ordinal, and has to stand where it stood: each branch (a task of asyncio's) counts what it asks for,
and where another step was asked for at the same place before, the run stops. So code that was changed, or that goes another
way by chance, is never given the result of something else."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextvars import ContextVar
from dataclasses import dataclass, field

from penstock.errors import ReplayMismatch
from penstock.language.durable.records import FAILED, GIVEN, SIGNAL, STATE, History, Key, Record

CHANGED = (
    "Its code was changed while it ran, or is not deterministic. Bring the code back, or guard the change with "
    "ctx.version(...); `penstock replay` tries it without running anything."
)


@dataclass(slots=True, eq=False)
class Branch:
    """A line of a function's code: the function itself, or a task that it made. `path` tells them apart, by the order in which
    each made the next ones: `` for the function, `2/` for the second task that it made, `2/1/` for the first of that."""

    path: str
    task: asyncio.Task[object] | None
    asked: int = 0
    names: Counter[str] = field(default_factory=Counter)
    made: list[Branch] = field(default_factory=list)

    def end(self) -> None:
        """The attempt is over: the tasks that it made, and that these made, are cancelled, and let go of once they are done. What
        one that nobody awaits any more has raised is told to nobody."""
        for branch in self.made:
            branch.end()
            if branch.task is not None:
                branch.task.cancel()
                branch.task.add_done_callback(branch._let_go)

    def _let_go(self, task: asyncio.Task[object]) -> None:
        # A task holds its context, and that this branch: without the cut both wait for the garbage collector.
        self.task = None
        if not task.cancelled():
            task.exception()


BRANCH: ContextVar[Branch | None] = ContextVar("penstock_durable_branch", default=None)
"""Of the task that runs: inherited by the tasks that it makes, which then become branches of it."""


def branch_here() -> Branch:
    """The branch of the task that calls."""
    branch, task = BRANCH.get(), asyncio.current_task()
    assert branch is not None, "outside of a durable function"
    if branch.task is not task:
        parent, branch = branch, Branch(f"{branch.path}{len(branch.made) + 1}/", task)
        parent.made.append(branch)
        BRANCH.set(branch)
    return branch


class Journal:
    """What is recorded of one run, and how much of it was asked for."""

    def __init__(self, history: History) -> None:
        self._history = history
        _forget_cause(history)
        self._at = {
            (_path(key.name), record.position): record
            for key, record in history.records.items()
            if record.position
        }
        self._unasked = set(self._at)
        self._signals: dict[str, str] = {}
        self._signalled: Counter[str] = Counter()

    @property
    def replaying(self) -> bool:
        """Whether something is recorded that the function has not come to yet."""
        return bool(self._unasked)

    def unasked(self) -> Record | None:
        """The first thing that is recorded and that the function has not come to; None if it has come to all."""
        return self._at[min(self._unasked)] if self._unasked else None

    def ask(self, kind: str, name: str) -> tuple[Key, int, Record | None]:
        """The key of what the calling branch asks for now, its position, and what is recorded of it. Raises ReplayMismatch."""
        branch = branch_here()
        branch.asked += 1
        branch.names[name] += 1
        key = Key(branch.path + name, branch.names[name])
        place = (branch.path, branch.asked)
        self._unasked.discard(place)
        there, found = self._at.get(place), self._history.records.get(key)
        if there is not None and there.key != key:
            raise _mismatch(f"{kind} {key}", branch.asked, there)
        other_place = found is not None and found.position not in (0, branch.asked)
        if found is not None and (other_place or found.kind not in (kind, GIVEN)):
            raise _mismatch(f"{kind} {key}", branch.asked, found)
        return key, branch.asked, found

    def peek(self, kind: str, name: str) -> bool:
        """Whether this is what is recorded at the place that the calling branch has come to."""
        branch = branch_here()
        there = self._at.get((branch.path, branch.asked + 1))
        return there is not None and there.kind == kind and there.key.name == branch.path + name

    def ask_signal(self, name: str, *, timed_out: bool = False) -> tuple[Key, Record | None]:
        """The same of a signal, which somebody else records. Signals of one name come in order, so one branch asks for them.
        `timed_out`: this call has waited in vain, in an attempt before."""
        branch = branch_here()
        if self._signals.setdefault(name, branch.path) != branch.path:
            raise ReplayMismatch(
                f"two branches wait for the signal {name!r}, and which of them it is for would be left to chance",
                hint="Give each branch a signal of its own name.",
            )
        self._signalled[name] += not timed_out
        key = signal_key(name, self._signalled[name])
        return key, self._history.records.get(key)

    def forget_signal(self, key: Key) -> None:
        """Nothing came in time: the next call waits for the same one."""
        self._signalled[key.name.partition("/")[2]] -= 1

    def check_end(self) -> None:
        """The function has ended. Raises ReplayMismatch if something is recorded that it did not ask for."""
        left = self.unasked()
        if left is not None:
            raise ReplayMismatch(
                f"the function has ended, and its run has recorded {left.kind} {left.key} at position "
                f"{left.position}, which it did not ask for",
                hint=CHANGED,
            )


def _forget_cause(history: History) -> None:
    """The failed step that the attempt before ended with is tried anew, unless its branch has gone on after it."""
    cause = None if history.failed_by is None else history.records.get(history.failed_by)
    if cause is not None and cause.status == FAILED:
        path = _path(cause.key.name)
        later = (
            r for k, r in history.records.items() if _path(k.name) == path and r.position > cause.position
        )
        if not any(later):
            del history.records[cause.key]


def signal_key(name: str, ordinal: int) -> Key:
    return Key(f"{SIGNAL}/{name}", ordinal)


def state_key(name: str) -> Key:
    return Key(f"{STATE}/{name}", 1)


def _path(name: str) -> str:
    return name[: name.rfind("/") + 1]


def _mismatch(asked: str, position: int, recorded: Record) -> ReplayMismatch:
    return ReplayMismatch(
        f"at position {position} the function asks for {asked}, and its run has recorded {recorded.kind} {recorded.key} "
        f"at position {recorded.position}",
        hint=CHANGED,
    )
