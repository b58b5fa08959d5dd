"""The conversion of an Orquesta workflow. A part without an equivalent becomes a gap. Until it is completed by hand, a
task with such an input fails, and such a condition never holds."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations, permutations
from typing import Any

from penstock_import import runner_timeouts
from penstock_import.consumed import Node
from penstock_import.failed_outputs import output_expression
from penstock_import.inline_parameters import ignored_text, inline_parameters
from penstock_import.literal_casts import cast_literal, converted, may_become_another_type, only_type
from penstock_import.mistral import FAILS_AT_THE_END
from penstock_import.nested_fields import allow_null
from penstock_import.orquesta_expressions import (
    as_expression,
    block_text,
    condition,
    has_expressions,
    is_whole,
    template,
)
from penstock_import.orquesta_graph import ANY, FAILURE, SUCCESS, Edge, Graph, Guard, cycle_edges, guard_of
from penstock_import.orquesta_inquiries import inquiry
from penstock_import.orquesta_names import (
    NOWHERE,
    OF_INQUIRY,
    PLAIN,
    UNKNOWN,
    OrquestaNames,
    Surroundings,
    variable_name,
)
from penstock_import.parameters import Tell, or_default
from penstock_import.runner_timeouts import OF_OTHERS
from penstock_import.stackstorm_runners import RUNNER_TIMEOUTS, SHELLS
from penstock_import.wanted_text import NotMapped, Ours, literal, member

_WITH = re.compile(r"\s*(?:((?:\w+\s*,\s*)*\w+)\s+in\s+)?(<%.*?%>|\{\{.*?\}\})\s*", re.DOTALL)
_TO_DO = "{{ none.to_do }}"
"""The placeholder for an input that is not mapped. A task that evaluates it fails."""
_ENGINE = frozenset({"noop", "continue", "fail", "retry"})
_ONLY_OF_WORKERS = ("with", "retry", "delay")
"""The options that a task of the executor itself, `noop` or `fail`, cannot have."""
_NOT_SUCCEEDED = "not succeeded() and not cancelled()"
"""The condition for any other end. A task that is cancelled cancels its workflow there, and nothing comes after it."""
_PART_OF_ANSWER = re.compile(r"second=Word\(name='response'\)\), second=Word\(")
"""`.response.x` in the text of a parsed condition."""
_OF_TASK = re.compile(r"\btasks\b(?:\.(\w+)|\[\"([^\"]+)\"\])?")
"""A task in an expression here, or what may be one."""
_MAPPINGS = ("", "dict")
"""The types of expressions with values that may be mappings."""


@dataclass(frozen=True, slots=True)
class KnownAction:
    """The action of a task: its ref in Penstock, and the known facts about it."""

    ref: str
    is_workflow: bool = False
    shape: str = PLAIN
    runner: str = ""
    limit: float | None = None
    """The seconds after which its runner ends it if a call gives no time limit, or null. None if they are unknown."""


class Orquesta:
    """A converter of one workflow. `action_of` returns the Penstock action that a task names. `keep` returns a variant
    of an action that returns its failure, if there can be one. `types_of` returns the types of an action's parameters."""

    def __init__(
        self,
        tell: Tell,
        action_of: Callable[[str, int], KnownAction],
        keep: Callable[[KnownAction], KnownAction | None] = lambda _: None,
        surroundings: Surroundings = NOWHERE,
        types_of: Callable[[str], Mapping[str, Any]] = lambda _: {},
        *,
        failure_stops_all: bool = True,
        merges_mappings: bool = True,
    ) -> None:
        """Create the converter. `failure_stops_all` is False if a failure stops only what depends on it, as here.
        `merges_mappings` is False if a published mapping replaces an earlier one, as here."""
        self._failure_stops_all = failure_stops_all
        self._merges_mappings = merges_mappings
        self._tell, self._action_of, self._keep, self._types_of = tell, action_of, keep, types_of
        self._inputs_take = surroundings
        self._surroundings = replace(surroundings, note_key=None)
        self._tasks: dict[str, Node] = {}
        self._known: dict[str, KnownAction] = {}
        self._variables: set[str] = set()
        self._input_names: set[str] = set()
        self._at_start: set[str] = set()
        """The names here of the inputs and variables. Each has a value from the start."""
        self._constants: dict[str, Ours] = {}
        """By the name of an input that the action does not declare: the expression for its value, which no caller can
        set."""
        self._failure_keepers: set[str] = set()
        self._output_text = ""
        self._failed_output: str | None = None
        """The expression for the output of a workflow that goes to `fail`; None without an output, or where a task cannot read
        it."""
        self._reads: dict[str, set[str]] = {}
        self._start_mappings: set[str] = set()
        """Variables that may be mappings as the workflow starts."""
        self._empty_mappings: set[str] = set()
        """Variables that are empty mappings as the workflow starts."""
        self._published_mappings: dict[tuple[str, str], list[tuple[dict[str, Any], Ours]]] = {}
        """By task and variable: the places that publish a possible mapping, each with its expression."""

    def workflow(self, root: Node, described: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
        """Return the body of the workflow, without its name. `described` are the parameters of the action."""
        for key in ("version", "name"):
            if (child := root.get(key)) is not None:
                child.drop()
        body: dict[str, Any] = {"description": root.text("description")}
        tasks = root.get("tasks")
        if tasks is not None and not tasks.is_mapping:
            tasks.drop()
            self._gap(tasks.line, "tasks that are not a mapping, which Orquesta refuses",
                      "Give each task its name as a key, and import again.")  # fmt: skip
        self._tasks = dict(tasks.items()) if tasks is not None else {}
        output = root.get("output")
        self._output_text = str(output.peek()) if output is not None else ""
        inputs = list(self._pairs(root.get("input")))
        variables = list(self._pairs(root.get("vars")))
        declared = {*described, *self._surroundings.fixed, *self._surroundings.computed}
        undeclared = [entry for entry in inputs if entry[0] not in declared]
        self._input_names = {name for name, _, _ in inputs} & declared
        self._at_start = {
            name if name in self._input_names else variable_name(name) for name, _, _ in (*inputs, *variables)
        }
        self._variables = {name for name, _, _ in (*inputs, *variables)} | self._published_names()
        for name, _, line in variables:
            if name in self._surroundings.fixed:
                self._gap(line, f"the variable {name} has the name of an immutable input", "Rename it.")
        parameters, computed, constants = self._inputs(inputs, described)
        body["parameters"] = parameters
        body["vars"] = computed | self._named(constants, undeclared)
        body["vars"] |= self._start(variables, {name for name, _, _ in inputs}, computed)
        for name, task in self._tasks.items():
            self._known[name] = self._action(task, name)
        graph = self._graph()
        self._keep_failures(graph)
        body["tasks"] = {name: self._task(name, task, graph) for name, task in self._tasks.items()}
        if output is not None:
            body["output"] = self._output(output, graph)
        self._add_fail(body["tasks"])
        self._tell_differences(graph)
        if self._fails_fast(graph):
            body["fail_fast"] = True
        if output is not None:
            if self._surroundings.note_output is not None and self._may_fail():
                self._surroundings.note_output(output.line)
            self._tell_failed_output(self._reads.get("", ()))
        # Without `parameters`, a workflow accepts a call with any name. With an empty mapping it refuses each name.
        return {name: part for name, part in body.items() if part or name in ("parameters", "tasks")}

    # -- inputs, variables and output -----------------------------------------------------------------------------

    def _inputs(
        self, inputs: list[tuple[str, Node | None, int]], described: Mapping[str, dict[str, Any]]
    ) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
        """Return the parameters, the variables for computed defaults, and those for inputs that the action does not
        declare."""
        parameters: dict[str, Any] = {name: dict(about) for name, about in described.items()}
        computed: dict[str, Any] = {}
        constants: dict[str, Any] = {}
        only_missing: set[str] = set()
        """Inputs with a default only in `input`. A null that is passed does not get this default."""
        target_action: set[str] = set()
        for name, default, line in inputs:
            if name in self._surroundings.fixed:
                if default is not None:
                    default.drop()  # the parameter always has a value, so the default is never used
                continue
            if name in self._surroundings.computed:
                if default is not None:
                    default.drop()
                computed[name] = self._surroundings.computed[name]
                target_action.add(name)
                continue
            value = default.value() if default is not None else None
            names = OrquestaNames(
                "start", target_action, _inlined(computed) | self._constants, surroundings=self._surroundings
            )
            if name not in parameters:
                constants[name] = self._constant(name, value, line, names)
                continue
            about = parameters[name]
            if value is not None and about.get("default") is None and not about.get("required"):
                try:
                    ours = as_expression(value, names)
                    only_missing.add(name)
                    if template(value, names) == value:
                        about["default"] = value
                        allow_null(about)
                    else:
                        is_passed = f"{literal(name).text} in parameters"
                        supplied = member("parameters", name)
                        computed[name] = f"{{{{ {supplied} if {is_passed} else {ours.text} }}}}"
                except NotMapped as reason:
                    self._gap(
                        line, f"the default {value} of the input {name}: {reason}", "Pass it in each call."
                    )
                    about["required"] = True
            if about.get("default") is not None:
                about.pop("required", None)
                is_replaced = name not in computed and name not in only_missing
                if is_replaced and (text := or_default(name, about)) is not None:
                    computed[name] = text
            elif not about.get("required") or name in computed:
                about.pop("required", None)
                if name not in computed or name not in only_missing:
                    about["default"] = None
                allow_null(about)
            target_action.add(name)
            kinds = about.get("type")
            if kinds is None or "object" in (kinds if isinstance(kinds, list) else [kinds]):
                self._start_mappings.add(name)
        for name, about in parameters.items():
            if not about.get("required") and "default" not in about and name not in only_missing:
                about["default"] = None
            is_number = only_type(about.get("type")) == "number" and name in target_action
            is_open = name not in computed and name not in only_missing
            if is_number and is_open and (text := or_default(name, about)) is not None:
                computed[name] = text
        return parameters, computed, constants

    def _constant(self, name: str, value: Any, line: int, names: OrquestaNames) -> Any:
        """Return the value of an input that the action does not declare. StackStorm refuses a call with it, so the input
        always has its default, or null."""
        self._constants[name] = Ours("none")
        try:
            self._constants[name] = as_expression(value, names)
            if self._constants[name].kind in _MAPPINGS:
                self._start_mappings.add(name)
            return template(value, names)
        except NotMapped as reason:
            self._gap(
                line,
                f"the default {value} of the input {name}: {reason}",
                "Write it as an expression. Until then it is null.",
            )
            return None

    def _start(
        self, variables: list[tuple[str, Node | None, int]], inputs: set[str], computed: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return the variables. A variable that depends on another one contains that one's expression."""
        inlined = _inlined(computed) | self._constants
        computed_inputs = {name: ours.text for name, ours in inlined.items()}
        mapped: dict[str, Any] = {}
        for name, node, line in variables:
            value = node.value() if node is not None else None
            names = OrquestaNames("start", inputs, inlined, surroundings=self._surroundings)
            try:
                mapped[name] = template(value, names)
                inlined = {**inlined, name: as_expression(value, names)}
                if inlined[name].kind in _MAPPINGS and value == {}:
                    self._empty_mappings.add(name)
                elif inlined[name].kind in _MAPPINGS:
                    if name in self._start_mappings:
                        earlier = computed_inputs.get(name, f"parameters.{name}")
                        inlined[name] = _merged(earlier, inlined[name].text)
                        mapped[name] = f"{{{{ {inlined[name].text} }}}}"
                    self._start_mappings.add(name)
            except NotMapped as reason:
                self._gap(
                    line,
                    f"the variable {name}, {value}: {reason}",
                    "Write it as an expression. Until then it is null.",
                )
                mapped[name] = None
        return self._named(mapped, variables)

    def _named(self, mapped: dict[str, Any], where: list[tuple[str, Node | None, int]]) -> dict[str, Any]:
        """Return the variables by their names in Penstock. Two variables with the same resulting name are a gap."""
        lines = {name: line for name, _, line in where}
        named: dict[str, Any] = {}
        for name, value in mapped.items():
            ours = variable_name(name)
            if ours != name and (name in self._input_names or self._has_other(name, ours)):
                self._gap(
                    lines[name],
                    f"the name {name}",
                    "A name may have only letters, digits and _: choose another name.",
                )
            else:
                named[ours] = value
        return named

    def _has_other(self, name: str, ours: str) -> bool:
        return any(variable_name(other) == ours for other in self._variables if other != name)

    def _output(self, node: Node, graph: Graph) -> dict[str, Any]:
        output: dict[str, Any] = {}
        inlined: dict[str, Ours] = {}
        for name, child, line in self._pairs(node):
            value = child.value() if child is not None else None
            names = self._names("output", self._shapes())
            names.inlined = dict(inlined)
            try:
                output[name] = template(value, names)
                inlined[name] = as_expression(value, names)
            except NotMapped as reason:
                self._gap(
                    line,
                    f"the output {name}, {value}: {reason}",
                    "Write it as an expression. Until then it is null.",
                )
                output[name] = None
            self._reads.setdefault("", set()).update(names.read)
        expressions = {literal(name).text: ours.text for name, ours in inlined.items()}
        tasks = {match[1] or match[2] for text in expressions.values() for match in _OF_TASK.finditer(text)}
        are_settled = self._have_results_as_it_fails(tasks, graph) and not self._may_publish_as_it_fails(
            graph
        )
        if expressions and len(inlined) == len(output) and are_settled:
            self._failed_output = output_expression(expressions, self._at_start)
        return output

    def _have_results_as_it_fails(self, tasks: Collection[str | None], graph: Graph) -> bool:
        """Return whether these tasks have completed wherever the workflow goes to `fail`."""
        for name, task in self._tasks.items():
            for step in (task.get("next") or Node(1)).parts():
                do, when = step.get("do"), step.get("when")
                if "fail" not in _names_of(do.peek() if do is not None else None):
                    continue
                outcome = guard_of(when.peek() if when is not None else None).outcome
                if not all(self._has_result(read, name, outcome, graph) for read in tasks):
                    return False
        keepers = self._failure_keepers  # an unhandled failure of one of these tasks also goes to `fail`
        return all(self._has_result(read, name, FAILURE, graph) for name in keepers for read in tasks)

    def _may_publish_as_it_fails(self, graph: Graph) -> bool:
        """Return whether a task may publish for the output beside one that goes to `fail`. StackStorm returns its value if
        its branch has ended by then."""
        failing = [name for name in graph.tasks if "fail" in self._targets_of(name)]
        failing += self._failure_keepers
        publishing = [
            name
            for name, task in self._tasks.items()
            for step in (task.get("next") or Node(1)).parts()
            for variable, _, _ in self._pairs(step.get("publish"), take=False)
            if variable in self._reads.get("", ())
        ]
        return any(
            graph.are_concurrent(name, other) for name in failing for other in publishing if name != other
        )

    def _has_result(self, read: str | None, name: str, outcome: str, graph: Graph) -> bool:
        """Return whether a task has a result where a transition of `name` with this outcome is taken."""
        if read not in self._tasks:
            return False
        if read == name:
            return outcome == SUCCESS or read in self._failure_keepers
        ways = graph.ways(name)
        comes_before = ways is not None and all(any(task == read for task, _ in way) for way in ways)
        has_succeeded = all(edge.guard.outcome == SUCCESS for edge in graph.out_of(read))
        return comes_before and (has_succeeded or read in self._failure_keepers)

    # -- tasks ----------------------------------------------------------------------------------------------------

    def _action(self, task: Node, name: str) -> KnownAction:
        node = task.get("action")
        words = str(node.peek()).strip() if node is not None and node.peek() is not None else "core.noop"
        ref = words.partition(" ")[0]
        line = task.line_of("action")
        if "<%" in ref or "{{" in ref:
            self._gap(
                line,
                f"the action of {name} is computed: {words}",
                "Write a task for each action, with `when`.",
            )
            return KnownAction("fail", shape=UNKNOWN)
        if ref == "core.noop" and not any(task.has(key) for key in _ONLY_OF_WORKERS):
            return KnownAction("noop", shape=UNKNOWN)
        if ref == "core.ask" and not any(task.has(key) for key in _ONLY_OF_WORKERS):
            return KnownAction("inquiry", shape=OF_INQUIRY)
        return self._action_of(ref, line)

    def _task(self, name: str, source: Node, graph: Graph) -> dict[str, Any]:
        target_action = self._known[name]
        if target_action.shape == OF_INQUIRY:
            return self._asking(name, source, graph)
        mapped: dict[str, Any] = {"workflow" if target_action.is_workflow else "action": target_action.ref}
        names = self._names("task", self._earlier_shapes(name, graph), name)
        item_names = self._items(name, source, mapped, names)
        inputs = self._inputs_of(source, name, names, item_names)
        if target_action.ref == "fail":
            inputs = {"message": f"to do: write a task for each action that {name} may run"}
            for key in _ONLY_OF_WORKERS:
                if (child := source.get(key)) is not None:
                    child.drop()
            for key in ("with_items", "concurrency", "item_failures"):
                mapped.pop(key, None)
        elif isinstance(inputs, dict) and "timeout" in inputs and target_action.runner in RUNNER_TIMEOUTS:
            timeout = inputs.pop("timeout")
            if runner_timeouts.is_limit(timeout):
                mapped["timeout"] = timeout
            elif target_action.runner in SHELLS and timeout not in (None, _TO_DO):
                # The generated function itself enforces the timeout.
                inputs["timeout"] = runner_timeouts.with_default(timeout, target_action.limit)
                mapped["timeout"] = None
            elif timeout not in (None, _TO_DO):  # for null, the action's own timeout counts
                self._gap(
                    source.line_of("input"),
                    f"the timeout of {name} is computed",
                    "Write `timeout` of the task.",
                )
        elif isinstance(inputs, dict) and "timeout" in inputs and target_action.runner == OF_OTHERS:
            place = source.get("input")
            line = place.line_of("timeout") if place is not None else source.line_of("action")
            if inputs["timeout"] != _TO_DO:  # another line names a value that is not mapped
                note = self._surroundings.note_limit
                tell, note_limit = partial(self._gap, line), partial(note, line) if note is not None else None
                runner_timeouts.settle(name, mapped, inputs["timeout"], tell, note_limit)
        if inputs and target_action.ref == "noop":
            self._gap(
                source.line_of("input" if source.has("input") else "action"),
                f"the input of {name}, which runs core.noop",
                "StackStorm refuses such a task, and fails the workflow. In Penstock the task completes. Remove the input.",
            )
        elif inputs:
            mapped["input"] = inputs
        if (join := source.get("join")) is not None:
            self._join(name, join, mapped, graph)
        delay = source.get("delay")
        pause = delay.value() if delay is not None and target_action.ref != "fail" else None
        if delay is not None and pause not in (0, None):
            mapped["delay"] = self._value(pause, delay.line, names, 0)
        if (retry := source.get("retry")) is not None and target_action.ref != "fail":
            self._retry(name, retry, mapped, names)
        self._reads[name] = set(names.read)
        steps = self._steps(name, source, graph, "with_items" in mapped)
        if name in self._failure_keepers and (unhandled := self._unhandled(source, steps)):
            steps.append((len(steps), unhandled))
        if steps:
            mapped["next"] = [step for _, step in steps]
        return mapped

    def _asking(self, name: str, source: Node, graph: Graph) -> dict[str, Any]:
        """Convert a task that runs `core.ask`."""
        action, node = source.get("action"), source.get("input")
        words = inline_parameters(str(action.value())) if action is not None else {}
        values = {key: Node(source.line_of("action"), None, value) for key, value in words.items()}
        if node is not None and node.is_mapping and not values:
            values = dict(node.items())
        note_route = self._inputs_take.note_route or (lambda line, route: None)
        names = self._names("task", self._earlier_shapes(name, graph), name)
        write = partial(template, names=names)
        mapped: dict[str, Any] = {"inquiry": inquiry(name, values, self._tell, note_route, write)}
        self._reads[name] = set(names.read)
        if (join := source.get("join")) is not None:
            self._join(name, join, mapped, graph)
        if steps := self._steps(name, source, graph, False):
            mapped["next"] = [step for _, step in steps]
        return mapped

    # -- results that are read after a failure ----------------------------------------------------------------------------

    def _keep_failures(self, graph: Graph) -> None:
        """Replace the action of each task with a result that is read after a failure by one that returns its
        failure."""
        for name, task in self._tasks.items():
            if task.has("with") or task.has("retry") or not self._reads_failure(name, graph):
                continue
            keeper = self._keep(self._known[name])
            if keeper is not None:
                self._known[name] = keeper
                self._failure_keepers.add(name)

    def _reads_failure(self, name: str, graph: Graph) -> bool:
        """Return whether the result of a task is read where the task may have failed."""
        of_itself = re.compile(
            rf"\bresult\(\)|\btask\(\s*(?:['\"]?{re.escape(name)}['\"]?\s*)?\)\s*\.\s*result\b"
        )
        of_others = re.compile(rf"\btask\(\s*['\"]?{re.escape(name)}['\"]?\s*\)\s*\.\s*result\b")
        goes_on = False
        for step in (self._tasks[name].get("next") or Node(1)).parts():
            when = step.get("when")
            do = step.get("do")
            leads_on = any(
                target != "continue" for target in _names_of(do.peek() if do is not None else None)
            )
            if leads_on and guard_of(when.peek() if when is not None else None).outcome != SUCCESS:
                goes_on = True
                if of_itself.search(str(step.peek())):
                    return True
        if not goes_on:
            return False
        later = [self._tasks[other].peek() for other in graph.after(name)]
        return bool(of_others.search(f"{later} {self._output_text}"))

    def _unhandled(self, source: Node, steps: list[tuple[int, dict[str, Any]]]) -> dict[str, Any] | None:
        """Return the transition that fails the workflow after a failure that no other transition handles."""
        handling: list[str] = []
        node = source.get("next")
        for number, step in enumerate(node.parts() if node is not None else []):
            when, do = step.get("when"), step.get("do")
            guard = guard_of(when.peek() if when is not None else None)
            targets = _names_of(do.peek()) if do is not None else []
            if guard.outcome == SUCCESS or not any(target != "continue" for target in targets):
                continue
            if guard.outcome == ANY and not guard.atoms:
                return None
            handling += [str(entry["when"]) for place, entry in steps if place == number]
        failed = 'succeeded() and result.status != "succeeded"'
        handled = " or ".join(f"({when})" for when in handling)
        return {"when": f"{failed} and not ({handled})" if handled else failed, "do": ["fail"]}

    def _inputs_of(
        self, source: Node, name: str, names: OrquestaNames, item_names: list[str] | None
    ) -> dict[str, Any] | str:
        names = replace(names, surroundings=self._inputs_take)  # the set of names that are read is shared
        own = names if item_names is None else _ItemNames(names, item_names)
        action, node = source.get("action"), source.get("input")
        words = str(action.value()).strip() if action is not None and action.peek() is not None else ""
        inline = inline_parameters(words)
        if inline:
            line = source.line_of("action")
            if node is not None:
                self._ignored(
                    node.line, f"the input {node.value()} of {name}, beside parameters behind its action"
                )
            if ignored := ignored_text(words.partition(" ")[2]):
                self._ignored(line, f"`{ignored}` behind the action of {name}")
            return self._input_values(name, {key: (value, line) for key, value in inline.items()}, own)
        if " " in words and "<%" not in words.partition(" ")[0] and "{{" not in words.partition(" ")[0]:
            self._gap(
                source.line_of("action"),
                f"`{words.partition(' ')[2]}` behind the action of {name}, which StackStorm does not read as parameters",
                "Write it as `input`.",
            )
        if node is None:
            return {}
        if node.is_mapping:
            values = {key: (child.value(), child.line) for key, child in node.items()}
            return self._input_values(name, values, own)
        text = node.value()
        mapped = self._value(text, node.line, own, _TO_DO)
        return mapped if isinstance(mapped, str) and "{{" in mapped else _TO_DO

    def _input_values(self, task: str, values: Mapping[str, tuple[Any, int]], names: Any) -> dict[str, Any]:
        """Return the parameters of a task. StackStorm converts texts to the types that the action declares."""
        types = dict(self._types_of(self._known[task].ref))
        if self._known[task].runner in RUNNER_TIMEOUTS:
            types.setdefault("timeout", "integer")
        note = self._surroundings.note_type
        inputs = {
            key: self._value(value, line, names, _TO_DO, types.get(key))
            for key, (value, line) in values.items()
        }
        if note is not None and self._known[task].runner:
            for key, (value, line) in values.items():
                is_mapped = inputs[key] != _TO_DO  # the line of an unmapped expression already names it
                is_open = is_mapped and may_become_another_type(value) and not is_whole(value)
                if key not in (*types, "timeout") and is_open:
                    note(line, key, value)
        return inputs

    def _items(
        self, name: str, source: Node, mapped: dict[str, Any], names: OrquestaNames
    ) -> list[str] | None:
        """Convert `with`. Return the names of an item's parts; an empty list for a bare item."""
        node = source.get("with")
        if node is None:
            return []
        items, concurrency = (node.get("items"), node.get("concurrency")) if node.is_mapping else (node, None)
        text = items.value() if items is not None else None
        match = _WITH.fullmatch(text) if isinstance(text, str) else None
        parts: list[str] = []
        if match is None:
            self._gap(node.line, f"items that are not an expression: {text}", "Give a list as an expression.")
            mapped["with_items"] = _TO_DO
        else:
            parts = [part.strip() for part in match[1].split(",")] if match[1] else []
            mapped["with_items"] = self._value(match[2], node.line, names, _TO_DO)
        if concurrency is not None:
            count = self._value(concurrency.value(), concurrency.line, names, 1)
            if isinstance(count, str) and count.startswith("{{"):
                # In Orquesta, a concurrency below 1 means 1, and null means all items at once.
                ours, of_all = count[2:-2].strip(), str(mapped["with_items"])[2:-2].strip()
                count = f"{{{{ [{ours} if {ours} is not none else ({of_all}) | length, 1] | max }}}}"
            mapped["concurrency"] = max(count, 1) if isinstance(count, int) else count
            if mapped["concurrency"] == 1:
                mapped["item_failures"] = {"then": "stop"}
            elif not isinstance(count, int):
                self._gap(
                    concurrency.line,
                    f"the concurrency of {name} is computed: {concurrency.value()}",
                    "With a concurrency of 1, StackStorm starts no item after a failed item. Penstock runs all items: write a "
                    "number.",
                )
        return parts

    def _join(self, name: str, node: Node, mapped: dict[str, Any], graph: Graph) -> None:
        join = node.value()
        sources = {edge.source for edge in graph.into(name)}
        if join == "all" or join == len(sources):
            if sources:
                mapped["join"] = "all"
        elif isinstance(join, int) and not isinstance(join, bool) and 0 < join < len(sources):
            mapped["join"] = join
            self._gap(node.line, f"join: {join} of {name}, which has {len(sources)} tasks before it",
                      "In Penstock it runs once, after that number of tasks; see what should happen when more tasks "
                      "end.")  # fmt: skip
        else:
            self._gap(node.line, f"join: {join} of {name}", "Write `join: all`, or a number of tasks.")

    def _retry(self, name: str, node: Node, mapped: dict[str, Any], names: OrquestaNames) -> None:
        count, delay, when = (node.get(key) for key in ("count", "delay", "when"))
        number = count.value() if count is not None else None
        if isinstance(number, bool) or not isinstance(number, int):
            if count is not None:
                self._gap(
                    count.line,
                    f"the number of tries of {name} is computed: {number}",
                    "Write a number into `retry`.",
                )
            number = 0
        pause = delay.value() if delay is not None else 0
        if isinstance(pause, bool) or not isinstance(pause, int | float):
            self._gap(delay.line if delay else node.line, f"the delay between tries of {name} is computed: {pause}",
                      "Write seconds into `retry`.")  # fmt: skip
            pause = 0
        if "workflow" in mapped:
            self._gap(
                node.line, f"retry of the workflow {name}", "Write `retry` of the tasks in this workflow."
            )
        elif "with_items" in mapped:
            self._gap(node.line, f"retry of {name}, which runs all items again in StackStorm",
                      "In Penstock `retry` runs only the failed item again: write it if this is enough.")  # fmt: skip
        else:
            mapped["retry"] = {
                "max_attempts": number + 1,
                "backoff": "fixed",
                "initial_delay": pause,
                "max_delay": max(pause, 60),
                "jitter": 0,
            }
        if when is not None:
            text = when.value()
            guard = guard_of(text)
            if guard.outcome != FAILURE or guard.atoms:
                self._gap(
                    when.line,
                    f"retry of {name} when {text}",
                    "Let the action raise Retry for errors that should be retried.",
                )

    # -- transitions ----------------------------------------------------------------------------------------------

    def _steps(
        self, name: str, source: Node, graph: Graph, has_items: bool
    ) -> list[tuple[int, dict[str, Any]]]:
        """Return the transitions, each with the index of its source in `next`."""
        steps: list[tuple[int, dict[str, Any]]] = []
        node = source.get("next")
        for number, step in enumerate(node.parts() if node is not None else []):
            steps += [(number, mapped) for mapped in self._step(name, number, step, graph, has_items)]
        return steps

    def _step(
        self, name: str, number: int, step: Node, graph: Graph, has_items: bool
    ) -> Iterator[dict[str, Any]]:
        when = step.get("when")
        text = when.peek() if when is not None else None
        guard = guard_of(text)
        do = step.get("do")
        targets = _names_of(do.value()) if do is not None else []
        goes_to = [edge.target for edge in graph.out_of(name) if edge.step == number]
        then = [
            target
            for target in dict.fromkeys(targets)
            if target in goes_to or target == "fail" or self._is_later_failure(target)
        ]
        if when is not None and isinstance(text, str) and text and not has_expressions(text):
            self._ignored(
                when.line, f"the condition `{text}` of {name}, which is not an expression and always holds"
            )
        outcomes = (SUCCESS, FAILURE) if guard.outcome == ANY else (guard.outcome,)
        told_reasons: set[str] = set()
        for outcome in outcomes:
            failed = outcome == FAILURE
            names = self._names("end", self._earlier_shapes(name, graph), name)
            names.may_have_failed, names.has_items = failed, has_items
            mapped: dict[str, Any] = {"when": True}
            if when is not None:
                when.drop()
            if failed and not then and "noop" not in targets:
                self._ends_failed(name, step, graph, targets)
                continue
            mapped["when"] = self._when(
                text, when.line if when else step.line, guard.outcome == ANY, failed, names, told_reasons
            )
            published = self._publish(step.get("publish"), names, told_reasons)
            self._reads.setdefault(name, set()).update(names.read)
            if published:
                mapped["publish"] = published
            if then:
                mapped["do"] = then
            elif failed:
                mapped["do"] = ["handled"]  # `noop` handles a failure; `continue` and an empty `do` do not
            if then or published or "do" in mapped:
                yield mapped

    def _ends_failed(self, name: str, step: Node, graph: Graph, targets: Sequence[str]) -> None:
        """Leave out a transition after a failure that leads nowhere: the workflow fails with the error of the task. What it
        publishes is only seen by the output, which `_tell_failed_output` names."""
        if (publish := step.get("publish")) is None:
            return
        publish.drop()
        if any(target != "continue" for target in targets):
            return  # another line names the way back, or the missing task
        if name in graph.ends_handled or any(edge.guard.outcome != SUCCESS for edge in graph.out_of(name)):
            self._gap(step.line, f"{name} publishes after a failure and leads nowhere, beside a transition that leads on",
                      "Publish in that transition.")  # fmt: skip

    def _when(
        self, text: object, line: int, split: bool, failed: bool, names: OrquestaNames, told_reasons: set[str]
    ) -> str | bool:
        outcome_text = (_NOT_SUCCEEDED if failed else "succeeded()") if split else ""
        if text is None:
            return outcome_text or True
        try:
            ours = condition(text, names)
        except NotMapped as reason:
            if str(reason) not in told_reasons:
                self._gap(
                    line, f"when {text}: {reason}", "Write it as an expression. Until then it never holds."
                )
            told_reasons.add(str(reason))
            return "false"
        if outcome_text and ours == "true":
            return outcome_text
        return f"{outcome_text} and ({ours})" if outcome_text else ours

    def _publish(self, node: Node | None, names: OrquestaNames, told_reasons: set[str]) -> dict[str, Any]:
        published: dict[str, Any] = {}
        mappings: dict[str, Ours] = {}
        pairs = list(self._pairs(node))
        for name, child, line in pairs:
            value = child.value() if child is not None else None
            mappings.pop(name, None)
            try:
                published[name] = template(value, names)
                ours = as_expression(value, names)
                names.inlined = {**names.inlined, name: ours}
                if ours.kind in _MAPPINGS:
                    mappings[name] = ours
            except NotMapped as reason:
                if f"{name}: {reason}" not in told_reasons:
                    self._gap(
                        line,
                        f"publish {name}, {value}: {reason}",
                        "Write it as an expression. Until then it is null.",
                    )
                told_reasons.add(f"{name}: {reason}")
                published[name] = None
        named = self._named(published, pairs)
        for name, ours in mappings.items():
            self._published_mappings.setdefault((names.task or "", name), []).append((named, ours))
        return named

    def _add_fail(self, tasks: dict[str, Any]) -> None:
        targets = {
            target
            for task in tasks.values()
            for step in task.get("next", ())
            for target in step.get("do", ())
        }
        if "handled" in targets and "handled" not in tasks:
            tasks["handled"] = {"action": "noop"}
        if FAILS_AT_THE_END in targets and FAILS_AT_THE_END not in tasks:
            message = "a task failed, and nothing handles its failure"
            tasks[FAILS_AT_THE_END] = {"action": "fail", "input": {"message": message}}
        if "fail" in targets and "fail" not in tasks:
            message = "the workflow says fail"
            if self._failed_output is not None:
                message += f"; its output: {{{{ {self._failed_output} | tojson }}}}"
            tasks["fail"] = {"action": "fail", "input": {"message": message}}

    def _is_later_failure(self, target: str) -> bool:
        return target == FAILS_AT_THE_END and not self._failure_stops_all

    # -- the order of tasks ---------------------------------------------------------------------------------------

    def _graph(self) -> Graph:
        """Return the transitions without those that close a circle or lead to a missing task."""
        successors: dict[str, list[str]] = {}
        hits: list[tuple[Edge, int]] = []
        ends_handled: set[str] = set()
        for name, task in self._tasks.items():
            node = task.get("next")
            for number, step in enumerate(node.parts() if node is not None else []):
                do, when = step.get("do"), step.get("when")
                may_follow_failure = self._guard(name, when).outcome != SUCCESS and not self._always_succeeds(
                    name
                )
                if may_follow_failure and "noop" in _names_of(do.peek() if do is not None else None):
                    ends_handled.add(name)
                for target in dict.fromkeys(_names_of(do.peek()) if do is not None else []):
                    line = do.line if do is not None else step.line
                    if target in _ENGINE or self._is_later_failure(target):
                        if target == "retry":
                            self._gap(line, f"{name} goes to retry", "Write `retry` of the task.")
                    elif target not in self._tasks:
                        self._gap(line, f"{name} goes to {target}, which is not a task", "Correct the name.")
                    else:
                        successors.setdefault(name, []).append(target)
                        hits.append((Edge(name, number, target, self._guard(name, when)), line))
        closing = cycle_edges({name: successors.get(name, []) for name in self._tasks})
        for edge, line in hits:
            if (edge.source, edge.target) in closing:
                self._gap(
                    line,
                    f"{edge.source} goes back to {edge.target}",
                    "A task cannot come after itself: use `retry`, `with_items`, or a workflow that calls itself.",
                )
        remaining = tuple(edge for edge, _ in hits if (edge.source, edge.target) not in closing)
        joins = frozenset(name for name, task in self._tasks.items() if task.has("join"))
        return Graph(tuple(self._tasks), remaining, joins, frozenset(ends_handled))

    def _guard(self, task: str, when: Node | None) -> Guard:
        """Return the demands of a transition. The result of an inquiry without an answer has no `response`. A condition
        that reads a part of it fails the workflow there, and leads nowhere."""
        guard = guard_of(when.peek() if when is not None else None)
        reads_answer = any(_PART_OF_ANSWER.search(subject) for subject, _, _ in guard.atoms)
        if guard.outcome == ANY and reads_answer and self._known[task].shape == OF_INQUIRY:
            return replace(guard, outcome=SUCCESS)
        return guard

    def _tell_differences(self, graph: Graph) -> None:
        """Record the differences to Orquesta for tasks that run concurrently."""
        for name, task in self._tasks.items():
            into = graph.into(name)
            if name not in graph.joins and not all(
                graph.is_exclusive(entry, two) for entry, two in combinations(into, 2)
            ):
                self._gap(
                    task.line,
                    f"{name} may be reached several times and has no join: StackStorm runs it each time",
                    "In Penstock it runs once, after the first transition. Write a task for each transition, or `join: all`.",
                )
            if name in graph.joins and not graph.is_certain(name):
                self._gap(
                    task.line,
                    f"{name} joins branches that may not come: StackStorm fails the workflow then",
                    "Penstock skips the task, and the workflow completes. Say with `when` what should happen.",
                )
        self._tell_published(graph)
        if self._merges_mappings:
            self._tell_lost_in_output(graph)
        for (writer, variable), places in self._published_mappings.items() if self._merges_mappings else ():
            is_published_before = any(
                other == variable and writer in graph.after(earlier)
                for earlier, other in self._published_mappings
            )
            if is_published_before or variable in self._start_mappings | self._empty_mappings:
                self._tell_merged_beside(graph, writer, variable)
            if variable in self._start_mappings or is_published_before:
                for published, ours in places:
                    merged = _merged(_earlier(variable_name(variable)), ours.text)
                    published[variable_name(variable)] = f"{{{{ {merged.text} }}}}"

    def _fails_fast(self, graph: Graph) -> bool:
        """Return whether a failure or a `fail` of one task has to stop the starts of others, as in Orquesta. Record a gap
        for each difference that remains."""
        fails_fast = False
        for failing, other in permutations(graph.tasks, 2):
            if not graph.are_concurrent(failing, other) or not self._may_end_workflow(failing, graph):
                continue
            says_fail = "fail" in self._targets_of(failing)
            goes_on = [
                task
                for task in graph.after(other)
                if task != failing and (says_fail or task not in graph.after(failing))
            ]
            if goes_on or self._starts_items_later(other):
                if not self._failure_stops_all:
                    self._gap(
                        self._tasks[failing].line,
                        f"when {failing} fails, StackStorm starts nothing more, not even after {other}",
                        "In Penstock a failure stops only the tasks that depend on it.",
                    )
                    return False
                fails_fast = True
            if self._failure_stops_all and self._tasks[other].has("retry"):
                self._gap(
                    self._tasks[other].line_of("retry"),
                    f"when {failing} fails, StackStorm does not retry {other}",
                    "Penstock still retries a running task.",
                )
                return fails_fast
        for name in graph.tasks:
            targets = self._targets_of(name)
            if "fail" not in targets or not any(graph.after(target) for target in targets & set(graph.tasks)):
                continue
            if not self._failure_stops_all:
                self._gap(
                    self._tasks[name].line,
                    f"{name} goes to fail and to other tasks: StackStorm runs only the first of these tasks",
                    "Penstock also runs the tasks after them.",
                )
            fails_fast = self._failure_stops_all
        if self._failure_stops_all:
            self._tell_parts_beside_fail(graph, fails_fast)
        if fails_fast:
            self._tell_tasks_beside_fail(graph)
        return fails_fast

    def _tell_parts_beside_fail(self, graph: Graph, fails_fast: bool) -> None:
        """Record a gap for each task beside `fail` that Orquesta tries no more, or of which it starts further items."""
        for name in graph.tasks:
            targets = self._targets_of(name)
            for target in graph.tasks:
                if "fail" not in targets or target not in targets:
                    continue
                if self._tasks[target].has("retry"):
                    self._gap(
                        self._tasks[target].line_of("retry"),
                        f"{name} goes to fail and to {target}, which StackStorm then does not retry",
                        "Penstock still retries a running task.",
                    )
                if fails_fast and self._starts_items_later(target):
                    self._gap(
                        self._tasks[target].line_of("with"),
                        f"{name} goes to fail and to {target}, whose further items StackStorm starts even then",
                        "Penstock starts nothing after a failure: write the tasks that have to run as `on_exit`.",
                    )

    def _tell_tasks_beside_fail(self, graph: Graph) -> None:
        """Record a gap for a task that goes to `fail` and to other tasks, if the workflow may have failed before."""
        for name in graph.tasks:
            targets = self._targets_of(name)
            if "fail" not in targets or not targets & set(graph.tasks):
                continue
            for other in graph.tasks:
                if other == name or not self._may_end_workflow(other, graph):
                    continue
                if graph.are_concurrent(name, other):
                    self._gap(
                        self._tasks[name].line,
                        f"{name} goes to fail and to other tasks, which StackStorm runs even after a failure of {other}",
                        "Penstock starts nothing after that failure: write the tasks that have to run as `on_exit`.",
                    )
                    return

    def _may_end_workflow(self, name: str, graph: Graph) -> bool:
        """Return whether a task may fail without a transition for it, or goes to `fail`."""
        may_stop = self._failure_stops_all and not self._always_succeeds(name)
        return (may_stop and graph.may_fail_unhandled(name)) or "fail" in self._targets_of(name)

    def _starts_items_later(self, name: str) -> bool:
        items = self._tasks[name].get("with")
        return items is not None and items.is_mapping and items.has("concurrency")

    def _targets_of(self, name: str) -> set[str]:
        return {
            target
            for step in (self._tasks[name].get("next") or Node(1)).parts()
            if (do := step.get("do")) is not None
            for target in _names_of(do.peek())
        }

    def _tell_failed_output(self, read: Collection[str]) -> None:
        """Record a gap for values that are published for the output of a failing workflow: StackStorm returns an output
        even then."""
        for name, task in self._tasks.items():
            for step in (task.get("next") or Node(1)).parts():
                do, when = step.get("do"), step.get("when")
                targets = _names_of(do.peek()) if do is not None else []
                is_explicit = when is not None and guard_of(when.peek()).outcome != SUCCESS
                ends_failed = is_explicit and all(target == "continue" for target in targets)
                if "fail" not in targets and (not ends_failed or self._known[name].ref == "noop"):
                    continue
                if "fail" in targets and self._failed_output is not None:
                    continue  # the output of the workflow is stored in its error
                fails = (
                    "fails the workflow"
                    if "fail" in targets
                    else "leads nowhere after a failure, which fails the workflow"
                )
                for variable, _, line in self._pairs(step.get("publish"), take=False):
                    if variable in read:
                        self._gap(
                            line,
                            f"{name} publishes {variable} and {fails}, and StackStorm still returns the workflow's output",
                            "In Penstock a failed workflow has an error and no output: pass the value on earlier.",
                        )

    def _may_fail(self) -> bool:
        return any(action.ref != "noop" for action in self._known.values())

    def _always_succeeds(self, name: str) -> bool:
        """Return whether a task is a `core.noop` that evaluates nothing beyond its own outcome."""
        task = self._tasks[name]
        if self._known[name].ref != "noop" or has_expressions(
            str([child.peek() for key in ("action", "input") if (child := task.get(key)) is not None])
        ):
            return False
        for step in (task.get("next") or Node(1)).parts():
            when, publish = step.get("when"), step.get("publish")
            if guard_of(when.peek() if when is not None else None).atoms:
                return False
            if publish is not None and has_expressions(str(publish.peek())):
                return False
        return True

    def _publishes_alike(self, variable: str, first: tuple[str, int], second: tuple[str, int]) -> bool:
        """Return whether two transitions publish the same value. A text without an expression is the same everywhere. An
        expression is so at the end of one task, after equal earlier values of the same transition."""
        texts: list[list[tuple[str, str]]] = []
        for name, number in (first, second):
            steps = list((self._tasks[name].get("next") or Node(1)).parts())
            pairs = list(self._pairs(steps[number].get("publish"), take=False))
            values = [(key, repr(child.peek() if child is not None else None)) for key, child, _ in pairs]
            last = max((place for place, (key, _) in enumerate(values) if key == variable), default=None)
            if last is None:
                return False
            texts.append(values[: last + 1])
        if texts[0][-1] != texts[1][-1]:
            return False
        return not has_expressions(texts[0][-1][1]) or (first[0] == second[0] and texts[0] == texts[1])

    def _tell_published(self, graph: Graph) -> None:
        writers: dict[str, list[tuple[str, int, int]]] = {}
        for name, task in self._tasks.items():
            for number, step in enumerate((task.get("next") or Node(1)).parts()):
                for variable, _, line in self._pairs(step.get("publish"), take=False):
                    writers.setdefault(variable, []).append((name, number, line))
        guards = {
            (name, number): self._guard(name, step.get("when"))
            for name, task in self._tasks.items()
            for number, step in enumerate((task.get("next") or Node(1)).parts())
        }
        is_concurrent = any(graph.are_concurrent(entry, two) for entry, two in combinations(graph.tasks, 2))
        for variable, places in writers.items():
            for (entry, place, line), (two, other, _) in combinations(places, 2):
                if self._publishes_alike(variable, (entry, place), (two, other)):
                    continue
                if (
                    entry == two
                    and place != other
                    and not guards[entry, place].contradicts(guards[two, other])
                ):
                    self._gap(line, f"{entry} publishes {variable} in two transitions, and both may be taken",
                              "In Penstock the later value counts for all tasks after it.")  # fmt: skip
                elif (
                    entry != two
                    and is_concurrent
                    and not _exclude(graph, guards, (entry, place), (two, other))
                    and not _is_replaced(graph, guards, (entry, place), (two, other))
                    and not _is_replaced(graph, guards, (two, other), (entry, place))
                ):
                    self._gap(line, f"{variable} is published by {entry} and by {two} in a workflow with branches side by side",
                              "Another value may win in Penstock: publish under two names.")  # fmt: skip
            for name, number, line in places:
                self._tell_seen_by_others(graph, guards, variable, (name, number, line))

    def _tell_lost_in_output(self, graph: Graph) -> None:
        """Record a gap for values that Orquesta leaves out of the output. A task with transitions of which it takes none ends no
        branch there, unless the workflow ends with it."""
        publishers = [
            (name, variable)
            for name, task in self._tasks.items()
            for step in (task.get("next") or Node(1)).parts()
            for variable, _, _ in self._pairs(step.get("publish"), take=False)
            if variable in self._reads.get("", ())
        ]
        for name, task in self._tasks.items():
            if not self._may_take_no_transition(name):
                continue
            for publisher, variable in publishers:
                if name in graph.after(publisher) and any(
                    other != publisher
                    and other not in graph.after(publisher)
                    and graph.are_concurrent(name, other)
                    for other in graph.tasks
                ):
                    self._gap(
                        task.line,
                        f"{name} may take no transition, and StackStorm then leaves {variable} of {publisher} out of the output",
                        "In Penstock the output has it.",
                    )
                    break

    def _may_take_no_transition(self, name: str) -> bool:
        """Return whether a task with transitions may succeed, and take none of them."""
        steps = list((self._tasks[name].get("next") or Node(1)).parts())
        guards = [
            guard for step in steps if (guard := self._guard(name, step.get("when"))).outcome != FAILURE
        ]
        if not steps or any(not guard.atoms for guard in guards):
            return False
        single = {next(iter(guard.atoms)) for guard in guards if len(guard.atoms) == 1}
        return not any((subject, values, not holds) in single for subject, values, holds in single)

    def _tell_merged_beside(self, graph: Graph, writer: str, variable: str) -> None:
        """Record a gap for a mapping that a task publishes beside a reader of the variable. Orquesta merges it into the
        earlier mapping in place, and all branches share that mapping."""
        for reader in graph.tasks:
            if (
                reader != writer
                and variable in self._reads.get(reader, ())
                and graph.are_concurrent(writer, reader)
            ):
                self._gap(
                    self._tasks[writer].line,
                    f"{writer} publishes into the mapping {variable}, and {reader} beside it may see this in StackStorm",
                    "In Penstock only the tasks after it see the value.",
                )
                return

    def _tell_seen_by_others(
        self, graph: Graph, guards: Mapping[tuple[str, int], Any], variable: str, place: tuple[str, int, int]
    ) -> None:
        name, number, line = place
        own = {edge.target for edge in graph.out_of(name) if edge.step == number}
        for edge in graph.out_of(name):
            if edge.step == number or edge.target in own or guards[name, number].contradicts(edge.guard):
                continue
            if self._publishes_alike(variable, (name, number), (name, edge.step)):
                continue
            readers = {edge.target, *graph.after(edge.target)}
            if any(variable in self._reads.get(reader, ()) for reader in readers):
                self._gap(line, f"{name} publishes {variable} for some of the tasks after it, and {edge.target} also reads it",
                          "In Penstock all tasks after it see the value.")  # fmt: skip
                return

    # -- names, values and gaps -----------------------------------------------------------------------------------

    def _names(self, place: str, shapes: Mapping[str, str], task: str | None = None) -> OrquestaNames:
        return OrquestaNames(
            place,
            self._variables,
            shapes=shapes,
            task=task,
            failure_keepers=self._failure_keepers,
            tasks_with_items={name for name, source in self._tasks.items() if source.has("with")},
            parameters=self._input_names,
            surroundings=self._surroundings,
        )

    def _shapes(self) -> dict[str, str]:
        return {name: target_action.shape for name, target_action in self._known.items()}

    def _earlier_shapes(self, name: str, graph: Graph) -> dict[str, str]:
        return {
            task: target_action.shape
            for task, target_action in self._known.items()
            if task == name or name in graph.after(task)
        }

    def _published_names(self) -> set[str]:
        return {
            variable
            for task in self._tasks.values()
            for step in (task.get("next") or Node(1)).parts()
            for variable, _, _ in self._pairs(step.get("publish"), take=False)
        }

    def _pairs(self, node: Node | None, take: bool = True) -> Iterator[tuple[str, Node | None, int]]:
        """Yield the name, value and line of each pair. Pairs are a list of names and small mappings, a mapping, or a text
        `a=1 b=2`."""
        if node is None:
            return
        if node.is_mapping:
            yield from ((name, child, child.line) for name, child in node.items())
        elif node.is_list:
            for part in node.parts():
                if part.is_mapping:
                    yield from ((name, child, child.line) for name, child in part.items())
                elif isinstance(part.peek(), str):
                    if take:
                        part.drop()
                    yield part.peek(), None, part.line
        elif isinstance(node.peek(), str):
            if take:
                node.drop()
                if ignored := ignored_text(node.peek()):
                    self._ignored(node.line, f"`{ignored}`, which sets no variable")
            for name, value in inline_parameters(node.peek()).items():
                yield name, Node(node.line, None, value), node.line

    def _value(self, value: Any, line: int, names: Any, otherwise: Any, kind: Any = None) -> Any:
        try:
            if kind is not None and isinstance(value, str) and has_expressions(value):
                if "{%" in value:
                    return block_text(value, names, kind)
                return converted(template(value, names), as_expression(value, names), kind)
            mapped = template(value, names)
            return mapped if isinstance(value, str) and mapped != value else cast_literal(mapped, kind)
        except NotMapped as reason:
            self._gap(
                line,
                f"the expression {value}: {reason}",
                f"Write it as an expression. Until then it is `{otherwise}`.",
            )
            return otherwise

    def _ignored(self, line: int, subject: str) -> None:
        if self._surroundings.note_ignored is not None:
            self._surroundings.note_ignored(line, subject)

    def _gap(self, line: int, subject: str, by_hand: str) -> None:
        self._tell(line, " ".join(subject.split()), by_hand)


def _exclude(
    graph: Graph, guards: Mapping[tuple[str, int], Any], entry: tuple[str, int], two: tuple[str, int]
) -> bool:
    first = Edge(entry[0], entry[1], "", guards[entry])
    second = Edge(two[0], two[1], "", guards[two])
    return graph.is_exclusive(first, second)


def _is_replaced(
    graph: Graph, guards: Mapping[tuple[str, int], Any], first: tuple[str, int], second: tuple[str, int]
) -> bool:
    """Return whether each value that the transition `first` publishes is replaced by that of `second` wherever both could
    meet. So it is where nothing forks from the one to the other: no other branch then has the first value alone."""
    if second[0] not in graph.after(first[0]) or first[0] in graph.after(second[0]):
        return False
    targets = {edge.target for edge in graph.out_of(first[0]) if edge.step == first[1]}
    behind = {name for target in targets for name in (target, *graph.after(target))}
    if len(targets) != 1 or second[0] not in behind:
        return False
    between = behind - {second[0]}
    for name in (*(name for name in between if second[0] in graph.after(name)), second[0]):
        numbers = [number for task, number in guards if task == name]
        if name != second[0] and any(
            len({edge.target for edge in graph.out_of(name) if edge.step == number}) > 1 for number in numbers
        ):
            return False
        pairs = [pair for pair in combinations(numbers, 2) if name != second[0] or second[1] in pair]
        if not all(
            guards[name, number].contradicts(guards[name, second_number]) for number, second_number in pairs
        ):
            return False
    return True


class _ItemNames:
    """The names of a task with items, where `item(x)` is a part of the item."""

    def __init__(self, names: OrquestaNames, parts: list[str]) -> None:
        self._names, self._parts = names, parts

    def root(self, function: str, argument: str | None, steps: Any) -> tuple[Ours, int]:
        if function != "item" or not self._parts:
            return self._names.root(function, argument, steps)
        if argument is None and steps and steps[0] in self._parts:
            return self._part(steps[0]), 1
        if argument in self._parts:
            return self._part(str(argument)), 0
        raise NotMapped("a whole item that has named parts")

    def _part(self, name: str) -> Ours:
        """Return the expression for a part of an item. If the item has only one name, StackStorm splits a list too."""
        if len(self._parts) > 1:
            return Ours(f"item[{self._parts.index(name)}]")
        return Ours("(item[0] if item is sequence and item is not string and item is not mapping else item)")


def _inlined(computed: Mapping[str, str]) -> dict[str, Ours]:
    """Return the expressions of templates that are one expression each."""
    return {
        name: Ours(f"({text.removeprefix('{{ ').removesuffix(' }}')})") for name, text in computed.items()
    }


def _earlier(variable: str) -> str:
    return f"({member('context', variable)} | default(none))"


def _merged(old: str, new: str) -> Ours:
    """Return the expression for the value of a variable with the value `old` that is published again as `new`. If both
    values are mappings, Orquesta merges them at every level, and `new` wins. Otherwise `new` replaces `old`."""
    merging = f"{old} is mapping and ({new}) is mapping"
    return Ours(f"({old} | combine({new}, recursive=true) if {merging} else {new})")


def _names_of(do: Any) -> list[str]:
    if isinstance(do, str):
        return [name.strip() for name in do.split(",") if name.strip()]
    return [str(name) for name in do] if isinstance(do, list) else []
