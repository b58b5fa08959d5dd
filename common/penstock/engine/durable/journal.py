"""The comparison of a function's calls with the records of its run. A call is found by its branch, name and ordinal,
and must be at its recorded position: each branch counts its calls. If another call is recorded at that position, the
run stops. So changed code never receives the result of another call."""

from __future__ import annotations

from penstock.engine.durable.branches import branch_here
from penstock.engine.durable.records import (
    GIVEN,
    SIGNAL,
    STARTED,
    STATE,
    STEP,
    SUPERSEDED,
    VERSION,
    History,
    Key,
    Record,
)
from penstock.engine.durable.retried_history import forget_failure
from penstock.errors import ReplayMismatch

CODE_CHANGED = (
    "The code was changed while the run was open, or is not deterministic. Restore the code, or guard the "
    "change with ctx.version(...)"
)
CHANGED = f"{CODE_CHANGED}. `penstock replay` compares the code with the run, and runs nothing."


class Journal:
    """The records of one run, and how many of them the function has reached. `told` is the number of the result that
    was delivered last. `changed` are the records that this attempt sets aside or takes back after a failure, until they
    are written. `unknown_change` is the recorded `ctx.version` that the code does not call at its place: older code has
    none of it."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._tentative, self.changed = forget_failure(history)
        self._gone = {key for key, record in history.records.items() if record.status == SUPERSEDED}
        self._at = {
            (path_of(key.name), record.position): record
            for key, record in history.records.items()
            if record.position and key not in self._gone
        }
        self._unasked = dict.fromkeys(self._at)
        self._last: dict[str, int] = {}
        """The last recorded position of each branch."""
        for path, position in self._at:
            self._last[path] = max(position, self._last.get(path, 0))
        self.told = 0
        self.unknown_change: Record | None = None
        self._registered: dict[Key, int] = {}
        """The registered undos in their order, each with the number of the result that was delivered before it."""

    @property
    def replaying(self) -> bool:
        """Return whether there is a record that the function has not reached yet."""
        return bool(self._unasked)

    def unasked(self) -> Record | None:
        """Return the first record that the function has not reached; None if it has reached all."""
        return self._at[min(self._unasked)] if self._unasked else None

    def ask(self, kind: str, name: str, target: str | None = None) -> Record:
        """Return the record of the calling branch's next call, or a new record if there is none. `target`: the ref that
        the call names, if it has a child. Raises ReplayMismatch if the recorded call is a different one."""
        branch = branch_here()
        branch.asked += 1
        place = (branch.path, branch.asked)
        at_place = self._at.get(place)
        if (
            at_place is not None
            and at_place.key in self._tentative
            and not self._fits(at_place, kind, branch.path + name, target)
        ):
            self._set_aside(place)
            at_place = None
        branch.names[name] += 1
        while (key := Key(branch.path + name, branch.names[name])) in self._gone:
            branch.names[name] += 1
        self._unasked.pop(place, None)
        recorded = self._history.records.get(key)
        if at_place is not None and at_place.key != key:
            if at_place.kind == VERSION != kind:
                self.unknown_change = at_place
            raise _mismatch(f"{kind} {key}", branch.asked, at_place)
        other_place = recorded is not None and recorded.position not in (0, branch.asked)
        if recorded is not None and (other_place or recorded.kind not in (kind, GIVEN)):
            raise _mismatch(f"{kind} {key}", branch.asked, recorded)
        if (other_target := self._other_target(key, target)) is not None:
            assert recorded is not None, "a child is stored together with its record"
            raise _mismatch(f"{kind} {key} ({target})", branch.asked, recorded, of=f" ({other_target})")
        return recorded or Record(key, branch.asked, kind, STARTED, tries=0, asked_after=self.told)

    def undo(self, name: str) -> Record:
        """Return the record of the next undo of this name that the calling branch registers. An undo has no
        position."""
        branch = branch_here()
        branch.undos[name] += 1
        key = Key(branch.path + name, branch.undos[name])
        self._registered[key] = self.told
        return self._history.records.get(key) or Record(
            key, 0, "step", STARTED, tries=0, asked_after=self.told
        )

    def peek(self, kind: str, name: str) -> bool:
        """Return whether the record at the next place of the calling branch is of this kind and name."""
        branch = branch_here()
        at_place = self._at.get((branch.path, branch.asked + 1))
        return at_place is not None and at_place.kind == kind and at_place.key.name == branch.path + name

    def override(self, name: str) -> Record | None:
        """Return the result that a command has set for the next call of this name of the calling branch, or None."""
        branch = branch_here()
        record = self._history.records.get(Key(branch.path + name, branch.names[name] + 1))
        return record if record is not None and record.kind == GIVEN else None

    def forget_unasked(self) -> None:
        """Set aside the records after a failure that the function has not reached by now. All recorded results were
        delivered, so the function will never reach them."""
        for place in [place for place in self._unasked if self._at[place].key in self._tentative]:
            if place in self._at:
                self._set_aside(place)

    def note_end(self) -> None:
        """Note the change that the code does not know, if the completed function has not reached its record."""
        record = self.unasked()
        if record is not None and record.kind == VERSION and record.key not in self._tentative:
            self.unknown_change = record

    def check_end(self, error: str | None = None) -> None:
        """Check that the ended function has reached all its records. `error`: the function has failed with it. Raises
        ReplayMismatch otherwise."""
        record = self.unasked()
        if record is not None:
            how = "ended" if error is None else f"failed ({error})"
            raise ReplayMismatch(
                f"the function has {how}, but its run has recorded {record.kind} {record.key} at position "
                f"{record.position}, which the function did not request",
                hint=CHANGED,
            )

    def check_undos(self, *, has_completed: bool = False) -> None:
        """Check that the undos that this run has begun are those that the function registered last, each after the same
        results. A function that has completed has none. Raises ReplayMismatch otherwise."""
        recorded = {
            key: record.asked_after
            for key, record in self._history.records.items()
            if record.kind == STEP and not record.position and key not in self._gone
        }
        undos = [] if has_completed else list(reversed(self._registered.items()))
        first_new = next(
            (n for n, (key, _) in enumerate(undos) if key not in self._history.records), len(undos)
        )
        if unregistered := recorded.items() - dict(undos[:first_new]).items():
            key = min(key for key, _ in unregistered)
            raise ReplayMismatch(
                f"the run has recorded the undo {key}, which the function did not call for",
                hint=CHANGED,
            )

    def _fits(self, record: Record, kind: str, name: str, target: str | None) -> bool:
        is_same_call = (record.kind, record.key.name, record.asked_after) == (kind, name, self.told)
        return is_same_call and self._other_target(record.key, target) is None

    def _other_target(self, key: Key, target: str | None) -> str | None:
        """Return the ref that the recorded call names, if it is known and is not `target`."""
        child = self._history.children.get(key)
        return None if child is None or target is None or child.target == target else child.target

    def _set_aside(self, place: tuple[str, int]) -> None:
        """Supersede the record at this position, and the later ones of its branch."""
        path, first = place
        for position in range(first, self._last[path] + 1):
            record = self._at.pop((path, position), None)
            if record is None:  # a cancelled call may leave no record
                continue
            self._unasked.pop((path, position), None)
            self._gone.add(record.key)
            record.status, record.told = SUPERSEDED, None
            self.changed.append(record)


def signal_key(name: str, ordinal: int) -> Key:
    return Key(f"{SIGNAL}/{name}", ordinal)


def state_key(name: str) -> Key:
    return Key(f"{STATE}/{name}", 1)


def path_of(name: str) -> str:
    """Return the branch in the name of a key."""
    return name[: name.rfind("/") + 1]


def _mismatch(call: str, position: int, recorded: Record, of: str = "") -> ReplayMismatch:
    return ReplayMismatch(
        f"at position {position} the function requests {call}, but its run has recorded {recorded.kind} "
        f"{recorded.key}{of} at position {recorded.position}",
        hint=CHANGED,
    )
