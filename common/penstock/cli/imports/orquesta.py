"""A workflow of Orquesta as one of ours. What has no equal is left out and told."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from typing import Any

from penstock.cli.imports import known_keys
from penstock.cli.imports.marked_yaml import Marked
from penstock.cli.imports.orquesta_expressions import NotMapped, condition, template
from penstock.cli.imports.orquesta_parts import INLINE, NOTHING, names_of, pairs, reached, steps_of
from penstock.cli.imports.report import Report

_WITH = re.compile(r"\s*(?:(\w+)\s+in\s+)?(<%.*%>|\{\{.*\}\})\s*", re.DOTALL)
_FAILED = re.compile(r"\s*(?:<%|\{\{)\s*failed\(\)\s*(?:%>|\}\})\s*")
"""When any failed task is tried again, which is what `retry` says here, too."""
_TO_DO = "{{ context.to_do }}"
"""In the place of an input that is not mapped: a task that comes to it fails, and says so."""
_ENDS = {"noop", "continue", "fail"}
_ONLY_OF_WORKERS = ("with", "retry", "delay")
"""What a task that the executor does by itself, `noop` or `fail`, cannot have here."""


class Orquesta:
    """Maps one workflow. `action_of` gives the ref here of an action that a task names; `workflows` are those that are one."""

    def __init__(
        self, file: str, report: Report, action_of: Callable[[str, int], str], workflows: Collection[str]
    ) -> None:
        self._workflows = workflows
        self._file, self._report, self._action_of = file, report, action_of

    def workflow(self, source: Marked) -> dict[str, Any]:
        """The body below the workflow's name."""
        self._name_left(source, known_keys.WORKFLOW, "the workflow")
        body: dict[str, Any] = {"description": source.get("description")}
        body["parameters"] = {
            name: {"required": True} if default is NOTHING else self._parameter(default, line)
            for name, default, line in pairs(source, "input")
        }
        self._tasks = set(source.get("tasks") or {})
        variables = self._named(source, "vars")
        variables = self._at_the_start(variables, set(body["parameters"]), source.line("vars"))
        if variables:
            body["vars"] = variables
        tasks: Marked = source.get("tasks") or Marked()
        successors = self._edges(tasks)
        body["tasks"] = {name: self._task(tasks, name, successors) for name in tasks}
        led_to = {
            target
            for task in body["tasks"].values()
            for step in task.get("next", ())
            for target in step.get("do", ())
        }
        if "handled" in led_to - tasks.keys():
            body["tasks"]["handled"] = {"action": "noop"}
        if "fail" in led_to - tasks.keys():
            body["tasks"]["fail"] = {"action": "fail", "input": {"message": "the workflow says fail"}}
        output = self._named(source, "output")
        if output:
            body["output"] = output
        return {name: part for name, part in body.items() if part or name == "tasks"}

    def _parameter(self, default: Any, line: int) -> dict[str, Any]:
        """A default is a plain value here."""
        try:
            mapped = template(default)
        except NotMapped:
            mapped = None
        if mapped is None or mapped != default:
            if default is not None:
                self._gap(
                    line, f"a default that is computed: {default}", "Give it in `vars`, or in the caller."
                )
            return {}
        return {"default": default}

    def _task(self, tasks: Marked, name: str, successors: dict[str, set[str]]) -> dict[str, Any]:
        source: Marked = tasks[name]
        action, inputs = self._action(source, name)
        task: dict[str, Any] = {"workflow" if action in self._workflows else "action": action}
        if action == "fail":
            for key in ("input", *_ONLY_OF_WORKERS):
                source.pop(key, None)
        if "input" in source and isinstance(source["input"], str):
            inputs = self._value(source["input"], source.line("input"), _TO_DO)
        else:
            for key, value, line in pairs(source, "input"):
                inputs[key] = self._value(value, line, _TO_DO)
        if inputs:
            task["input"] = inputs
        self._items(source, task)
        if "join" in source:
            task["join"] = source["join"]
        elif len([predecessor for predecessor in tasks if name in successors.get(predecessor, ())]) > 1:
            self._gap(
                tasks.line(name),
                f"{name} has several tasks before it and no join: it would run once for each",
                "Here it runs once, after the first. Write a task for each, or `join: all`.",
            )
        if "delay" in source:
            task["delay"] = self._value(source["delay"], source.line("delay"))
        if "retry" in source and "workflow" in task:
            self._gap(source.line("retry"), "retry of a workflow", "Have the tasks in it tried again.")
        elif "retry" in source:
            self._retry(source, task)
        steps = [self._step(name, step, successors) for step in steps_of(source)]
        if steps:
            task["next"] = [step for step in steps if step]
        self._name_left(source, known_keys.TASK, f"the task {name}")
        return task

    def _action(self, source: Marked, name: str) -> tuple[str, dict[str, Any]]:
        words = str(source.get("action", "core.noop")).strip()
        ref, _, inline = words.partition(" ")
        line = source.line("action")
        inputs = {key: self._value(value.strip("\"'"), line) for key, value in INLINE.findall(inline)}
        if "<%" in ref or "{{" in ref:
            self._gap(
                line,
                f"the action of {name} is computed: {words}",
                "Write a task for each action, with `when`.",
            )
            return "fail", {"message": f"to do: write a task for each action that {name} may run"}
        if ref == "core.noop" and not source.keys() & _ONLY_OF_WORKERS:
            return "noop", inputs
        return self._action_of(ref, line), inputs

    def _items(self, source: Marked, task: dict[str, Any]) -> None:
        if "with" not in source:
            return
        line, spec = source.line("with"), source["with"]
        spec = spec if isinstance(spec, Marked) else Marked(items=spec)
        self._name_left(spec, known_keys.ITEMS, "`with`")
        items = spec.get("items")
        match = _WITH.fullmatch(items) if isinstance(items, str) else None
        if isinstance(items, str) and match is None:
            self._gap(
                line,
                f"items of several lists: {items}",
                "Make one list of mappings before, and use its fields.",
            )
            task["with_items"] = []
        else:
            task["with_items"] = self._value(match[2] if match else items, line, otherwise=[])
        if spec.get("concurrency") is not None:
            task["concurrency"] = self._value(spec["concurrency"], line, otherwise=1)

    def _retry(self, source: Marked, task: dict[str, Any]) -> None:
        line, spec = source.line("retry"), source["retry"]
        self._name_left(spec, known_keys.RETRY, "`retry`")
        count = spec.get("count", 1)
        if not isinstance(count, int):
            self._gap(line, f"a number of tries that is computed: {count}", "Write a number into `retry`.")
            count = 1
        task["retry"] = {"max_attempts": count + 1}
        delay = spec.get("delay", 0)
        if isinstance(delay, int | float):
            task["retry"] |= {"initial_delay": delay, "backoff": "fixed"} if delay else {}
        else:
            self._gap(line, f"a delay that is computed: {delay}", "Write seconds into `retry`.")
        if "when" in spec and not _FAILED.fullmatch(str(spec["when"])):
            self._gap(
                line,
                f"retry when {spec['when']}",
                "Have the action raise Retry where it should be tried again.",
            )

    def _step(self, name: str, step: Marked, successors: dict[str, set[str]]) -> dict[str, Any]:
        self._name_left(step, known_keys.STEP, f"a step after {name}")
        mapped: dict[str, Any] = {"when": True}
        if "when" in step:
            try:
                mapped["when"] = condition(step["when"])
            except NotMapped:
                self._gap(
                    step.line("when"),
                    f"when {step['when']}",
                    "Write it as an expression; until then it never holds.",
                )
                mapped["when"] = 'result == "to do"'
        published = self._named(step, "publish")
        if published:
            mapped["publish"] = published
        then = [
            target
            for target in names_of(step.get("do"))
            if target == "fail" or (target not in _ENDS and target in successors.get(name, ()))
        ]
        if then:
            mapped["do"] = then
        elif not published and "failed()" in str(mapped["when"]):
            mapped["do"] = ["handled"]  # of a failure that is handled so, a task has to follow
        elif not published:
            return {}
        stepped: dict[str, Any] = _renamed(
            mapped, rf"\btasks\.{name}\.", ""
        )  # of its own end it speaks without its name
        return stepped

    def _edges(self, tasks: Marked) -> dict[str, set[str]]:
        """Return the successors of each task, without those that would close a cycle, or that do not exist."""
        successors: dict[str, set[str]] = {}
        for name, task in tasks.items():
            for step in steps_of(task):
                for target in names_of(step.get("do")):
                    if target in _ENDS:
                        continue
                    if target not in tasks:
                        self._gap(
                            step.line("do"), f"{name} goes to {target}, which is no task", "Correct the name."
                        )
                    elif target == name or name in reached(target, successors):
                        self._gap(
                            step.line("do"),
                            f"{name} goes back to {target}",
                            "A task cannot come after itself: use `retry`, `with_items`, or a workflow that calls itself.",
                        )
                    else:
                        successors.setdefault(name, set()).add(target)
        return successors

    def _named(self, source: Marked, key: str) -> dict[str, Any]:
        """Return the variables with names that an expression can use."""
        variables = {}
        for name, value, line in pairs(source, key):
            if key != "output" and not str(name).isidentifier():
                self._gap(
                    line, f"the name {name}", "A name has letters, digits and _ only: choose another one."
                )
            else:
                variables[name] = self._value(value, line)
        return variables

    def _at_the_start(self, variables: dict[str, Any], names: set[str], line: int) -> dict[str, Any]:
        """Variables of the workflow see its parameters here, and not each other."""
        renamed: dict[str, Any] = _renamed(variables, r"\bcontext\.", "parameters.")
        for name, value in renamed.items():
            if value != variables[name] and not set(re.findall(r"\bparameters\.(\w+)", str(value))) <= names:
                self._gap(
                    line,
                    f"the variable {name} made of another one",
                    "Write out what the other one is made of.",
                )
                renamed[name] = None
        return renamed

    def _value(self, value: Any, line: int, otherwise: Any = None) -> Any:
        try:
            mapped = template(value)
            if not set(re.findall(r"\btasks\.(\w+)", str(mapped))) <= self._tasks:
                raise NotMapped(value)
            return mapped
        except NotMapped:
            self._gap(
                line, f"the expression {value}", f"Write it as an expression; it is `{otherwise}` until then."
            )
            return otherwise

    def _name_left(self, source: Marked, keys: known_keys.Keys, subject: str) -> None:
        known_keys.name_left(self._report, self._file, source, keys, subject)

    def _gap(self, line: int, subject: str, by_hand: str) -> None:
        self._report.gap(self._file, line, " ".join(subject.split()), by_hand)


def _renamed(value: Any, pattern: str, by: str) -> Any:
    """With this changed within expressions, or in a `when`, which is one."""
    if isinstance(value, dict):
        return {
            key: re.sub(pattern, by, item)
            if key == "when" and isinstance(item, str)
            else _renamed(item, pattern, by)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [_renamed(item, pattern, by) for item in value]
    if isinstance(value, str):
        return re.sub(r"\{\{.*?\}\}", lambda match: re.sub(pattern, by, match[0]), value)
    return value
