"""A small conductor of Orquesta: joins, transitions by outcome, and published values. It was written from the rules of the
original and compared with it. Tasks that several transitions reach without a `join` are outside of it."""

from __future__ import annotations

import heapq
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

_HOLDS = {
    None: (True, False),
    "<% completed() %>": (True, False),
    "<% succeeded() %>": (True,),
    "<% failed() %>": (False,),
}
"""The outcomes for which each `when` holds."""
_APPENDED = re.compile(r"<% ctx\((\w+)\) \+ '(\w+)' %>")
_COMMANDS = frozenset({"continue", "noop", "fail"})


@dataclass(frozen=True, slots=True)
class End:
    """The end of a task: the seconds after its start, and its outcome."""

    seconds: float
    succeeds: bool = True


@dataclass(slots=True)
class Played:
    """A run: its status, the variables that each task started with, and those of the output."""

    status: str = "running"
    started: dict[str, dict[str, Any]] = field(default_factory=dict)
    output: dict[str, Any] = field(default_factory=dict)


class Conductor:
    """A run of a workflow. Its contexts are numbered, and each task has the numbers of those that it sees, in order."""

    def __init__(self, workflow: Mapping[str, Any], ends: Mapping[str, End]) -> None:
        self._tasks, self._ends = workflow["tasks"], ends
        self._contexts = [{key: value for pair in workflow["vars"] for key, value in pair.items()}]
        self._numbers: dict[str, list[int]] = {}
        self._arrivals: dict[str, set[str]] = {}
        self._sequence: list[tuple[list[int], bool, str]] = []
        self._running: list[tuple[float, int, str]] = []
        self.played = Played()

    def play(self) -> Played:
        """Run the workflow to its end, and return what was run."""
        reached = {target for task in self._tasks.values() for _, _, target in _targets(task)}
        for name in sorted(self._tasks.keys() - reached):
            self._numbers[name] = [0]
            self._start(name, 0)
        while self._running:
            now, _, name = heapq.heappop(self._running)
            self._end(name, now)
            if self.played.status == "running" and not self._running:
                waits = self._arrivals.keys() - self.played.started.keys()
                self.played.status = "failed" if waits else "succeeded"
                self._sequence = [(seen, last or task == name, task) for seen, last, task in self._sequence]
        for seen in (seen for seen, is_last, _ in self._sequence if is_last):
            # The variables of the start are merged once, so that they replace no published value.
            self.played.output |= self._merged(seen if not self.played.output else seen[1:])
        return self.played

    def _start(self, name: str, now: float) -> None:
        self.played.started[name] = self._merged(self._numbers[name])
        self._sequence.append((self._numbers[name], not self._tasks[name].get("next"), name))
        heapq.heappush(self._running, (now + self._ends[name].seconds, len(self._sequence), name))

    def _end(self, name: str, now: float) -> None:
        succeeds = self._ends[name].succeeds
        commands: list[str] = []
        ready: list[str] = []
        for when, publish, target in sorted(_targets(self._tasks[name]), key=lambda entry: entry[2]):
            if succeeds not in _HOLDS[when]:
                continue
            seen = self._published(self._numbers[name], publish)
            if target in _COMMANDS:
                commands.append(target)
                self._sequence.append((seen, True, target))
                continue
            earlier = self._numbers.setdefault(target, [0])
            earlier += seen[1:]
            self._arrivals.setdefault(target, set()).add(name)
            if self._arrivals[target] == self._sources(target):
                ready.append(target)
        if "fail" in commands or not (succeeds or "noop" in commands or self._leads_on(name)):
            self.played.status = "failed"
        if self.played.status == "running" or "fail" in commands:
            for target in sorted(set(ready)):
                self._start(target, now)

    def _published(self, seen: list[int], publish: list[dict[str, str]]) -> list[int]:
        values = self._merged(seen)
        own: dict[str, Any] = {}
        for pair in publish:
            [(key, text)] = pair.items()
            match = _APPENDED.fullmatch(text)
            own[key] = values[key] = values[match[1]] + match[2] if match is not None else text
        if not own:
            return list(seen)
        self._contexts.append(own)
        return [*seen, len(self._contexts) - 1]

    def _merged(self, numbers: list[int]) -> dict[str, Any]:
        merged: dict[str, Any] = {}
        for number in numbers:
            merged |= self._contexts[number]
        return merged

    def _sources(self, name: str) -> set[str]:
        return {
            source for source, task in self._tasks.items() if name in {entry[2] for entry in _targets(task)}
        }

    def _leads_on(self, name: str) -> bool:
        return any(
            False in _HOLDS[when] and target not in _COMMANDS
            for when, _, target in _targets(self._tasks[name])
        )


def _targets(task: Mapping[str, Any]) -> list[tuple[str | None, list[dict[str, str]], str]]:
    """Return the condition, the published values and the target of each transition. One without a target is `continue`."""
    return [
        (step.get("when"), step.get("publish", []), target)
        for step in task.get("next", [])
        for target in step.get("do") or ["continue"]
    ]
