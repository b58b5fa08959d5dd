"""The recorder that turns the calls in a workflow function into tasks."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from typing import Any

from penstock.errors import DefinitionError, ExpressionError
from penstock.language.expressions import NamesUsed, condition, names_used
from penstock.language.terms.sources import Source, caller, of_frame
from penstock.language.workflows.fan_out import FanOutItem, options_of
from penstock.language.workflows.model import Workflow
from penstock.language.workflows.task_handle import (
    TaskDraft,
    TaskHandle,
    condition_of,
    name_of,
    rule_of,
    tasks_in_rule,
)
from penstock.language.workflows.value_reference import FORMATTED, ValueReference, template
from penstock.run.call_interceptor import CALL_INTERCEPTOR


class TaskRecorder:
    """The recorded tasks of one workflow function, in the order of its calls."""

    def __init__(self) -> None:
        self.drafts: list[TaskDraft] = []
        self.exit: TaskDraft | None = None

    def record_call(self, callee: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> TaskHandle:
        """Record a task for a call of an action or a workflow, and return its handle."""
        source = of_frame(caller())
        return self.add({"input": _arguments(callee, args, kwargs, source), **_what(callee, source)}, source)

    def add(self, options: dict[str, Any], source: Source) -> TaskHandle:
        ref = options.get("action") or options.get("workflow") or ""
        name = options.pop("name", None)
        if name is None:
            name = self._free(_word(str(ref)) or next(iter(options)))
        if not isinstance(name, str):
            raise source.wrong(f"{name!r} is not the name of a task", "Write name='charge_again'.")
        draft = TaskDraft(name, {}, source)
        for task in _several(options.pop("after", ())):
            draft.come_after(task)
        self._fan_out(options, source)
        draft.options |= options
        self.drafts.append(draft)
        return TaskHandle(draft)

    def at_exit(self, draft: TaskDraft, source: Source) -> None:
        """Make `draft` the exit task. The draft may have been recorded as an ordinary task before."""
        if self.exit is not None:
            raise source.wrong(
                "on_exit is called twice",
                "Only one task can run at the end. To run several, let this task run a workflow.",
            )
        if draft in self.drafts:
            self.drafts.remove(draft)
        else:
            self._fan_out(draft.options, source)
        self.exit = draft

    def exit_step(self) -> dict[str, Any] | None:
        """Return the exit task in its stored form, or None."""
        return None if self.exit is None else _stored(self.exit.options)

    def tasks(self) -> list[dict[str, Any]]:
        """Return the tasks in their stored form, each with the needs that follow from the values that it uses."""
        return [self._task(draft) for draft in self.drafts]

    def _task(self, draft: TaskDraft) -> dict[str, Any]:
        options = _stored(draft.options)
        used = _used(options) | tasks_in_rule(options.get("when"))
        led = {other.name for other in self.drafts if draft.name in _targets(other)}
        needs = list(options.pop("needs", ()))
        needs += [
            other.name
            for other in self.drafts
            if other.name in used and other.name not in needs and other.name not in led and other is not draft
        ]
        return {"name": draft.name, **options} | ({"needs": needs} if needs else {})

    def _fan_out(self, options: dict[str, Any], source: Source) -> None:
        """Set `with_items` and its options from the `each(...)` in the task's input."""
        items_by_id: dict[int, FanOutItem] = {id(item): item for item in _fan_out_items(options)}
        formatted = FORMATTED.get()
        if not items_by_id and formatted is not None and _uses_item(options):
            items_by_id = {id(formatted): formatted}
            FORMATTED.set(None)
        if len(items_by_id) > 1:
            raise source.wrong(
                "two each(...) in one task",
                "A task has one list of items: zip them, each(expr('zip(vars.a, vars.b)')), and use item[0].",
            )
        for item in items_by_id.values():
            options |= options_of(item)

    def _free(self, name: str) -> str:
        names = {draft.name for draft in self.drafts}
        number = 2
        free = name
        while free in names:
            free, number = f"{name}_{number}", number + 1
        return free


def current_recorder() -> TaskRecorder | None:
    """Return the recorder of the workflow function that is being read, or None."""
    interceptor = CALL_INTERCEPTOR.get()
    owner = getattr(interceptor, "__self__", None)
    return owner if isinstance(owner, TaskRecorder) else None


