"""The conversion of Attune's workflows: their tasks, with `next` or with the older keys such as `on_success`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from penstock_import.attune_expressions import OUTCOMES, AttuneExpressions
from penstock_import.attune_parameters import as_written, with_default
from penstock_import.attune_transitions import Order, guard, outcomes
from penstock_import.orquesta_graph import FAILURE
from penstock_import.report import Report
from penstock_import.taken_keys import AS_THERE, NULL_HERE, UNDECLARED, TakenKeys
from penstock_import.wanted_text import NotMapped, literal, member

_NAMES = {
    "parameters": "parameters",
    "workflow": "vars",
    "vars": "vars",
    "variables": "vars",
    "task": "tasks",
    "keystore": "secrets",
}
_ITEM = {"item": "item", "index": "index"}
_END = dict.fromkeys(("succeeded", "failed", "timed_out", "result"), "")
_NOT_SUCCEEDED = "not succeeded() and not cancelled()"
"""The condition of a transition after any end but a success. Attune takes no transition of a cancelled task."""
_OLD = (
    ("on_success", "{{ succeeded() }}"),
    ("on_failure", "{{ failed() }}"),
    ("on_complete", None),
    ("on_timeout", "{{ timed_out() }}"),
)
"""The older keys of transitions, in the order in which Attune reads them. Attune ignores them beside `next`."""
_KINDS = {
    "boolean": "bool",
    "integer": "int",
    "number": "number",
    "string": "str",
    "array": "list",
    "object": "dict",
}
"""The certain type of a parameter's value, by the declared type."""
_PATH = re.compile(r"\{\{ [\w.]+ \}\}")
"""A template that is a single path of names."""
_BACKOFF = {"constant": "fixed", "linear": "linear", "exponential": "exponential"}
LONGEST_DELAY = 86_400
"""The longest retry delay in seconds if Attune names none. Penstock's own default is a minute."""
ASK = "Write a task `inquiry: {prompt: ..., schema: ..., timeout: ...}`, whose result is the answer: docs/how-to/approvals.md."


@dataclass(slots=True)
class _Way:
    """A transition: its place in the file, its condition, the variables that it publishes, and its target tasks."""

    keys: TakenKeys
    when: Any
    published: dict[str, Any]
    targets: list[str]


