"""docs/workflows.md once more, as plain as it can be: after each end the whole graph is looked at anew.

Written from that page and not from the engine, and used for nothing but to compare the engine with it. It
knows the workflow only as its document, follows references by walking the graph, and keeps everything for
ever.
"""

from __future__ import annotations

from typing import Any

from penstock.errors import ExpressionError
from penstock.language.expressions import condition, render
from tests.penstock.engine.reference_rules import FAILED, asks_for, speaks_of_outcomes, words
from tests.penstock.engine.reference_state import ReferenceState


class Reference(ReferenceState):
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
            if self.stopped:
                break
            if name not in self.status and name not in self.ran and self._decidable(name):
                self._decide(name)
        if self.document.get("fail_fast") and not self.stopped:
            self.stopped = bool(self.faults) or any(not self.may_be_handled(n) for n in self.unhandled())
        if self.stopped:
            self.due.clear()
            for name in sorted(self.running & self.fans.keys(), key=self.order.index):
                self._fill(name)
        over = not self.running if self.stopped else len(self.status) == len(self.tasks)
        if over and not self.final:
            self._conclude()

    # Deciding

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
                    runs = set(found) <= {"success"} and self.holds(when, name)
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
        """Return true if more items failed than are tolerated."""
        fan, policy = self.fans[name], self.tasks[name].get("item_failures", {})
        tolerate: int | str = policy.get("tolerate", 0)
        if isinstance(tolerate, str):
            tolerate = len(fan["items"]) * int(tolerate.rstrip("%")) // 100
        return sum(end in FAILED for end in fan["ends"].values()) > tolerate

    def _fill(self, name: str) -> None:
        fan, task = self.fans[name], self.tasks[name]
        while (
            not self.stopped
            and fan["begun"] < len(fan["items"])
            and fan["begun"] - len(fan["ends"]) < fan["window"]
        ):
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
            reached = "completed" if fan["begun"] == len(fan["items"]) else "cancelled"
            self._task_ended(name, "failed" if self._beyond(name) else reached, fan["results"])

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

    def may_be_handled(self, name: str) -> bool:
        """Return whether a task that is not decided yet would handle the failure if it ran."""
        undecided = [task for task in self.tasks if task not in self.status and task not in self.ran]
        for number, route in self.routes.get(name, ()):
            do = self.tasks[name]["next"][number].get("do", ())
            if route and any(task in do for task in undecided):
                return True
        return any(
            self.outcome(name, task) == "failed" and asks_for(self.tasks[task].get("when"), name)
            for task in undecided
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
