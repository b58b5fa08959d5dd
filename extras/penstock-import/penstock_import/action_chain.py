"""The conversion of a StackStorm action chain to a workflow: one task after another, depending on how each ended."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any

from penstock_import import runner_timeouts
from penstock_import.consumed import Node
from penstock_import.literal_casts import cast_literal, may_become_another_type
from penstock_import.orquesta import KnownAction
from penstock_import.orquesta_expressions import as_expression, block_text, is_whole, template
from penstock_import.orquesta_graph import cycle_edges
from penstock_import.orquesta_names import (
    KEPT_OUTCOMES,
    NOWHERE,
    PLAIN,
    Surroundings,
    fixed_value,
    key_of_store,
)
from penstock_import.parameters import Tell, or_default
from penstock_import.runner_timeouts import OF_OTHERS, is_limit
from penstock_import.stackstorm_runners import RUNNER_TIMEOUTS, SHELLS
from penstock_import.wanted_text import NotMapped, Ours, member

_TO_DO = "{{ none.to_do }}"
_BARE_NAME = re.compile(r"\{\{[A-z0-9_-]+\}\}")
_ORDER = frozenset({"name", "ref", "description", "on-success", "on-failure"})
"""Keys of a task that read no result."""


class ActionChain:
    """A converter of one chain. `types_of` returns the types of an action's parameters, to which StackStorm converts
    the texts that Jinja renders. `keep` returns a variant of an action that returns its failure, if there can be one."""

    def __init__(
        self,
        tell: Tell,
        action_of: Callable[[str, int], KnownAction],
        types_of: Callable[[str], Mapping[str, Any]],
        surroundings: Surroundings = NOWHERE,
        tell_type: Callable[[int, str, Any], None] | None = None,
        keep: Callable[[KnownAction], KnownAction | None] = lambda _: None,
    ) -> None:
        self._tell_type, self._keep = tell_type, keep
        self._tell, self._action_of, self._types_of = tell, action_of, types_of
        self._surroundings = surroundings

    def workflow(self, root: Node, parameters: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
        """Return the body of the workflow, without its name."""
        chain = {self._text(node, "name"): node for node in (root.get("chain") or Node(1)).parts()}
        body: dict[str, Any] = {"parameters": {name: dict(about) for name, about in parameters.items()}}
        for about in body["parameters"].values():
            if not about.get("required") and "default" not in about:
                about["default"] = None
        variables = root.get("vars")
        own: dict[str, Any] = {}
        with_defaults = {name: or_default(name, about) for name, about in parameters.items()}
        computed = {name: text for name, text in with_defaults.items() if text}
        computed |= self._surroundings.computed
        names_at_start = _Names("start", parameters, (), {})
        names_at_start.surroundings = Surroundings(computed=computed)
        for name, child in variables.items() if variables is not None else []:
            own[name] = self._value(child.value(), child.line, names_at_start, None)
        declared = set(own)
        own = {**computed, **own}
        successors = {
            name: [self._text(node, key) for key in ("on-success", "on-failure") if node.has(key)]
            for name, node in chain.items()
        }
        start = self._start(root, chain, successors)
        closing = cycle_edges(
            {name: [target for target in targets if target in chain] for name, targets in successors.items()}
        )
        published = {name for node in chain.values() for name, _ in (node.get("publish") or Node(1)).items()}
        previous = _before(successors, chain)
        reached = {start} | {name for name in chain if start in previous[name]}
        shapes: dict[str, str] = {}
        target_action: dict[str, KnownAction] = {}
        for name, node in chain.items():
            target_action[name] = self._action_of(self._text(node, "ref"), node.line_of("ref"))
            shapes[name] = target_action[name].shape
        failing = {name for name in chain if self._reads_failure(name, chain, previous)}
        keeping = set()
        for name in failing:
            if (keeper := self._keep(target_action[name])) is not None:
                target_action[name] = keeper
                keeping.add(name)
        tasks: dict[str, Any] = {}
        for name, node in chain.items():
            if name in reached and _task_name(name) in tasks:
                self._tell(node.line, f"two tasks become {_task_name(name)}", "Rename one of them.")
            if name not in reached:
                subject = f"{name}, to which no task of the chain leads"
                if self._surroundings.note_ignored is not None:
                    self._surroundings.note_ignored(node.line, subject)
                node.drop()
            else:
                visible = {task: shapes[task] for task in previous[name]}
                names = _Names("task", {**computed, **parameters}, declared | published, visible)
                names.surroundings = self._surroundings
                names.failing, names.kept, names.published = failing, keeping, published
                tasks[_task_name(name)] = self._task(name, node, target_action[name], names, chain, closing)
        body |= {"vars": own, "tasks": tasks}
        # Without `parameters`, a workflow accepts a call with any name. With an empty mapping it refuses each name.
        return {name: part for name, part in body.items() if part or name in ("parameters", "tasks")}

    def _reads_failure(
        self, name: str, chain: Mapping[str, Node], previous: Mapping[str, Collection[str]]
    ) -> bool:
        """Return whether the result of a task is read where the task may have failed: by what it publishes, which
        StackStorm does after a failure too, or by a task after its `on-failure`."""
        target = self._text(chain[name], "on-failure")
        if not target:
            return False
        publish = chain[name].get("publish")
        if publish is not None and publish.peek():
            return True
        word = re.compile(rf"\b{re.escape(name)}\b")
        return any(
            word.search(str([part.peek() for key, part in chain[other].items() if key not in _ORDER]))
            for other in chain
            if other == target or target in previous[other]
        )

    def _start(self, root: Node, chain: Mapping[str, Node], successors: Mapping[str, list[str]]) -> str:
        """Return the first task of a chain: its `default`, or else the first task that follows no success."""
        default = root.get("default")
        if default is not None and default.peek():
            return str(default.value())
        led_to = {self._text(node, "on-success") for node in chain.values()} | {
            self._text(node, "on-failure") for node in chain.values()
        }
        return next((name for name in chain if name not in led_to), next(iter(chain), ""))

    def _task(
        self,
        name: str,
        node: Node,
        target_action: KnownAction,
        names: _Names,
        chain: Mapping[str, Node],
        closing: set[tuple[str, str]],
    ) -> dict[str, Any]:
        for key in ("name", "ref", "description"):  # StackStorm ignores a description
            if (child := node.get(key)) is not None:
                child.drop()
        task: dict[str, Any] = {"workflow" if target_action.is_workflow else "action": target_action.ref}
        supplied = node.get("parameters") or node.get("params")
        inputs = {}
        types = self._types_of(target_action.ref)
        for key, child in supplied.items() if supplied is not None else []:
            value = child.value()
            is_timeout = key == "timeout" and target_action.runner in RUNNER_TIMEOUTS
            kind = types.get(key, "integer" if is_timeout else None)
            inputs[key] = self._value(value, child.line, names, _TO_DO, kind)
            is_mapped = inputs[key] != _TO_DO  # the line of an unmapped expression already names it
            is_open = is_mapped and (keeps_type(value) or may_become_another_type(value))
            if self._tell_type is not None and key not in types and is_open and not is_timeout:
                self._tell_type(child.line, key, value)
        if "timeout" in inputs and (target_action.runner in RUNNER_TIMEOUTS or "timeout" not in types):
            assert supplied is not None
            self._settle_timeout(name, task, inputs, target_action, supplied.line_of("timeout"))
        if inputs:
            task["input"] = inputs
        steps: list[dict[str, Any]] = []
        names_at_end = _Names(
            "end", names.parameters, names.variables, {**names.shapes, name: target_action.shape}, name
        )
        names_at_end.failing, names_at_end.kept = names.failing, names.kept
        names_at_end.published = names.published
        published = {}
        publish = node.get("publish")
        for key, child in publish.items() if publish is not None else []:
            published[key] = self._value(child.value(), child.line, names_at_end, None, "string")
        is_kept = name in names.kept
        success = self._target(node, "on-success", name, chain, closing)
        if success or published:
            step: dict[str, Any] = {"when": KEPT_OUTCOMES["succeeded"] if is_kept else "succeeded()"}
            if published:
                step["publish"] = published
            if success:
                step["do"] = [_task_name(success)]
            steps.append(step)
        if failure := self._target(node, "on-failure", name, chain, closing):
            step = {"when": KEPT_OUTCOMES["failed"] if is_kept else "failed() and not cancelled()"}
            if published:  # StackStorm also publishes after a failure
                step["publish"] = published
            steps.append(step | {"do": [_task_name(failure)]})
        if steps:
            task["next"] = steps
        return task

    def _settle_timeout(
        self, name: str, task: dict[str, Any], inputs: dict[str, Any], target_action: KnownAction, line: int
    ) -> None:
        """Take a timeout out of the parameters of a task: it is one of the runner, and no action gets it."""
        timeout = inputs["timeout"]
        if target_action.runner == OF_OTHERS and timeout != _TO_DO:
            note = self._surroundings.note_limit
            note_limit = partial(note, line) if note is not None else None
            runner_timeouts.settle(name, task, timeout, partial(self._tell, line), note_limit)
        elif is_limit(timeout):
            task["timeout"] = inputs.pop("timeout")
        elif target_action.runner in SHELLS and isinstance(timeout, str) and timeout != _TO_DO:
            task["timeout"] = None  # the generated function ends its command by this parameter
        elif target_action.runner in RUNNER_TIMEOUTS:
            del inputs["timeout"]
            if timeout not in (
                None,
                _TO_DO,
            ):  # null is the default, and another line names what is not mapped
                self._tell(line, f"the timeout of {name} is computed: {timeout}",
                           "Write `timeout` of the task. Until then the action's timeout counts.")  # fmt: skip

    def _target(
        self, node: Node, key: str, name: str, chain: Mapping[str, Node], closing: set[tuple[str, str]]
    ) -> str | None:
        child = node.get(key)
        target = str(child.value() or "") if child is not None else ""
        if not target:
            return None
        assert child is not None
        if target not in chain:
            self._tell(child.line, f"{name} goes to {target}, which is not a task", "Correct the name.")
        elif (name, target) in closing:
            self._tell(
                child.line, f"{name} goes back to {target}", "A task cannot come after itself: use `retry`."
            )
        else:
            return target
        return None

    def _value(self, value: Any, line: int, names: _Names, otherwise: Any, kind: Any = None) -> Any:
        value = rendered_breaks(value) if isinstance(value, str) else value
        try:
            if isinstance(value, dict | list):
                return texts_within(value, names)
            if isinstance(value, str) and "{%" in value:
                return block_text(value, names, kind)
            mapped = template(value, names)
            if isinstance(mapped, str) and isinstance(value, str) and "{{" in value:
                return cast(mapped, as_expression(value, names), kind)
            return mapped if isinstance(value, str) and mapped != value else cast_literal(mapped, kind)
        except NotMapped as reason:
            subject = " ".join(f"the expression {value}: {reason}".split())
            self._tell(line, subject, f"Write it as an expression. Until then it is `{otherwise}`.")
            return otherwise

    def _text(self, node: Node, key: str) -> str:
        child = node.get(key)
        return str(child.peek()) if child is not None and child.peek() is not None else ""


def _task_name(theirs: str) -> str:
    """Return a valid task name for a StackStorm task, whose name may contain spaces, or begin with a digit."""
    name = re.sub(r"\W", "_", theirs, flags=re.ASCII)
    return f"x_{name}" if name[:1].isdigit() else name


def cast(mapped: str, value: Ours, kind: Any) -> str:
    """Return a template whose value has the parameter's type. StackStorm renders texts, and converts them to that
    type."""
    kinds = kind if isinstance(kind, list) else [kind]
    if value.kind == "secret":
        if kind is not None and "string" not in kinds:
            raise NotMapped("a key of the store for a parameter that is not text")
        return mapped
    if "string" in kinds and value.kind != "str":
        return f"{{{{ {value.text} | string }}}}"
    text = f"({value.text} | string)"
    if "integer" in kinds and value.kind != "int":
        return f"{{{{ {text} | int }}}}"
    if "number" in kinds:
        return f"{{{{ {text} | float }}}}"
    if kinds != [None] and not {"string", "integer", "number", "boolean"} & {*kinds}:
        if value.kind in ("str", "text"):
            raise NotMapped(f"a text that StackStorm parses for a parameter of the type {kind}")
        if not value.kind:
            return f"{{{{ ({value.text} | fromjson) if {value.text} is string else {value.text} }}}}"
    if "boolean" in kinds and value.kind != "bool":
        by_word = f'{{"true": true, "false": false, "none": none}}[{text} | lower]'
        return f"{{{{ {by_word} }}}}"
    return mapped


def keeps_type(value: Any) -> bool:
    """Return whether a parameter has expressions with values that keep their types here. A text around one is a text."""
    return "{{" in str(value) and (not isinstance(value, str) or is_whole(value.strip()))


def rendered_breaks(text: str) -> str:
    """Return a text with the line breaks that Jinja leaves in it: none at its end, and no carriage returns."""
    return re.sub(r"\r\n?", "\n", text).removesuffix("\n")


def texts_within(value: Any, names: Any, *, keeps_bare_names: bool = False) -> Any:
    """Return a list or a mapping of parameters. StackStorm renders it as one JSON text, so each expression in it
    becomes text. With `keeps_bare_names` a `{{name}}` without spaces keeps its type, as it does in a rule. Raises NotMapped for
    a part without an equivalent in Penstock."""
    inner = partial(texts_within, names=names, keeps_bare_names=keeps_bare_names)
    if isinstance(value, dict):
        keys = template(dict.fromkeys(value), names)
        return {key: inner(item) for key, item in zip(keys, value.values(), strict=True)}
    if isinstance(value, list):
        return [inner(item) for item in value]
    mapped = template(value, names)
    if keeps_bare_names and isinstance(value, str) and _BARE_NAME.fullmatch(value):
        return mapped
    if isinstance(value, str) and isinstance(mapped, str) and "{{" in value:
        return cast(mapped, as_expression(value, names), "string")
    return mapped


class _Names:
    """The names in a chain: parameters, variables, and the preceding tasks, each by its bare name."""

    takes_several_lines = True
    drops_comments = True

    def __init__(
        self,
        place: str,
        parameters: Mapping[str, Any],
        variables: Any,
        shapes: Mapping[str, str],
        task: str | None = None,
    ) -> None:
        self.place, self.parameters, self.variables, self.shapes, self.task = (
            place,
            parameters,
            variables,
            shapes,
            task,
        )
        self.surroundings = NOWHERE
        self.failing: Collection[str] = ()
        """The tasks whose result is read where they may have failed."""
        self.kept: Collection[str] = ()
        """The tasks whose action returns its failure as a result."""
        self.published: Collection[str] = ()
        """The variables that tasks publish, which are texts."""

    def root(self, function: str, argument: str | None, steps: Sequence[str]) -> tuple[Ours, int]:
        """Return the Penstock expression for a bare name, and the number of steps that it covers. Raises NotMapped for
        a part without an equivalent in Penstock."""
        if function in self.surroundings.fixed and self.place == "task":
            return fixed_value(self.surroundings, function), 0
        if function in self.surroundings.computed and self.place == "start":
            expression = self.surroundings.computed[function].removeprefix("{{ ").removesuffix(" }}")
            return Ours(f"({expression})"), 0
        if function in self.variables:
            return Ours(member("context", function), "text" if function in self.published else ""), 0
        if function in self.shapes and self.place != "start":
            value = Ours("result" if function == self.task else member("tasks", function) + ".result")
            if function in self.kept:
                return Ours(f"{value.text}.result"), 0
            if function in self.failing:
                raise NotMapped("the result of a failed task, which has an `error` in Penstock and no result")
            if self.shapes[function] == PLAIN:
                return value, 0
            raise NotMapped(f"the result of the workflow {function}")
        if function in self.parameters:
            return Ours(member("parameters" if self.place == "start" else "context", function)), 0
        if function == "st2kv" and argument is None and len(steps) >= 2:
            return key_of_store(self.surroundings, ".".join(steps)), len(steps)
        if self.place == "task" and [function, *steps] == ["action_context", "parent", "execution_id"]:
            return Ours("system.id", "str"), len(steps)
        raise NotMapped(f"`{function}` has no equivalent in Penstock")


def _before(successors: Mapping[str, list[str]], chain: Mapping[str, Node]) -> dict[str, set[str]]:
    """Return, for each task, the tasks from which it can be reached."""
    previous: dict[str, set[str]] = {name: set() for name in chain}
    for name in chain:
        waiting = [name]
        reached: set[str] = set()
        while waiting:
            for target in successors.get(waiting.pop(), ()):
                if target in chain and target not in reached:
                    reached.add(target)
                    waiting.append(target)
        for target in reached - {name}:
            previous[target].add(name)
    return previous
