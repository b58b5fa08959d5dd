"""The conversion of Cloacina's tasks: options are read from the parsed decorator, and written as our `@task`."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from penstock.language.workflows.cloacina_trigger_rules import OPERATORS, translated
from penstock_import.cloaca_names import CloacaNames, is_plain, literal, task_name

Gap = Callable[[ast.AST, str, str], None]

DEFAULT_ATTEMPTS = 3
"""The attempts that Cloacina gives a task without retry options."""
_RETRIES = ("retry_attempts", "retry_backoff", "retry_delay_ms", "retry_max_delay_ms", "retry_jitter")
_TAKEN_OVER = (*_RETRIES, "on_success", "on_failure")
_OUTCOMES = {"task_success": "success", "task_failed": "failed", "task_skipped": "skipped"}
_GROUPS = {"all_of": "all", "any_of": "any", "none_of": "none"}
_OPERATOR_WORDS: Mapping[str, str] = {
    **{name.lower(): ours for name, ours in OPERATORS.items()},
    "==": "==",
    "eq": "==",
    "!=": "!=",
    "ne": "!=",
    ">": ">",
    "gt": ">",
    "<": "<",
    "lt": "<",
}
_CONTEXT_METHODS = frozenset({"get", "set", "insert", "keys", "values", "items", "setdefault"})
"""The methods of Cloacina's context that our context has too."""
_BY_HAND = {
    "update": "Write `context.set(name, value)`. In Cloacina the name must already exist.",
    "remove": "A name cannot be removed: write `context.set(name, None)`.",
    "to_dict": "Write `dict(context)`.",
    "to_json": "Write `json.dumps(dict(context))`.",
    "update_from_dict": "Write `context.update(values)`.",
    "secret": "Give the secret to the workflow as a parameter: `{{ secrets.name }}`.",
    "secret_field": "Give the secret to the workflow as a parameter: `{{ secrets.name }}`.",
}


@dataclass(slots=True)
class CloacaTask:
    """A task: its function, its id here and there, and the options of its decorator as Python text."""

    function: str
    id: str
    theirs: str
    needs: list[tuple[ast.expr, str]] = field(default_factory=list)
    """The dependencies that stand in the decorator, with their places."""
    options: dict[str, str] = field(default_factory=dict)
    ours: set[str] = field(default_factory=set)
    stub: str | None = None
    """The reason why its code is not copied."""
    retries: bool = True
    edits: list[tuple[int, int, int, str]] = field(default_factory=list)
    """Replacements within one line of its source: line, first and last column (bytes), text."""

    @classmethod
    def read(
        cls,
        function: ast.FunctionDef | ast.AsyncFunctionDef,
        decorator: ast.expr,
        names: CloacaNames,
        gap: Gap,
    ) -> CloacaTask:
        """Return the task of a function. Each argument of the decorator is mapped, or becomes a gap."""
        keywords = list(decorator.keywords) if isinstance(decorator, ast.Call) else []
        arguments = {keyword.arg: keyword.value for keyword in keywords if keyword.arg is not None}
        if len(arguments) < len(keywords) or (isinstance(decorator, ast.Call) and decorator.args):
            gap(decorator, f"computed options of task {function.name}", "Write them out.")
        id = literal(arguments.pop("id")) if "id" in arguments else function.name
        if not isinstance(id, str):
            gap(decorator, f"the computed id of task {function.name}", "Write it out.")
            id = function.name
        task = cls(function.name, task_name(id), id)
        if task.id != function.name:
            task.options["id"] = repr(task.id)
        task._dependencies(arguments.pop("dependencies", None), names, gap)
        task._rule(arguments.pop("trigger_rules", None), names, gap)
        task._retry(arguments, names, gap)
        for name, value in arguments.items():
            if name in _TAKEN_OVER and is_plain(value, names):
                task.options[name] = ast.unparse(value)
            else:
                by_hand = (
                    "Make the following task depend on this one."
                    if name in ("invokes", "post_invocation")
                    else "See the page."
                )
                gap(value, f"{name} of task {id}", by_hand)
        if "on_failure" in arguments:
            gap(
                arguments["on_failure"],
                f"on_failure of task {id}, which Cloacina calls after each failed try",
                "Penstock calls it once the task has failed for good. Log each try in the task itself.",
            )
        task._body(function, names, gap)
        return task

    def _dependencies(self, value: ast.expr | None, names: CloacaNames, gap: Gap) -> None:
        if value is None:
            return
        parts = value.elts if isinstance(value, ast.List | ast.Tuple) else []
        for part in parts:
            if isinstance(part, ast.Constant) and isinstance(part.value, str):
                part.value = task_name(part.value)
                self.needs.append((part, part.value))
        if is_plain(value, names):
            self.options["dependencies"] = ast.unparse(value)
        else:
            gap(value, f"dependencies of task {self.id}", "Write the names of the tasks.")

    @property
    def _has_dependencies(self) -> bool:
        return self.options.get("dependencies", "[]") not in ("[]", "()")

    def _rule(self, value: ast.expr | None, names: CloacaNames, gap: Gap) -> None:
        if value is None:
            # In Cloacina, a task without a rule runs once its dependencies have ended, whatever their outcomes.
            if self._has_dependencies:
                self.options["trigger_rules"] = repr("all_done")
            return
        rule = _renamed(_rule_of(value, names))
        if rule is None:
            gap(value, f"trigger_rules of task {self.id}", "Write the rule: docs/workflows.md#trigger-rules.")
            self.options["trigger_rules"] = repr({"none": ["always"]})
            return
        if rule == "always":
            self.options["trigger_rules"] = repr("all_done")
            return
        # In Penstock, a rule over values alone would also require that the dependencies succeeded.
        self.options["trigger_rules"] = repr({"all": ["all_done", rule]} if self._has_dependencies else rule)

    def _retry(self, arguments: dict[str, ast.expr], names: CloacaNames, gap: Gap) -> None:
        condition = arguments.pop("retry_condition", None)
        word = None if condition is None else literal(condition)
        attempts = literal(arguments["retry_attempts"]) if "retry_attempts" in arguments else None
        if word == "never" or attempts in (0, 1):
            for name in _RETRIES:
                arguments.pop(name, None)
            self.retries = False
            return
        if "retry_attempts" not in arguments:
            self.options["retry_attempts"] = str(DEFAULT_ATTEMPTS)
        if condition is not None and word != "all":
            gap(
                condition,
                f"retry_condition of task {self.id}: Penstock retries it after every error",
                "Name the temporary errors: retry={'max_attempts': 3, 'retry_on': [ConnectionError, TimeoutError]}.",
            )

    def _body(self, function: ast.FunctionDef | ast.AsyncFunctionDef, names: CloacaNames, gap: Gap) -> None:
        parameters = [*function.args.posonlyargs, *function.args.args]
        if len(parameters) != 1 or function.args.vararg or function.args.kwarg or function.args.kwonlyargs:
            gap(
                function,
                f"task {self.id} takes more than the context",
                "Wait with `raise Defer(delay=5)` of penstock, which gives the slot back, until it is time.",
            )
            self.stub = "it takes a handle"
            return
        context = parameters[0].arg
        for node in ast.walk(function):
            if node in function.decorator_list:
                continue
            match node:
                case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=method)) if (
                    name == context and method not in _CONTEXT_METHODS
                ):
                    gap(
                        node,
                        f"context.{method} in task {self.id}",
                        _BY_HAND.get(method, "Penstock's context has no such method."),
                    )
                case ast.Delete(targets=targets) if any(_is_item_of(target, context) for target in targets):
                    gap(
                        node,
                        f"del in the context of task {self.id}",
                        "A name cannot be removed: write `context.set(name, None)`.",
                    )
        inside = {id(inner) for decorator in function.decorator_list for inner in ast.walk(decorator)}
        for node in ast.walk(function):
            if id(node) in inside or not isinstance(node, ast.Attribute | ast.Name):
                continue
            member = names.of(node)
            if member == "Context" and node.lineno == node.end_lineno:
                self.edits.append((node.lineno, node.col_offset, node.end_col_offset or 0, "Context"))
                self.ours.add("Context")
            elif member:
                gap(
                    node,
                    f"cloaca.{member} in task {self.id}",
                    "Penstock has nothing of that name: write code for its purpose.",
                )
                self.stub = f"it uses cloaca.{member}"


