"""The names in expressions of a StackStorm workflow, and their translations."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from penstock_import.wanted_text import NotMapped, Ours, literal, member

PLAIN, OF_WORKFLOW, OF_INQUIRY, UNKNOWN = "plain", "workflow", "inquiry", "unknown"
OF_CHAIN = "chain"
"""The form of a task's result: the value itself; a workflow's output, which StackStorm wraps as `output`; an answer,
which StackStorm wraps as `response`; unknown."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The facts about a pack that its workflows' expressions use: the name of the pack, that of the action, and
    functions that note store keys and routes."""

    pack: str = ""
    action: str = ""
    note_key: Callable[[str], str] | None = None
    """A function that takes the name of a store key, and returns the name of a Penstock secret."""
    note_route: Callable[[int, str], None] | None = None
    """A function that takes the line and the name of an inquiry's route."""
    note_ignored: Callable[[int, str], None] | None = None
    """A function that takes the line and the name of a part that StackStorm does not read."""
    note_output: Callable[[int], None] | None = None
    """A function that takes the line of an output, which StackStorm gives of a failed workflow, too."""
    fixed: Mapping[str, str] = field(default_factory=dict)
    """The scope and key in the store, or the key in the configuration, of each immutable parameter with such a default."""
    computed: Mapping[str, str] = field(default_factory=dict)
    """The template of the variable for each parameter with a default that is computed of other parameters."""
    note_type: Callable[[int, str, Any], None] | None = None
    """A function that takes the line, the name and the value of a parameter whose type is not known."""
    note_limit: Callable[[int, str, str], None] | None = None
    """A function that takes the line of a time limit for an action of another pack, the limit and the work by hand."""


NOWHERE = Surroundings()
OF_CONFIGURATION = "config_context."
RESULTS = "results"
"""The kind of `result()` of a task with items: the list of their results, or `{"items": []}` for an empty list."""
ITEMS = {"items": "result", "items of workflows": "result.output"}
"""The kinds of `task(x).result.items`: the entries of a task with items, each a mapping of `status` and `result`. The
value is the path in an entry that leads to an item of the list."""
_FAILED = "(failed() and not cancelled())"
KEPT_OUTCOMES = {
    "succeeded": '(succeeded() and result.status == "succeeded")',
    "failed": '((failed() and not cancelled()) or (succeeded() and result.status != "succeeded"))',
}
"""The condition for each outcome of a task whose action returns its failure."""


def whole_results(value: Ours) -> Ours:
    """Return the whole value of `result()`. For an empty list of items, StackStorm gives a mapping with that list."""
    if value.kind != RESULTS:
        return value
    return Ours(f'({value.text} if {value.text} else {{"items": []}})')


def variable_name(theirs: str) -> str:
    """Return a valid variable name. Orquesta's may contain dots and dashes."""
    if theirs.isidentifier() and theirs.isascii():
        return theirs
    name = re.sub(r"\W", "_", theirs, flags=re.ASCII)
    return name if name[:1].isalpha() else f"x_{name}"


def of_system(surroundings: Surroundings, steps: Sequence[str]) -> tuple[Ours, int]:
    """Return the expression for a part of `st2` in the context, such as the id of the run. Raises NotMapped for a part
    without an equivalent in Penstock."""
    part = steps[0] if steps else None
    if part == "action_execution_id":
        return Ours("system.id", "str"), 1
    if part == "pack" and surroundings.pack:
        return literal(surroundings.pack), 1
    if part == "action" and surroundings.action:
        return literal(f"{surroundings.pack}.{surroundings.action}"), 1
    raise NotMapped(f"`st2.{part}` of the context" if part else "all of `st2` of the context")


def key_of_store(surroundings: Surroundings, name: str) -> Ours:
    """Return the secret for a key of StackStorm's store. Raises NotMapped if a secret is not allowed there."""
    if surroundings.note_key is None:
        raise NotMapped("a key of the store outside of a task's input and a rule's parameters")
    scope, _, key = name.partition(".")
    if scope != "system" or not key:
        raise NotMapped(f"the key {name}, which is not in the scope `system`")
    return Ours(f"secrets.{surroundings.note_key(key)}", "secret")


def fixed_value(surroundings: Surroundings, name: str) -> Ours:
    """Return the secret for an immutable parameter with a default of the store or the configuration. Raises NotMapped
    for a key that no secret can have."""
    key = surroundings.fixed[name]
    if key.startswith(OF_CONFIGURATION) and surroundings.note_key is not None:
        return Ours(f"secrets.{surroundings.note_key(key)}", "secret")
    return key_of_store(surroundings, key)