class AttuneWorkflow:
    """A converter of one workflow. `head` has the parameters and the description, which are those of its action.
    `parameters_of_action` returns the parameters of an action by its ref, or None if they are not known."""

    def __init__(
        self,
        report: Report,
        file: str,
        source: Any,
        name: str,
        head: Mapping[str, Any],
        parameters_of_action: Callable[[str], Mapping[str, Any] | None] = lambda _: None,
    ) -> None:
        self.report = report
        self.file = file
        self.name = name
        self._keys = TakenKeys(report, file, source, f"workflow {name}")
        self._head = dict(head)
        self._parameters_of_action = parameters_of_action
        self.actions: set[str] = set()
        """Refs of the actions that its tasks run."""
        self.secrets: set[str] = set()
        self._lists: frozenset[str] = frozenset()
        self._names: dict[str, str] = dict(_NAMES)
        self._kinds: dict[str, str] = {}
        self._reads: dict[str, set[str]] = {}
        """By task: the variables that its input and its transitions read."""
        self._read_of_inputs: set[str] = set()
        self._order = Order([], readers=self._reads)

    def mapped(self) -> dict[str, Any]:
        """Return the workflow as an entry of a pack. A task with a part that is not mapped fails."""
        gaps_before = self.report.recorded
        self.report.found["workflows"] += 1
        self.report.place("workflows", self.name, self.file, 1)
        keys = self._keys
        tasks = keys.take("tasks", [])
        listed = [task for task in tasks if isinstance(task, Mapping)] if isinstance(tasks, list) else []
        self._lists = frozenset(
            str(task.get("name")) for task in listed if task.get("with_items") or task.get("iterate_cache")
        )
        entry: dict[str, Any] = dict(self._head)
        description = keys.take_text("description")
        entry["description"] = entry.get("description") or description or keys.take_text("label")
        for name in ("ref", "name", "pack"):
            keys.take(name)
        if "parameters" not in entry:
            entry["parameters"] = {}
        self._know_parameters(entry["parameters"])
        variables = _pairs(keys.take("vars", {}))
        if variables:
            entry["vars"] = as_written(variables)
            for variable, value in variables.items():
                if as_written(value) != value:
                    keys.gap(
                        "vars", f"the variable {variable}, {value}, which Attune does not render", AS_THERE
                    )
        self._order.tasks = [str(task.get("name")) for task in listed]
        entry["tasks"] = {}
        for task in listed:
            name, mapped = self._task(task)
            entry["tasks"][name] = mapped
        if (output := keys.take("output_map")) is not None:
            entry["output"] = self._output(keys, output, set(variables))
        keys.describe("output", "output_schema")
        keys.refuse("timeout", "Write `timeout`, in seconds, of the workflow.")
        keys.close()
        if len(entry["tasks"]) < len(tasks if isinstance(tasks, list) else [1]):
            keys.gap(
                "tasks",
                f"tasks of workflow {self.name} that are not mappings or share a name",
                "Write them anew.",
            )
        self._cut_circles(entry)
        ways = {
            name: [target for way in task.get("next", ()) for target in way.get("do", ())]
            for name, task in entry["tasks"].items()
        }
        led_to = {target for targets in ways.values() for target in targets}
        for name in sorted(self._order.joins.keys() - led_to):
            keys.gap("tasks", f"join of {name}, to which nothing leads", "It starts at once: remove `join`.")
            del self._order.joins[name], entry["tasks"][name]["join"]
        for subject, by_hand in self._order.gaps(ways):
            keys.gap("tasks", subject, by_hand)
        if self.report.recorded == gaps_before:
            self.report.map("workflows", self.name)
        return entry

    def _task(self, source: Any) -> tuple[str, dict[str, Any]]:
        keys = TakenKeys(self.report, self.file, source, f"a task of workflow {self.name}")
        name = keys.take_text("name")
        keys.subject = f"task {name} of workflow {self.name}"
        task: dict[str, Any] = {}
        broken: list[str] = []
        kind = keys.take("type", "action")
        ref = keys.take_text("action")
        inputs = keys.take("input", {})
        repeated = keys.take("with_items")
        names = {**self._names, **(_ITEM if repeated is not None else {})}
        if kind != "action" or not ref:
            keys.gap("type", f"task {name} of the type {kind}", "Write tasks that come after the same task.")
            broken.append("its type")
        for key, by_hand in (
            ("wait_for", ASK),
            ("iterate_cache", "Let a task read the items, and write `with_items` over its result."),
            ("when", "Write it in `next` of the tasks before it."),
            ("tasks", "Write tasks that come after the same task."),
        ):
            if keys.take(key) not in (None, {}, [], ""):
                keys.gap(key, f"{key} of {keys.subject}", by_hand)
                broken.append(key)
        for key, by_hand in (
            ("permission_set_refs", "Omit it: running code gets no credentials from Penstock."),
            ("worker_selector", "Write `labels` of its action, which workers carry."),
            ("worker_tolerations", "Write `labels` of its action, which workers carry."),
            ("worker_affinity", "Write `labels` of its action, which workers carry."),
            ("trace_tag", "Leave it out: Penstock names traces after actions."),
        ):
            keys.refuse(key, by_hand)
        if repeated is not None:
            task["with_items"] = _as_list(self._one(keys, "with_items", repeated, self._names, broken))
            task["concurrency"] = self._one(
                keys, "concurrency", keys.take("concurrency", 1), self._names, broken
            )
            if (size := keys.take("batch_size")) not in (None, 1):
                task["batch_size"] = size
        else:
            keys.refuse("concurrency", "It has an effect only beside with_items.")
            keys.refuse("batch_size", "It has an effect only beside with_items.")
        task["input"] = self._one(keys, "input", inputs, names, broken)
        keys.refuse(
            "delay", "Attune's scheduler does not read it: if the task should wait, write its `delay`."
        )
        timeout = keys.take("timeout")
        if isinstance(timeout, int | float) and not isinstance(timeout, bool):
            task["timeout"] = timeout
        elif timeout is not None:
            keys.gap("timeout", f"the timeout of {keys.subject} is computed: {timeout}", "Write seconds.")
        if (join := keys.take("join")) is not None:
            task["join"] = self._order.joins[name] = join
        if (retry := keys.take("retry")) is not None:
            task["retry"] = self._retry(keys, retry)
        self._reads.setdefault(name, set()).update(self._read_of_inputs)
        self._read_of_inputs = set()
        if ways := list(self._ways(keys, name, broken)):
            task["next"] = ways
            if repeated is not None:
                keys.gap(
                    "with_items",
                    f"the transitions of {keys.subject}, which runs for each item: in Attune the last ended item decides",
                    "In Penstock one failed item makes the task fail: say with `when` what should follow.",
                )
        keys.close()
        if broken:
            failing = {"action": "fail", "input": {"message": f"to do: {', '.join(broken)} of task {name}"}}
            return name, failing | {key: task[key] for key in ("next", "join") if key in task}
        if ref == "core.noop":
            task = {
                key: value
                for key, value in task.items()
                if key not in ("retry", "timeout", "with_items", "concurrency")
            }
            return name, {"action": "noop", **{key: value for key, value in task.items() if value != {}}}
        self.actions.add(ref)
        task["input"] = self._passed(keys, ref, task["input"])
        return name, {"action": ref, **{key: value for key, value in task.items() if value != {}}}

    # -- transitions ---------------------------------------------------------------------------------------------

    def _ways(self, keys: TakenKeys, name: str, broken: list[str]) -> Iterator[dict[str, Any]]:
        """Yield the transitions of a task. A transition that is taken after a success and after a failure becomes two
        transitions, since only one of them may handle the failure."""
        earlier: set[str] = set()
        """The variables that earlier transitions of the task publish."""
        for number, way in enumerate(self._transitions(keys, name, broken)):
            own = guard(way.when)
            read: set[str] = set()
            told_reasons: set[str] = set()
            self._order.add(name, number, way.when, way.targets, way.published)
            for outcome in outcomes(own):
                failed = outcome == FAILURE
                names = self._expressions({**self._names, **_END}, own=name, after_failure=failed)
                condition = self._when(way, names, len(outcomes(own)) > 1, failed, told_reasons)
                if failed and not way.targets:
                    if way.published:
                        way.keys.gap(
                            "publish",
                            f"task {name} publishes after a failure and leads nowhere",
                            "Attune then fails the workflow: lead to a task that reads the value, or remove the transition.",
                        )
                    continue
                mapped: dict[str, Any] = {"when": condition}
                if published := self._published(way, names, told_reasons):
                    mapped["publish"] = published
                if way.targets:
                    mapped["do"] = way.targets
                self._reads.setdefault(name, set()).update(names.variables)
                read |= names.variables
                if len(mapped) > 1:
                    yield mapped
            for variable in sorted(read & earlier):
                way.keys.gap("when", f"a transition of task {name} reads {variable}, which an earlier transition publishes",
                             "In Attune it sees the new value, in Penstock the previous one: use the published expression in "
                             "the condition.")  # fmt: skip
            earlier |= way.published.keys()

    def _when(
        self, way: _Way, names: AttuneExpressions, is_split: bool, failed: bool, told_reasons: set[str]
    ) -> str:
        outcome = (_NOT_SUCCEEDED if failed else "succeeded()") if is_split else ""
        if way.when is None:
            return outcome
        try:
            ours = names.condition(way.when)
        except NotMapped as error:
            hint = "Write the condition. Until then it never holds."
            _name_once(way, told_reasons, "when", f"`when` of {way.keys.subject}", error, hint)
            return "false"
        if failed and not outcome and ours not in OUTCOMES.values():
            outcome = "not cancelled()"
        return f"{outcome} and {ours}" if outcome else ours

    def _published(self, way: _Way, names: AttuneExpressions, told_reasons: set[str]) -> dict[str, Any]:
        published: dict[str, Any] = {}
        for variable, value in way.published.items():
            try:
                published[variable] = names.template(value)
            except NotMapped as error:
                hint = "Write the expression. Until then it is null."
                subject = f"publish {variable} of {way.keys.subject}"
                _name_once(way, told_reasons, "publish", subject, error, hint)
                published[variable] = None
        self.secrets |= names.secrets
        return published

    def _transitions(self, keys: TakenKeys, name: str, broken: list[str]) -> list[_Way]:
        """Return the transitions that Attune reads: those of `next`, or else those of the older keys."""
        ways = keys.take("next", [])
        transitions: list[_Way] = []
        for source in ways if isinstance(ways, list) else [ways]:
            way = TakenKeys(self.report, self.file, source, f"a transition of task {name}")
            published, targets = _pairs(way.take("publish", {})), _targets(way.take("do", []))
            transitions.append(_Way(way, way.take("when"), published, targets))
            way.close()
        older = self._old_ways(keys, name, broken)
        published = _pairs(keys.take("publish", {}))
        if transitions:
            if older or published:
                keys.gap(
                    "next",
                    f"the keys of task {name} beside `next`, which Attune ignores",
                    "Remove them, or write them into `next`.",
                )
            return transitions
        if published:
            after_success = [way for way in older if "succeeded()" in str(way.when)]
            if not older:
                older.append(_Way(keys, "{{ succeeded() }}", {}, []))
            (after_success or older)[0].published = published
        return older

    def _old_ways(self, keys: TakenKeys, name: str, broken: list[str]) -> list[_Way]:
        """Return the transitions of the older keys: each is a name, or a list of mappings with `when` and `do`."""
        transitions: list[_Way] = []
        for key, word in _OLD:
            value = keys.take(key)
            for entry in value if isinstance(value, list) else [] if value is None else [value]:
                if isinstance(entry, str):
                    transitions.append(_Way(keys, word, {}, [entry]))
                    continue
                way = TakenKeys(self.report, self.file, entry, f"{key} of task {name}")
                when, do = way.take("when"), way.take("do")
                targets = [do] if isinstance(do, str) else do
                way.close()
                if not isinstance(targets, list) or not all(isinstance(target, str) for target in targets):
                    keys.gap(
                        key,
                        f"{key} of task {name} has conditions in conditions",
                        "Write each as an entry of `next`.",
                    )
                    broken.append(key)
                    continue
                if when is not None and word is not None:
                    inner = str(when).strip().removeprefix("{{").removesuffix("}}").strip()
                    when = f"{{{{ {word.strip('{} ')} and ({inner}) }}}}"
                transitions.append(_Way(way, word if when is None else when, {}, targets))
        decision = keys.take("decision", [])
        for entry in decision if isinstance(decision, list) else [decision]:
            way = TakenKeys(self.report, self.file, entry, f"decision of task {name}")
            transitions.append(_Way(way, way.take("when"), {}, _targets(way.take("next", []))))
            if way.take("default") is True:
                way.gap(
                    "default",
                    f"the default branch of the decision of task {name}, which Attune treats like any other branch",
                    "If it should run only when no other branch does, say so in `when`.",
                )
            way.close()
        return transitions

    def _retry(self, outer: TakenKeys, source: Any) -> dict[str, Any]:
        keys = TakenKeys(self.report, self.file, source, f"retry of {outer.subject}")
        count, delay, longest = keys.take("count", 0), keys.take("delay", 0), keys.take("max_delay")
        backoff = keys.take("backoff", "constant")
        keys.refuse(
            "on_error",
            "Attune retries after every error. To retry after some errors only, write `retry_on` with their types.",
        )
        keys.close()
        for key, number in (("count", count), ("delay", delay), ("max_delay", longest)):
            if number is not None and (isinstance(number, bool) or not isinstance(number, int | float)):
                outer.gap("retry", f"{key} of the retry of {outer.subject}: {number}", "Write a number.")
        count, delay = (number if isinstance(number, int | float) else 0 for number in (count, delay))
        if backoff not in _BACKOFF:
            outer.gap("retry", f"backoff {backoff} of {outer.subject}", "Write fixed, linear or exponential.")
        cap = longest if isinstance(longest, int | float) else max(delay, LONGEST_DELAY)
        return {
            "max_attempts": int(count) + 1,
            "initial_delay": min(delay, cap),
            "max_delay": cap,
            "backoff": _BACKOFF.get(str(backoff), "fixed"),
            "jitter": 0,
        }

    def _know_parameters(self, parameters: Mapping[str, Any]) -> None:
        """Note the certain facts about each parameter. In Attune, a parameter that is missing or null has its default."""
        for name, about in parameters.items():
            if about.get("required") is not True:
                about.setdefault("default", None)  # a missing parameter without a default is null
            default, kind = about.get("default"), about.get("type")
            kind = (
                next((entry for entry in kind if entry != "null"), None) if isinstance(kind, list) else kind
            )
            path = f"parameters.{name}"
            if default is not None:
                ours = member("parameters", name)
                self._names[path] = f"({ours} if {ours} is not none else {literal(default).text})"
            if default is not None or about.get("required") is True:
                self._kinds[path] = _KINDS.get(str(kind), "")

    def _expressions(
        self, names: Mapping[str, str], own: str | None = None, after_failure: bool = False
    ) -> AttuneExpressions:
        return AttuneExpressions(names, self._lists, own=own, kinds=self._kinds, after_failure=after_failure)

    def _passed(self, keys: TakenKeys, ref: str, inputs: Any) -> Any:
        """Return the input of a task. Attune gives a task without input the parameters of the workflow, and null stands for
        the default of the action. Record a gap for a value that only Attune passes."""
        schema = self._parameters_of_action(ref)
        defaults = {name: about.get("default") for name, about in (schema or {}).items()}
        if isinstance(inputs, Mapping) and inputs:
            return {name: with_default(value, defaults.get(name)) for name, value in inputs.items()}
        own = self._head.get("parameters") or {}
        if inputs or not own:
            return inputs
        if schema is None:
            keys.gap("input", f"{keys.subject} has no input: Attune passes it the parameters of the workflow",
                     "Pass the parameters of the action in `input`.")  # fmt: skip
            return inputs
        if undeclared := sorted(own.keys() - schema.keys()):
            keys.gap("input", f"{keys.subject} has no input: Attune passes it the parameters of the workflow, "
                     f"{', '.join(undeclared)} among them", UNDECLARED)  # fmt: skip
        passed: dict[str, Any] = {}
        for name in own.keys() & schema.keys():
            if own[name].get("default") not in (None, defaults[name]):
                keys.gap("input", f"{keys.subject} has no input: Attune passes it {name} of the workflow, "
                         "without the workflow's default",
                         "Pass the parameter in `input`.")  # fmt: skip
            else:
                ours = self._names.get(f"parameters.{name}", member("parameters", name))
                passed[name] = with_default(f"{{{{ {ours} }}}}", defaults[name])
        return dict(sorted(passed.items()))

    def _one(self, keys: TakenKeys, key: str, value: Any, names: Mapping[str, str], broken: list[str]) -> Any:
        """Return a value with translated expressions. A task with an expression that is not mapped fails."""
        mapping = self._expressions(names)
        try:
            mapped = mapping.template(value)
        except NotMapped as error:
            keys.gap(
                key, f"{key} of {keys.subject}: {error}", "Write the expression. Until then the task fails."
            )
            broken.append(key)
            return {}
        self.secrets |= mapping.secrets
        self._read_of_inputs |= mapping.variables
        return mapped

    def _templates(self, keys: TakenKeys, key: str, value: Any, names: Mapping[str, str]) -> Any:
        broken: list[str] = []
        return self._one(keys, key, value, names, broken)

    def _output(self, keys: TakenKeys, output: Any, variables: set[str]) -> dict[str, Any]:
        """Return the output. Attune leaves out a key if its expression fails. Here a single path without a value is null, and
        another expression that may fail is a gap."""
        mapped: dict[str, Any] = {}
        for key, value in output.items() if isinstance(output, Mapping) else ():
            names = self._expressions(self._names)
            try:
                text = names.template(value)
            except NotMapped as error:
                hint = "Write the expression. Until then it is null."
                keys.gap("output_map", f"the output {key} of {keys.subject}: {error}", hint)
                mapped[key] = None
                continue
            self.secrets |= names.secrets
            mapped[key] = text
            if not names.variables - variables and "tasks" not in str(text):
                continue
            if _PATH.fullmatch(str(text)):
                mapped[key] = f"{{{{ ({text[3:-3]} | default(none)) }}}}"
                keys.gap(
                    "output_map",
                    f"the output {key}, {value}: Attune omits it if it has no value",
                    NULL_HERE,
                )
            else:
                keys.gap("output_map", f"the output {key}, {value}: Attune omits it if it fails",
                         "In Penstock the workflow then fails: let each branch publish the values that it reads.")  # fmt: skip
        return mapped

    def _cut_circles(self, entry: dict[str, Any]) -> None:
        """Remove transitions that lead back, since a task of Penstock runs once."""
        tasks = entry["tasks"]
        done: set[str] = set()
        path: list[str] = []

        def visit(name: str) -> None:
            path.append(name)
            for way in tasks[name].get("next", []):
                for target in list(way.get("do", [])):
                    if target not in tasks or target in path:
                        why = "leads back" if target in tasks else "leads to a missing task"
                        self._keys.gap(
                            "tasks",
                            f"task {name} of workflow {self.name} {why}: {target}",
                            "A task runs once: write `retry`, with_items, or a durable function (docs/durable.md).",
                        )
                        way["do"].remove(target)
                    elif target not in done:
                        visit(target)
            tasks[name]["next"] = [
                way for way in tasks[name].get("next", []) if way.get("do") or way.get("publish")
            ]
            if not tasks[name]["next"]:
                del tasks[name]["next"]
            path.pop()
            done.add(name)

        for name in tasks:
            if name not in done:
                visit(name)