def _what(callee: Any, source: Source) -> dict[str, str]:
    if isinstance(callee, str):
        return {"action": callee}
    if isinstance(callee, Workflow):
        return {"workflow": callee.ref}
    if isinstance(getattr(callee, "ref", None), str):
        return {"action": callee.ref}
    raise source.wrong(
        f"{callee!r} is neither an action nor a workflow",
        "Put @action on the function, or give a ref as text.",
    )


def _arguments(
    callee: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], source: Source
) -> dict[str, Any]:
    """Return the arguments by name, as they would be passed to the function."""
    if not args:
        return dict(kwargs)
    function = getattr(callee, "function", None)
    if function is None:
        raise source.wrong(f"{callee!r} takes its parameters by name", "Write name=value.")
    try:
        return dict(inspect.signature(function).bind_partial(*args, **kwargs).arguments)
    except TypeError as error:
        raise source.wrong(f"{getattr(callee, 'ref', callee)}: {error}") from None


def _word(ref: str) -> str:
    return re.sub(r"\W+", "_", ref.rpartition(".")[2])


def _several(tasks: Any) -> list[Any]:
    return list(tasks) if isinstance(tasks, list | tuple | set) else [tasks]


def _stored(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a task in their stored form, with templates in place of references."""
    stored = dict(options)
    if "when" in stored:
        stored["when"] = rule_of(stored["when"])
    if "next" in stored:
        stored["next"] = [_way(way) for way in _several(stored["next"])]
    wait = stored.get("wait_for_event")
    if isinstance(wait, Mapping) and isinstance(wait.get("filter"), ValueReference):
        stored["wait_for_event"] = {**wait, "filter": condition_of(wait["filter"])}
    for field in ("input", "with_items", "concurrency", "delay", "route", "publish", "inquiry"):
        if field in stored:
            stored[field] = template(stored[field])
    if "needs" in stored:
        names = [name_of(task) for task in _several(stored["needs"])]
        stored["needs"] = [name for n, name in enumerate(names) if name not in names[:n]]
    return stored


def _way(way: Any) -> Any:
    """Return a transition in its stored form. If it is invalid, return it unchanged: the model refuses it with its
    place."""
    if not isinstance(way, Mapping):
        return way
    stored = {**way, **template({key: value for key, value in way.items() if key == "publish"})}
    if "when" in way:
        stored["when"] = condition_of(way["when"])
    if "do" in way:
        stored["do"] = [name_of(task) for task in _several(way["do"])]
    return stored


def _used(options: Mapping[str, Any]) -> set[str]:
    """Return the tasks of which a task uses the results."""
    used = NamesUsed()
    try:
        for field in ("input", "with_items", "concurrency", "delay", "route", "inquiry", "when", "publish"):
            used |= names_used(options.get(field))
        wait = options.get("wait_for_event")
        conditions = [wait.get("filter") if isinstance(wait, Mapping) else None]
        for way in _ways(options):
            used |= names_used(way.get("publish"))
            conditions.append(way.get("when"))
        for text in conditions:
            used |= condition(text).names if isinstance(text, str) else NamesUsed()
    except (ExpressionError, DefinitionError):
        return set()  # the check of the workflow reports it with its place
    return {str(name) for name in used.under("tasks")}


def _targets(draft: TaskDraft) -> set[str]:
    return {str(name_of(task)) for way in _ways(draft.options) for task in _several(way.get("do", ()))}


def _ways(options: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [way for way in _several(options.get("next", ())) if isinstance(way, Mapping)]


def _fan_out_items(value: Any) -> list[FanOutItem]:
    if isinstance(value, ValueReference):
        return [value._each] if isinstance(value._each, FanOutItem) else []
    if isinstance(value, Mapping):
        value = list(value.values())
    return (
        [item for part in value for item in _fan_out_items(part)] if isinstance(value, list | tuple) else []
    )


def _uses_item(options: Mapping[str, Any]) -> bool:
    try:
        return bool(names_used(template(options.get("input"))).roots & {"item", "index"})
    except ExpressionError:
        return False