@dataclass(slots=True)
class OrquestaNames:
    """The names that are visible to an expression at one place of a workflow."""

    place: str
    """The place: `start` for variables, `task` for inputs and lists, `end` for conditions and published values, or
    `output`."""
    variables: Collection[str]
    """The names of all variables that the context may contain."""
    inlined: Mapping[str, Ours] = field(default_factory=dict)
    """The names with the expressions that replace them: preceding variables, for the initial variables."""
    shapes: Mapping[str, str] = field(default_factory=dict)
    """The form of each task's result."""
    task: str | None = None
    may_have_failed: bool = False
    """True at the end of a task that may have failed. A failed task has no result in Penstock."""
    failure_keepers: Collection[str] = ()
    """The tasks whose action returns its failure as a result, so that the result can be read after a failure."""
    parameters: Collection[str] = ()
    """The inputs of the workflow, which keep their names."""
    surroundings: Surroundings = NOWHERE
    has_items: bool = False
    tasks_with_items: Collection[str] = ()
    """The tasks that run an action for each item of a list."""
    read: set[str] = field(default_factory=set)
    """The names of the context that were read."""

    def root(self, function: str, argument: str | None, steps: Sequence[str]) -> tuple[Ours, int]:
        """Return the expression for an Orquesta name, and the number of steps that it covers. Raises NotMapped for a
        part without an equivalent in Penstock."""
        if function == "ctx":
            return self._context(argument, steps)
        if function == "item" and self.place == "task":
            return (Ours("item"), 0) if argument is None else (Ours(member("item", argument)), 0)
        if function in ("succeeded", "failed", "completed") and self.place == "end" and argument is None:
            return self._outcome(function), 0
        if function == "result" and self.place == "end" and argument is None and self.task is not None:
            is_read_after_failure = self.may_have_failed and self.task not in self.failure_keepers
            if is_read_after_failure and self.shapes.get(self.task) != OF_INQUIRY:
                raise NotMapped("the result of a failed task, which has an `error` in Penstock and no result")
            return self._result(Ours("result", RESULTS if self.has_items else ""), self.task, steps)
        is_itself = function == "task" and self.place == "end" and argument in (None, self.task)
        if is_itself and self.task is not None and steps[:1] in (["task_name"], ["task_id"]):
            return literal(self.task), 1
        if function == "st2kv" and argument is not None and self.place == "task":
            return key_of_store(self.surroundings, argument), 0
        if function == "task" and steps[:1] == ["result"] and self.place != "start":
            if self.place == "end" and argument in (None, self.task):
                if self.task is not None and self.task in self.tasks_with_items:
                    value, _ = self.root("result", None, ["output"])
                    return self._items(value.text, self.task, steps)
                value, covered = self.root("result", None, steps[1:])
                return value, covered + 1
            if argument is None or argument == self.task or argument not in self.shapes:
                raise NotMapped(f"the result of the task {argument}")
            result = member("tasks", argument) + ".result"
            if argument in self.tasks_with_items:
                self._result(Ours(result), argument, ["output"])
                return self._items(result, argument, steps)
            value, covered = self._result(Ours(result), argument, steps[1:])
            return value, covered + 1
        raise NotMapped(f"`{function}` has no equivalent in Penstock")

    def _context(self, argument: str | None, steps: Sequence[str]) -> tuple[Ours, int]:
        name, covered = (argument, 0) if argument is not None else (steps[0] if steps else None, 1)
        if name is None:
            raise NotMapped("the whole context")
        if name in self.surroundings.fixed:
            return fixed_value(self.surroundings, name), covered
        if name in self.inlined:
            return self.inlined[name], covered
        if name not in self.variables:
            if name == "st2":
                value, inner = of_system(self.surroundings, steps[covered:])
                return value, covered + inner
            raise NotMapped(f"`{name}` is not an input or a variable, and is published nowhere")
        self.read.add(name)
        if self.place == "start":
            return Ours(member("parameters", name)), covered
        ours = name if name in self.parameters else variable_name(name)
        return Ours(member("context", ours)), covered

    def _outcome(self, function: str) -> Ours:
        """Return the expression for `succeeded()`, `failed()` or `completed()`. In Orquesta, a timed-out task has
        failed and a cancelled task has not. A task that returns its failure has completed, and its result has the
        outcome."""
        if function == "completed":
            return Ours("true", "bool")
        if self.task in self.failure_keepers:
            return Ours(KEPT_OUTCOMES[function], "bool")
        return Ours("succeeded()" if function == "succeeded" else _FAILED, "bool")

    def _items(self, result: str, task: str, steps: Sequence[str]) -> tuple[Ours, int]:
        """Return the entries of a task with items: `task(x).result.items`. Raises NotMapped for the rest of that result."""
        if steps[1:2] != ["items"]:
            raise NotMapped(
                f"the result of {task}, which has items: in StackStorm a mapping with a list `items`, in Penstock a list"
            )
        kinds = {path: kind for kind, path in ITEMS.items()}
        is_plain = self.shapes.get(task) == PLAIN
        return Ours(result, kinds["result" if is_plain else "result.output"]), 2

    def _result(self, value: Ours, task: str, steps: Sequence[str]) -> tuple[Ours, int]:
        shape = self.shapes.get(task, UNKNOWN)
        if shape == UNKNOWN:
            raise NotMapped(f"the result of {task}, whose action is not known")
        if shape == OF_CHAIN:
            raise NotMapped(
                f"the result of {task}, an action chain or a Mistral workflow, which has no such result in Penstock"
            )
        if task in self.failure_keepers:
            value = Ours(f"{value.text}.result")
        if shape == PLAIN:
            return value, 0
        if shape == OF_INQUIRY:
            if steps[:1] != ["response"]:
                raise NotMapped(f"the result of the inquiry {task} outside of its `response`")
            return Ours(f"({value.text} if {value.text} is not none else none.no_answer)"), 1
        if steps[:1] != ["output"]:
            raise NotMapped(f"the result of the workflow {task} outside of its `output`")
        return value, 1