def _is_item_of(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id == name


def _rule_of(node: ast.expr, names: CloacaNames) -> Any:
    """Return our rule for an expression of `cloaca`'s builders or JSON; None if it is neither."""
    if not isinstance(node, ast.Call):
        value = literal(node)
        return _json_rule(value) if isinstance(value, dict) else None
    member = names.of(node.func)
    values = [literal(argument) for argument in node.args]
    if node.keywords or member is None:
        return None
    if member == "always" and not node.args:
        return "always"
    if member in _GROUPS and node.args:
        parts = [_rule_of(argument, names) for argument in node.args]
        return None if None in parts else {_GROUPS[member]: parts}
    if member in _OUTCOMES and len(values) == 1 and isinstance(values[0], str):
        return {_OUTCOMES[member]: values[0]}
    if (
        member == "context_value"
        and len(values) == 3
        and isinstance(values[0], str)
        and isinstance(values[1], str)
    ):
        operator = _OPERATOR_WORDS.get(values[1].lower().replace("_", ""))
        if operator is None or (values[2] is None and not _is_none(node.args[2])):
            return None
        comparison = {"context": values[0], "op": operator}
        return comparison if "exists" in operator else {**comparison, "value": values[2]}
    return None


def _renamed(rule: Any) -> Any:
    """Return a rule in which the tasks have their names here."""
    if isinstance(rule, list):
        return [_renamed(part) for part in rule]
    if not isinstance(rule, dict):
        return rule
    return {
        key: task_name(part) if key in _OUTCOMES.values() and isinstance(part, str)
        else _renamed(part) if key in _GROUPS.values() else part
        for key, part in rule.items()
    }  # fmt: skip


def _json_rule(value: dict[str, Any]) -> Any:
    if "type" not in value:
        return None
    try:
        return translated(value)
    except ValueError:
        return None


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def imports_of(task: CloacaTask) -> set[str]:
    """Return the names of penstock that the text of a task uses."""
    return {"task", *task.ours, *(("NonRetryable",) if task.stub else ())}


def task_text(task: CloacaTask, source: str, other_decorators: Sequence[str], gap: Gap) -> str:
    """Return the function of a task with its decorator. `source` begins at its `def`."""
    options = ", ".join(f"{name}={value}" for name, value in task.options.items())
    head = "\n".join([f"@task({options})", *(f"@{other}" for other in other_decorators)])
    if task.stub is not None:
        return f"{head}\ndef {task.function}(context):\n    raise NonRetryable({f'to do: {task.stub}'!r})"
    return f"{head}\n{source}"
