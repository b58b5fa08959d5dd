"""docs/workflows.md once more, as plain as it can be: after each end the whole graph is looked at anew.

Written from that page and not from the engine, and used for nothing but to compare the engine with it. It
knows the workflow only as its document, follows references by walking the graph, and keeps everything for
ever.
"""

from __future__ import annotations

from typing import Any

from penstock.errors import ExpressionError
from penstock.language.expressions import condition, holds, look_up, render
from tests.penstock.engine.reference_rules import FAILED, asks_for, speaks_of_outcomes, words


class Reference:
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

    # What happens

    def begin(self) -> None:
        for name, value in render(
            self.document.get("vars", {}), {"parameters": self.parameters, "system": {}}
        ).items():
            self.variables.append((None, name, value))
        self._until_quiet()

    def end(self, name: str, item: int | None, status: str, value: Any) -> None:
        if name not in self.running or self.final:
            return
        if name in self.fans:
            self._item_ended(name, item, status, value)
        else:
            self._task_ended(name, status, value)
        self._until_quiet()

    def _until_quiet(self) -> None:
        """Decide what can be decided, in the workflow's order; then start it, in the order of decision, each
        start to its last consequence: some tasks end as soon as they start."""
        self._decide_all()
        while self.due and not self.final:
            self._start(self.due.pop(0))
            self._decide_all()

    def _decide_all(self) -> None:
        for name in self.order:
            if name not in self.status and name not in self.ran and self._decidable(name):
                self._decide(name)
        if len(self.status) == len(self.tasks) and not self.final:
            self._conclude()

    # Deciding

    def outcome(self, source: str, target: str) -> str | None:
        """How a source came out for a target, or None if it has not ended."""
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

    def _decidable(self, name: str) -> bool:
        outcomes = list(self.outcomes(name).values())
        if None not in outcomes:
            return True
        if self.wanted(name) and outcomes.count("success") >= self.wanted(name):
            return True
        return self.tasks[name].get("when") == "one_failed" and "failed" in outcomes

    def _decide(self, name: str) -> None:
        outcomes, when = self.outcomes(name), self.tasks[name].get("when")
        found = list(outcomes.values())
        runs = found.count("success") >= self.wanted(name)
        try:
            if runs and when is not None:
                if not speaks_of_outcomes(when) and not self.wanted(name):
                    runs = self.holds(when, name) and set(found) <= {"success"}
                else:
                    runs = self.holds(when, name)
            elif runs and not self.wanted(name):
                runs = set(found) <= {"success"}
        except ExpressionError as error:
            self._task_ended(name, "failed", str(error))
            return
        if not runs:
            self._task_ended(name, "skipped")
            return
        self.ran.add(name)
        self.due.append(name)

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
        if "all" in rule:
            return all(self.holds(part, name) for part in rule["all"])
        if "any" in rule:
            return any(self.holds(part, name) for part in rule["any"])
        return not any(self.holds(part, name) for part in rule["none"])

    # Starting

    def _start(self, name: str) -> None:
        task = self.tasks[name]
        try:
            if "with_items" in task:
                self._fan_out(name)
                return
            given = render(task.get("input", {}), self.names(name))
        except ExpressionError as error:
            self._task_ended(name, "failed", str(error))
            return
        if task["action"] == "noop":
            self._task_ended(name, "completed", given)
        elif task["action"] == "fail":
            self._task_ended(name, "failed", given.get("message"))
        else:
            self.inputs[name, None] = given
            self.running.add(name)

    def _fan_out(self, name: str) -> None:
        task = self.tasks[name]
        items = render(task["with_items"], self.names(name))
        if not isinstance(items, list):
            raise ExpressionError("no list")
        if size := task.get("batch_size"):
            items = [items[n : n + size] for n in range(0, len(items), size)]
        if not items:
            self._task_ended(name, "completed", [])
            return
        self.fans[name] = {
            "items": items,
            "results": [None] * len(items),
            "ends": {},
            "begun": 0,
            "window": render(task.get("concurrency", len(items)), self.names(name)),
        }
        self.running.add(name)
        self._fill(name)

    def _beyond(self, name: str) -> bool:
        """Whether more items failed than are tolerated."""
        fan, policy = self.fans[name], self.tasks[name].get("item_failures", {})
        tolerate: int | str = policy.get("tolerate", 0)
        if isinstance(tolerate, str):
            tolerate = len(fan["items"]) * int(tolerate.rstrip("%")) // 100
        return sum(end in FAILED for end in fan["ends"].values()) > tolerate

    def _fill(self, name: str) -> None:
        fan, task = self.fans[name], self.tasks[name]
        while fan["begun"] < len(fan["items"]) and fan["begun"] - len(fan["ends"]) < fan["window"]:
            if self._beyond(name) and task.get("item_failures", {}).get("then", "finish") != "finish":
                break
            number = fan["begun"]
            fan["begun"] += 1
            names = {**self.names(name), "item": fan["items"][number], "index": number}
            try:
                self.inputs[name, number] = render(task.get("input", {}), names)
            except ExpressionError:
                fan["ends"][number] = "failed"
        if fan["begun"] == len(fan["ends"]):
            self._task_ended(name, "failed" if self._beyond(name) else "completed", fan["results"])

    def _item_ended(self, name: str, item: int | None, status: str, value: Any) -> None:
        fan = self.fans[name]
        if item in fan["ends"] or (name, item) not in self.inputs:
            return
        fan["ends"][item] = status
        fan["results"][item] = value if status == "completed" else None
        self._fill(name)

    # Ending

    def _task_ended(self, name: str, status: str, value: Any = None) -> None:
        task = self.tasks[name]
        self.running.discard(name)
        self.result[name] = value if status == "completed" or name in self.fans else None
        self.error[name] = value if status in FAILED else None
        self.status[name] = status
        self.routes[name] = []
        if status == "completed" and task.get("publish"):
            try:
                values = render(
                    task["publish"], self.names(name) | words(status, self.result[name], self.error[name])
                )
                self._publish(name, values)
            except ExpressionError as error:
                status = self.status[name] = "failed"
                self.error[name] = str(error)
        if status == "skipped":
            return
        for number, way in enumerate(task.get("next", ())):
            when = condition(way.get("when", "succeeded()"))
            names = self.names(name) | words(status, self.result[name], self.error[name])
            try:
                if not when(names):
                    continue
                self._publish(name, render(way.get("publish", {}), names))
            except ExpressionError:
                self.faults += 1
                continue
            route = False
            if status != "completed" and way.get("when") is not True:
                try:
                    route = not when(
                        self.names(name)
                        | words("completed", self.result[name], self.error[name])
                        | {"error": None}
                    )
                except ExpressionError:
                    route = True
            self.routes[name].append((number, route))

    def _publish(self, name: str, values: Any) -> None:
        if not isinstance(values, dict):
            raise ExpressionError("no mapping")
        self.variables += [(name, key, value) for key, value in values.items()]

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

    # The whole

    def handled(self, name: str) -> bool:
        for number, route in self.routes.get(name, ()):
            do = self.tasks[name]["next"][number].get("do", ())
            if route and (not do or any(task in self.ran for task in do)):
                return True
        return any(
            task in self.ran
            and self.outcome(name, task) == "failed"
            and asks_for(self.tasks[task].get("when"), name)
            for task in self.tasks
            if name in self.tasks[task].get("needs", ())
        )

    def unhandled(self) -> list[str]:
        return [
            name
            for name, status in self.status.items()
            if status in FAILED and not self.tasks[name].get("allow_failure") and not self.handled(name)
        ]

    def _conclude(self) -> None:
        if self.unhandled() or self.faults:
            self.final = ("failed", None)
            return
        try:
            self.final = ("completed", render(self.document.get("output"), self.names(None)))
        except ExpressionError:
            self.final = ("failed", None)
