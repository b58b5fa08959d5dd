"""The tasks that are recorded while a workflow function is read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock.language.terms.options import Wrong
from penstock.language.terms.sources import Source, caller, of_frame
from penstock.language.workflows.cloacina_trigger_rules import is_cloacinas, translated
from penstock.language.workflows.task_trigger_rules import FAILURE, SKIP, SUCCESS
from penstock.language.workflows.value_reference import ValueReference, expression


class TaskDraft:
    """A task that is being recorded. `options` are those of `penstock.language.workflows.task.Task`."""

    def __init__(self, name: str, options: dict[str, Any], source: Source) -> None:
        self.name = name
        self.options = options
        self.source = source

    def come_after(self, *tasks: TaskHandle | str) -> None:
        self.options["needs"] = [*self.options.get("needs", ()), *tasks]


class TaskHandle(ValueReference):
    """A task, and a stand-in for its result: `t.files` is `tasks.t.result.files`.

    A field of the result with the name of a method is written `t["after"]`.
    """

    __slots__ = ("_draft",)

    def __init__(self, draft: TaskDraft) -> None:
        super().__init__(lambda: f"tasks.{draft.name}.result")
        self._draft = draft

    def after(self, *tasks: TaskHandle | str) -> TaskHandle:
        """Run the task after these tasks too. Return the handle."""
        self._draft.come_after(*tasks)
        return self

    def when(self, rule: Any) -> TaskHandle:
        """Set the trigger rule: `failed(a)`, `any_of(...)`, `"one_failed"`, or a comparison such as `a.count > 3`.
        Return the handle."""
        self._draft.options["when"] = rule
        return self

    def publish(self, **values: Any) -> TaskHandle:
        """Publish variables when the task has completed: `t.publish(total=result.total)`. Return the handle."""
        self._draft.options["publish"] = {**self._draft.options.get("publish", {}), **values}
        return self

    def on(self, when: Any, *tasks: TaskHandle, publish: Mapping[str, Any] | None = None) -> TaskHandle:
        """Add a transition. If `when` is true at the end of the task, start these tasks and publish these variables.
        Return the handle."""
        way: dict[str, Any] = {"when": when, "do": list(tasks)}
        self._draft.options.setdefault("next", []).append(
            way | ({"publish": dict(publish)} if publish else {})
        )
        return self

    def set(self, **options: Any) -> TaskHandle:
        """Set the name or any other option of the task: retry, timeout, delay, route, limits, join, allow_failure, ...
        Return the handle."""
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
    """A rule about the outcomes of tasks. Python's `and`, `or` and `not` are errors, since they would silently drop
    parts of it."""

    def __bool__(self) -> bool:
        raise of_frame(caller()).wrong(
            "the outcome of a task is only known when the workflow runs",
            "Write all_of(...), any_of(...) or none_of(...) instead of and, or, not.",
        )


def success(task: TaskHandle | str) -> dict[str, Any]:
    """Return the rule that a task ended as success."""
    return TaskRule(success=task)


def failed(task: TaskHandle | str) -> dict[str, Any]:
    """Return the rule that a task ended as failure."""
    return TaskRule(failed=task)


def skipped(task: TaskHandle | str) -> dict[str, Any]:
    """Return the rule that a task was skipped."""
    return TaskRule(skipped=task)


def all_of(*parts: Any) -> dict[str, Any]:
    """Return the rule that all of these rules hold."""
    return TaskRule(all=list(parts))


def any_of(*parts: Any) -> dict[str, Any]:
    """Return the rule that at least one of these rules holds."""
    return TaskRule(any=list(parts))


def none_of(*parts: Any) -> dict[str, Any]:
    """Return the rule that none of these rules holds."""
    return TaskRule(none=list(parts))


def name_of(task: TaskHandle | str) -> str:
    return draft_of(task).name if isinstance(task, TaskHandle) else task  # the model refuses an invalid name


def rule_of(rule: Any) -> Any:
    """Return a rule in its stored form, with references as expressions, and with our words for those of Cloacina."""
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
    """Return the condition of a transition in its stored form."""
    return expression(when) if isinstance(when, ValueReference) else when


def tasks_in_rule(rule: Any) -> set[str]:
    """Return the tasks that a stored rule names one by one."""
    if not isinstance(rule, Mapping):
        return set()
    names = {str(rule[end]) for end in (SUCCESS, FAILURE, SKIP) if end in rule}
    parts = [part for key in ("all", "any", "none") if isinstance(rule.get(key), list) for part in rule[key]]
    return names.union(*map(tasks_in_rule, parts))
