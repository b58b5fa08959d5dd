"""Every state that a model can reach, and what is wrong in one of them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Protocol, TypeVar

State = TypeVar("State")


class Model(Protocol[State]):
    """A small protocol: its first state, its steps, and what its states must keep."""

    misfortunes: tuple[str, ...]
    """The beginnings of the names of steps that do not help anything to its end."""

    def beginning(self) -> State: ...

    def steps(self, s: State) -> Iterator[tuple[str, State]]: ...

    def violated(self, s: State) -> str: ...

    def is_too_far(self, s: State) -> bool: ...

    def is_at_rest(self, s: State) -> bool: ...


class Searched:
    """`states`: how many there are. `violation`: the invariant and the shortest way to break it."""

    def __init__(self, states: int, violation: str = "", way: tuple[str, ...] = ()) -> None:
        self.states, self.violation, self.way = states, violation, way


def search(model: Model[State]) -> Searched:
    """Search all states, breadth first. Then I10: from each of them everything can still be brought to its end without help."""
    first = model.beginning()
    reached: dict[State, tuple[State, str] | None] = {first: None}
    predecessors: dict[State, list[State]] = {}
    todo = deque([first])
    while todo:
        state = todo.popleft()
        broken = model.violated(state)
        if broken:
            return Searched(len(reached), broken, _way(reached, state))
        for name, successor in model.steps(state):
            if successor == state or model.is_too_far(successor):
                continue
            if not name.startswith(tuple(model.misfortunes)):
                predecessors.setdefault(successor, []).append(state)
            if successor not in reached:
                reached[successor] = (state, name)
                todo.append(successor)
    return _progress(model, reached, predecessors)


def _progress(
    model: Model[State],
    reached: dict[State, tuple[State, str] | None],
    predecessors: dict[State, list[State]],
) -> Searched:
    finishing = {state for state in reached if model.is_at_rest(state)}
    todo = deque(finishing)
    while todo:
        for state in predecessors.get(todo.popleft(), ()):
            if state not in finishing:
                finishing.add(state)
                todo.append(state)
    for state in reached:  # in the order of their distance
        if state not in finishing:
            return Searched(len(reached), "I10", _way(reached, state))
    return Searched(len(reached))


def _way(reached: dict[State, tuple[State, str] | None], state: State) -> tuple[str, ...]:
    names: list[str] = []
    while (step := reached[state]) is not None:
        state, name = step
        names.append(name)
    return tuple(reversed(names))
