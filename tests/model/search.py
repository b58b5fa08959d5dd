"""Every state that can be reached, and what is wrong in one of them."""

from __future__ import annotations

from collections import deque

from tests.model.protocol import (
    CANCELING,
    FINAL,
    MOST_ATTEMPTS,
    QUEUED,
    RUNNING,
    SCHEDULED,
    Protocol,
    State,
    beginning,
)

LIMIT = 1


def violated(s: State) -> str:
    """The invariant (as DESIGN names them) that does not hold in a state, or nothing."""
    if s.wrong:
        return s.wrong
    if any(execution.claims > 1 or execution.begun > 1 for execution in s.executions):
        return "I1"
    if len(s.slots) > LIMIT:
        return "I3"
    tasks = [execution.task for execution in s.executions if execution.task]
    if len(tasks) != len(set(tasks)):
        return "I6"
    if any(execution.ends > 1 for execution in s.executions):
        return "I9"
    return ""


class Searched:
    """`states`: how many there are. `violation`: the invariant and the shortest way to break it."""

    def __init__(self, states: int, violation: str = "", way: tuple[str, ...] = ()) -> None:
        self.states, self.violation, self.way = states, violation, way


def search(scenario: str, fault: str = "") -> Searched:
    """All states, breadth first. Then I10: from each of them everything can still be brought to its end without help."""
    protocol = Protocol(scenario, fault)
    first = beginning(scenario)
    reached: dict[State, tuple[State, str] | None] = {first: None}
    predecessors: dict[State, list[State]] = {}
    todo = deque([first])
    while todo:
        state = todo.popleft()
        broken = violated(state)
        if broken:
            return Searched(len(reached), broken, _way(reached, state))
        for name, successor in protocol.steps(state):
            if successor == state or any(
                execution.attempt > MOST_ATTEMPTS for execution in successor.executions
            ):
                continue
            if not name.startswith(("cancel", "worker 0 falls", "worker 0 dies", "lose", "die with")):
                predecessors.setdefault(successor, []).append(state)
            if successor not in reached:
                reached[successor] = (state, name)
                todo.append(successor)
    return _progress(reached, predecessors, scenario)


def _progress(
    came: dict[State, tuple[State, str] | None], before: dict[State, list[State]], scenario: str
) -> Searched:
    reaches = {state for state in came if _ended(state, scenario) or _last_attempt(state)}
    todo = deque(reaches)
    while todo:
        for state in before.get(todo.popleft(), ()):
            if state not in reaches:
                reaches.add(state)
                todo.append(state)
    for state in came:  # in the order of their distance
        if state not in reaches:
            return Searched(len(came), "I10", _way(came, state))
    return Searched(len(came))


def _ended(s: State, scenario: str) -> bool:
    """All is final, nothing is held, and a join was made."""
    final = all(execution.status in FINAL for execution in s.executions)
    return final and not s.slots and not s.waiters and (scenario != "join" or len(s.executions) == 3)


def _last_attempt(s: State) -> bool:
    """Return true where the model ends: an attempt more was not looked at."""
    return any(
        execution.attempt == MOST_ATTEMPTS and execution.status not in FINAL for execution in s.executions
    ) and any(
        execution.owner in s.dead or execution.status in (QUEUED, SCHEDULED, RUNNING, CANCELING)
        for execution in s.executions
    )


def _way(came: dict[State, tuple[State, str] | None], state: State) -> tuple[str, ...]:
    names: list[str] = []
    while (step := came[state]) is not None:
        state, name = step
        names.append(name)
    return tuple(reversed(names))