def _pairs(value: Any) -> dict[str, Any]:
    """Return variables as one mapping. Attune also accepts a list of mappings and names, in which a bare name gets the
    whole result."""
    if isinstance(value, Mapping):
        return {str(name): item for name, item in value.items()}
    pairs: dict[str, Any] = {}
    for entry in value if isinstance(value, list) else [value]:
        if isinstance(entry, Mapping):
            pairs |= {str(name): item for name, item in entry.items()}
        elif entry is not None:
            pairs[str(entry)] = "{{ result() }}"
    return pairs


def _as_list(items: Any) -> Any:
    """Return the items of a task. Attune takes a value that is not a list as the only item."""
    if (
        isinstance(items, str)
        and items.startswith("{{ ")
        and items.endswith(" }}")
        and items.count("{{") == 1
    ):
        ours = items.removeprefix("{{ ").removesuffix(" }}")
        is_list = f"{ours} is sequence and {ours} is not string and {ours} is not mapping"
        return f"{{{{ {ours} if {is_list} else [{ours}] }}}}"
    return items


def _targets(do: Any) -> list[str]:
    return [do] if isinstance(do, str) else [str(target) for target in do or ()]


def _name_once(
    way: _Way, told_reasons: set[str], key: str, subject: str, error: NotMapped, hint: str
) -> None:
    """Record a gap of a transition, unless another transition of the same task has a gap for the same reason."""
    if str(error) not in told_reasons:
        way.keys.gap(key, f"{subject}: {error}", hint)
    told_reasons.add(str(error))
