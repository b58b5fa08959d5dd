"""The knowledge of the reference of a run: its graph, the states of the tasks, and the values that expressions see."""

from __future__ import annotations

from typing import Any

from penstock.language.expressions import condition, holds, look_up
from tests.penstock.engine.reference_rules import FAILED, reads_values


class ReferenceState:
    def __init__(self, document: dict[str, Any], parameters: dict[str, Any]) -> None:
        self.document = document
        self.parameters = parameters
        self.tasks = {task["name"]: task for task in document["tasks"]}
        self.order = self._order()
        self.status: dict[str, str] = {}
        """Of tasks that have ended."""
        self.running: set[str] = set()
        self.ran: set[str] = set()
        """Tasks of which it was decided that they run."""
        self.result: dict[str, Any] = {}
        self.error: dict[str, Any] = {}
        self.routes: dict[str, list[tuple[int, bool]]] = {}
        """Transitions that were taken, and whether each is a failure route."""
        self.inputs: dict[tuple[str, int | None], Any] = {}
        self.variables: list[tuple[str | None, str, Any]] = []
        self.fans: dict[str, dict[str, Any]] = {}
        self.faults = 0
        self.final: tuple[str, Any] | None = None
        self.due: list[str] = []
        self.stopped = False
        """With `fail_fast`, after a failure that no task handles: nothing more starts."""

    # The graph

    def sources(self, name: str) -> list[str]:
        led = [
            t for t in self.tasks if any(name in way.get("do", ()) for way in self.tasks[t].get("next", ()))
        ]
        return [*self.tasks[name].get("needs", ()), *led]

    def _order(self) -> list[str]:
        order: list[str] = []
        while len(order) < len(self.tasks):
            order.append(
                next(t for t in self.tasks if t not in order and all(s in order for s in self.sources(t)))
            )
        return order

    def ancestors(self, name: str) -> set[str]:
        found: set[str] = set()
        for source in self.sources(name):
            found |= {source} | self.ancestors(source)
        return found

    # How sources came out

    def outcome(self, source: str, target: str) -> str | None:
        """Return the outcome of a source for a target, or None if it has not ended."""
        if source not in self.status:
            return None
        ways = self.tasks[source].get("next", ())
        if any(target in way.get("do", ()) for way in ways):
            taken = [target in ways[number].get("do", ()) for number, _ in self.routes.get(source, ())]
            return "success" if any(taken) else "skipped"
        status = self.status[source]
        if status in FAILED:
            return "success" if self.tasks[source].get("allow_failure") else "failed"
        return "success" if status == "completed" else "skipped"

    def outcomes(self, name: str) -> dict[str, str | None]:
        return {source: self.outcome(source, name) for source in self.sources(name)}

    def wanted(self, name: str) -> int:
        """N of `join: N`, or 0."""
        task = self.tasks[name]
        if task.get("when") == "one_success":
            return 1
        join: int | str | None = task.get("join")
        if join is None:
            join = "all" if task.get("needs") or not self.sources(name) else "any"
        return join if isinstance(join, int) else {"all": 0, "any": 1}[join]

    def holds(self, rule: Any, name: str) -> bool:
        outcomes = self.outcomes(name)
        found = list(outcomes.values())
        if rule == "all_success":
            return set(found) <= {"success"}
        if rule in ("all_done", "always"):
            return None not in found
        if rule == "one_success":
            return "success" in found
        if rule == "one_failed":
            return "failed" in found
        if rule == "none_failed":
            return None not in found and "failed" not in found
        if isinstance(rule, str):
            return condition(rule)(self.names(name))
        for end in ("success", "failed", "skipped"):
            if end in rule:
                return outcomes[rule[end]] == end
        if "context" in rule:
            return holds(rule["op"], look_up(rule["context"], self.names(name)["context"]), rule.get("value"))
        [(word, parts)] = rule.items()
        met = (self.holds(part, name) for part in sorted(parts, key=reads_values))
        if word == "all":
            return all(met)
        return any(met) if word == "any" else not any(met)

    # What expressions see

    def names(self, reader: str | None) -> dict[str, Any]:
        before = set(self.order) if reader is None else self.ancestors(reader)
        variables: dict[str, tuple[int, Any]] = {}
        for writer, key, value in self.variables:
            if writer is None or writer in before:
                place = -1 if writer is None else self.order.index(writer)
                if key not in variables or place >= variables[key][0]:
                    variables[key] = (place, value)
        values = {key: value for key, (_, value) in variables.items()}
        return {
            "parameters": self.parameters,
            "vars": values,
            "context": {**self.parameters, **values},
            "tasks": {
                task: {
                    "status": self.status.get(task, "open"),
                    "result": self.result.get(task) if task in self.status else None,
                    "error": self.error.get(task),
                }
                for task in before
            },
            "system": {"id": "run-1", "workflow": self.document["ref"], "depth": 0},
        }
