"""Workflows of Attune: their tasks with `next`, and the older `on_success` and the like, as tasks of ours."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from penstock.cli.imports.attune_expressions import AttuneExpressions, NotMapped
from penstock.cli.imports.report import Report
from penstock.cli.imports.taken_keys import TakenKeys, open_gaps

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
_OLD = (
    ("on_success", "succeeded()"),
    ("on_failure", "failed()"),
    ("on_timeout", "timed_out()"),
    ("on_complete", True),
)
_BACKOFF = {"constant": "fixed", "linear": "linear", "exponential": "exponential"}
LONGEST_DELAY = 86_400
"""Seconds: the cap of a delay where Attune names none, and ours would be a minute."""
_WAIT = (
    "Write a task `inquiry: {prompt: ..., schema: ..., timeout: ...}` before it, whose result is the answer: "
    "docs/how-to/approvals.md."
)


class AttuneWorkflow:
    """Maps one workflow. `head` is what its action says of it: parameters, description."""

    def __init__(self, report: Report, file: str, source: Any, name: str, head: Mapping[str, Any]) -> None:
        self.report = report
        self.file = file
        self.name = name
        self._keys = TakenKeys(report, file, source, f"workflow {name}")
        self._head = dict(head)
        self.actions: set[str] = set()
        """Refs of the actions that its tasks run."""
        self.secrets: set[str] = set()
        self._lists: frozenset[str] = frozenset()

    def mapped(self) -> dict[str, Any]:
        """Return the workflow as an entry of a pack. A part that is not mapped makes its task fail."""
        gaps_before = open_gaps(self.report)
        self.report.found["workflows"] += 1
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
        variables = _merged(keys.take("vars", {}))
        if variables:
            entry["vars"] = self._templates(keys, "vars", variables, {"parameters": "parameters"})
        entry["tasks"] = {}
        for task in listed:
            name, mapped = self._task(task)
            entry["tasks"][name] = mapped
        if (output := keys.take("output_map")) is not None:
            entry["output"] = self._templates(keys, "output_map", output, _NAMES)
        keys.refuse("output_schema", "What a workflow gives is written as `output`.")
        keys.refuse("output", "What a workflow gives is written as `output`.")
        keys.refuse("timeout", "Write `timeout`, in seconds, of the workflow.")
        keys.close()
        if len(entry["tasks"]) < len(tasks if isinstance(tasks, list) else [1]):
            keys.gap(
                "tasks",
                f"tasks of workflow {self.name} that are no mappings, or have one name",
                "Write them anew.",
            )
        self._cut_circles(entry)
        if open_gaps(self.report) == gaps_before:
            self.report.mapped["workflows"] += 1
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
        names = {**_NAMES, **(_ITEM if repeated is not None else {})}
        if kind != "action" or not ref:
            keys.gap("type", f"task {name} of the type {kind}", "Write tasks that come after the same task.")
            broken.append("its type")
        for key, by_hand in (
            ("wait_for", _WAIT),
            ("iterate_cache", "Let a task read what there is, and write `with_items` over its result."),
            ("when", "Write it in `next` of the tasks before it."),
            ("tasks", "Write tasks that come after the same task."),
        ):
            if keys.take(key) not in (None, {}, [], ""):
                keys.gap(key, f"{key} of {keys.subject}", by_hand)
                broken.append(key)
        for key, by_hand in (
            ("permission_set_refs", "Code that runs has no credential of ours: leave it out."),
            ("worker_selector", "Write `labels` of its action, which workers carry."),
            ("worker_tolerations", "Write `labels` of its action, which workers carry."),
            ("worker_affinity", "Write `labels` of its action, which workers carry."),
            ("trace_tag", "Traces are named by actions: leave it out."),
        ):
            keys.refuse(key, by_hand)
        if repeated is not None:
            task["with_items"] = self._one(keys, "with_items", repeated, _NAMES, broken)
            task["concurrency"] = self._one(keys, "concurrency", keys.take("concurrency", 1), _NAMES, broken)
            if (size := keys.take("batch_size")) not in (None, 1):
                task["batch_size"] = size
        else:
            keys.refuse("concurrency", "It goes with with_items.")
            keys.refuse("batch_size", "It goes with with_items.")
        task["input"] = self._one(keys, "input", inputs, names, broken)
        if (delay := keys.take("delay")) not in (None, 0):
            task["delay"] = self._one(keys, "delay", delay, names, broken)
        if (timeout := keys.take("timeout")) is not None:
            task["timeout"] = timeout
        if (join := keys.take("join")) is not None:
            task["join"] = join
        if (retry := keys.take("retry")) is not None:
            task["retry"] = self._retry(keys, retry)
        publish = _merged(keys.take("publish", {}))
        if publish:
            task["publish"] = self._one(keys, "publish", publish, {**names, **_END}, broken, own=name)
        ways = [*self._ways(keys, name, broken), *self._old_ways(keys, name, broken)]
        if ways:
            task["next"] = ways
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
        return name, {"action": ref, **{key: value for key, value in task.items() if value != {}}}

    def _ways(self, keys: TakenKeys, name: str, broken: list[str]) -> Iterator[dict[str, Any]]:
        ways = keys.take("next", [])
        for source in ways if isinstance(ways, list) else [ways]:
            way = TakenKeys(self.report, self.file, source, f"a transition of task {name}")
            when = way.take("when")
            mapped: dict[str, Any] = {"when": True}
            try:
                if when is not None:
                    mapped["when"] = self._expressions({**_NAMES, **_END}).condition(when)
            except NotMapped as error:
                way.gap(
                    "when",
                    f"`when` of task {name}: {error}",
                    "Write the condition; until then it never holds.",
                )
                mapped["when"] = "false"
            if publish := _merged(way.take("publish", {})):
                mapped["publish"] = self._one(way, "publish", publish, {**_NAMES, **_END}, broken, own=name)
            do = way.take("do", [])
            mapped["do"] = [do] if isinstance(do, str) else [str(target) for target in do]
            way.close()
            if mapped["do"] or mapped.get("publish"):
                yield {key: value for key, value in mapped.items() if value not in ([], {})}

    def _old_ways(self, keys: TakenKeys, name: str, broken: list[str]) -> Iterator[dict[str, Any]]:
        """The transitions of `on_success` and the like: a name, or a list of mappings with `when` and `do`."""
        for key, word in _OLD:
            value = keys.take(key)
            for entry in value if isinstance(value, list) else [] if value is None else [value]:
                if isinstance(entry, str):
                    yield {"when": word, "do": [entry]}
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
                try:
                    ours = (
                        self._expressions({**_NAMES, **_END}).condition(when) if when is not None else "true"
                    )
                except NotMapped as error:
                    keys.gap(
                        key,
                        f"{key} of task {name}: {error}",
                        "Write the condition; until then it never holds.",
                    )
                    ours = "false"
                yield {"when": ours if word is True else f"{word} and {ours}", "do": targets}
        if keys.take("decision") is not None:
            keys.gap("decision", f"decision of task {name}", "Write each branch as an entry of `next`.")
            broken.append("decision")

    def _retry(self, outer: TakenKeys, source: Any) -> dict[str, Any]:
        keys = TakenKeys(self.report, self.file, source, f"retry of {outer.subject}")
        count, delay, longest = keys.take("count", 0), keys.take("delay", 0), keys.take("max_delay")
        backoff = keys.take("backoff", "constant")
        keys.refuse("on_error", "Write `retry_on` with types of errors.")
        keys.close()
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

    def _expressions(self, names: Mapping[str, str]) -> AttuneExpressions:
        return AttuneExpressions(names, self._lists)

    def _one(
        self,
        keys: TakenKeys,
        key: str,
        value: Any,
        names: Mapping[str, str],
        broken: list[str],
        own: str | None = None,
    ) -> Any:
        """Return a value with its expressions mapped. An expression that is not mapped makes its task fail. `own` is the
        task that has the result."""
        mapping = self._expressions(names)
        try:
            if own in self._lists and "result" in str(value):
                raise NotMapped("result() of a task with items")
            mapped = mapping.template(value)
        except NotMapped as error:
            keys.gap(
                key, f"{key} of {keys.subject}: {error}", "Write the expression; until then the task fails."
            )
            broken.append(key)
            return {}
        self.secrets |= mapping.secrets
        return mapped

    def _templates(self, keys: TakenKeys, key: str, value: Any, names: Mapping[str, str]) -> Any:
        broken: list[str] = []
        return self._one(keys, key, value, names, broken)

    def _cut_circles(self, entry: dict[str, Any]) -> None:
        """Take out transitions that lead back: a task runs once here."""
        tasks = entry["tasks"]
        done: set[str] = set()
        path: list[str] = []

        def visit(name: str) -> None:
            path.append(name)
            for way in tasks[name].get("next", []):
                for target in list(way.get("do", [])):
                    if target not in tasks or target in path:
                        why = "leads back" if target in tasks else "leads to a task that is not there"
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


def _merged(value: Any) -> Any:
    """Return variables as one mapping: Attune also writes a list of mappings of one."""
    if isinstance(value, list) and all(isinstance(entry, Mapping) for entry in value):
        return {str(name): item for entry in value for name, item in entry.items()}
    return value
