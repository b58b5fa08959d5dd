"""Tasks as they are recorded while a workflow function is read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock.language.terms.options import Wrong
from penstock.language.terms.sources import Source, caller, of_frame
from penstock.language.workflows.cloacina_trigger_rules import is_cloacinas, translated
from penstock.language.workflows.task_trigger_rules import FAILURE, SKIP, SUCCESS
from penstock.language.workflows.value_reference import ValueReference, expression


class TaskDraft:
    """A task that is still being written. `options` are those of `penstock.language.workflows.task.Task`."""

    def __init__(self, name: str, options: dict[str, Any], source: Source) -> None:
        self.name = name
        self.options = options
        self.source = source

    def come_after(self, *tasks: TaskHandle | str) -> None:
        self.options["needs"] = [*self.options.get("needs", ()), *tasks]


class TaskHandle(ValueReference):
    """A task, and a stand-in for its result: `t.files` is `tasks.t.result.files`.

    Fields of a result that are called like one of the methods are written `t["after"]`."""

    __slots__ = ("_draft",)

    def __init__(self, draft: TaskDraft) -> None:
        super().__init__(lambda: f"tasks.{draft.name}.result")
        self._draft = draft

    def after(self, *tasks: TaskHandle | str) -> TaskHandle:
        """Run it after these tasks too."""
        self._draft.come_after(*tasks)
        return self

    def when(self, rule: Any) -> TaskHandle:
        """The trigger rule: `failed(a)`, `any_of(...)`, `"one_failed"`, a comparison such as `a.count >
        3`."""
        self._draft.options["when"] = rule
        return self

    def publish(self, **values: Any) -> TaskHandle:
        """Set variables when it has completed: `t.publish(total=result.total)`."""
        self._draft.options["publish"] = {**self._draft.options.get("publish", {}), **values}
        return self

    def on(self, when: Any, *tasks: TaskHandle, publish: Mapping[str, Any] | None = None) -> TaskHandle:
        """A transition: if `when` is true at its end, go on with these tasks, and publish these variables."""
        way: dict[str, Any] = {"when": when, "do": list(tasks)}
        self._draft.options.setdefault("next", []).append(
            way | ({"publish": dict(publish)} if publish else {})
        )
        return self

    def set(self, **options: Any) -> TaskHandle:
        """Its name, or any other option of a task: retry, timeout, delay, route, limits, join, allow_failure,
        ..."""
        name = options.pop("name", self._draft.name)
        if not isinstance(name, str):
            raise of_frame(caller()).wrong(
                f"{name!r} is not the name of a task", "Write .set(name='charge_again')."
            )
        self._draft.name = name
        self._draft.options.update(options)
        return self


def draft_of(task: TaskHandle) -> TaskDraft:
    draft = object.__getattribute__(task, "_draft")
    assert isinstance(draft, TaskDraft)
    return draft


class TaskRule(dict[str, Any]):
    """A rule about the outcomes of tasks. `and`, `or` and `not` of Python would leave parts of it out without a word."""

    def __bool__(self) -> bool:
        raise of_frame(caller()).wrong(
            "how a task comes out is only known when the workflow runs",
            "Write all_of(...), any_of(...) or none_of(...) in place of and, or, not.",
        )


def success(task: TaskHandle | str) -> dict[str, Any]:
    """The rule that a task came out as success."""
    return TaskRule(success=task)


def failed(task: TaskHandle | str) -> dict[str, Any]:
    return TaskRule(failed=task)


def skipped(task: TaskHandle | str) -> dict[str, Any]:
    return TaskRule(skipped=task)


def all_of(*parts: Any) -> dict[str, Any]:
    """The rule that all of these rules hold."""
    return TaskRule(all=list(parts))


def any_of(*parts: Any) -> dict[str, Any]:
    return TaskRule(any=list(parts))


def none_of(*parts: Any) -> dict[str, Any]:
    return TaskRule(none=list(parts))


def name_of(task: TaskHandle | str) -> str:
    return draft_of(task).name if isinstance(task, TaskHandle) else task  # the model refuses what is no name


def rule_of(rule: Any) -> Any:
    """A rule as it is stored: references in it are expressions, and Cloacina's words are ours."""
    if isinstance(rule, ValueReference):
        return str(rule)
    if is_cloacinas(rule):
        try:
            rule = translated(rule)
        except Wrong:
            return rule  # the model refuses it, with its place
    if not isinstance(rule, Mapping):
        return rule
    stored: dict[str, Any] = {}
    for key, value in rule.items():
        if key in ("all", "any", "none") and isinstance(value, list | tuple):
            stored[key] = [rule_of(part) for part in value]
        else:
            stored[key] = name_of(value) if isinstance(value, TaskHandle) else value
    return stored


def condition_of(when: Any) -> Any:
    """The condition of a transition as it is stored."""
    return expression(when) if isinstance(when, ValueReference) else when


def tasks_in_rule(rule: Any) -> set[str]:
    """The tasks that a stored rule names one by one."""
    if not isinstance(rule, Mapping):
        return set()
    names = {str(rule[end]) for end in (SUCCESS, FAILURE, SKIP) if end in rule}
    parts = [part for key in ("all", "any", "none") if isinstance(rule.get(key), list) for part in rule[key]]
    return names.union(*map(tasks_in_rule, parts))
