"""The conversion of an Attune pack to a Penstock pack: actions, workflows, triggers, sensors, rules and policies.

The importer takes each file apart key by key. A part that is not mapped becomes a gap with its line, and so does a file
that was not read.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from penstock.errors import InvalidInput, NotFound
from penstock_import.attune_expressions import AttuneExpressions, constant
from penstock_import.attune_parameters import parameters_of, with_default
from penstock_import.attune_timers import TIMERS, timing
from penstock_import.attune_workflow import ASK, AttuneWorkflow
from penstock_import.marked_yaml import Marked, read
from penstock_import.project import Project, stub
from penstock_import.report import Report
from penstock_import.taken_keys import RENAMED, TakenKeys
from penstock_import.wanted_text import NotMapped, member

_RUN = {
    "python": "python3",
    "shell": "sh",
    "bash": "bash",
    "node": "node",
    "nodejs": "node",
    "ruby": "ruby",
    "perl": "perl",
}
"""The program that runs the entry point of a runner."""
_RULE = {
    "event.payload": "payload",
    "event.id": "event.id",
    "event.created": "event.created_at",
    "event.trigger": "event.trigger",
    "event.trigger_ref": "event.trigger",
}
_ECHO = '''
def core_echo(message: str = "", **more) -> str:
    """Return the message, as Attune's core.echo prints it."""
    return message
'''
_ELSEWHERE = {
    "queues": "Use events and a limit: `penstock publish` for each item, a rule, and Limit(...) of its action.",
    "caches": "Keep the data in its source, and let an action read it.",
    "permission_sets": "Write roles of people: `penstock users`, `penstock tokens`.",
    "dashboards": "deploy/grafana has one, and the pages show the rest.",
    "runtimes": "A worker has the programs that its machine has.",
}
_ENVIRONMENT = re.compile(r"ATTUNE_[A-Z]|\bimport attune\b|\bfrom attune\b|attune-sdk")
"""A pattern for programs that depend on Attune: variables that only its workers set, and its libraries."""
_IGNORED = ("README*", "CHANGELOG*", "LICENSE*", "icon.*", "tests/*", "tests/**/*", ".*")
_TIMEOUT_S = 600
"""Attune's time limit of an action, in seconds, if neither the action nor the task names one."""
_PLACES = {"worker_tolerations", "worker_affinity", "required_worker_runtimes", "runtime_version"}


@dataclass(slots=True)
class AttuneProject(Project):
    """A project with limits, and with the programs of its actions."""

    limits: dict[str, Any] = field(default_factory=dict)
    programs: dict[str, Path] = field(default_factory=dict)
    """The files to copy, by their path in the pack."""

    def write(self, folder: Path, source: str, report: Report) -> None:
        """Write the project into a folder that is empty or does not exist."""
        Project.write(self, folder, source, report)
        if self.limits:
            (folder / "limits.yaml").write_text(
                yaml.safe_dump(self.limits, sort_keys=False, allow_unicode=True)
            )
        for path, file in self.programs.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, folder / path)


class AttunePack:
    """A converter of one pack to a project."""

    def __init__(self, folder: Path) -> None:
        head = folder / "pack.yaml"
        if not head.is_file():
            raise NotFound(f"{folder} has no pack.yaml", hint="Name the folder of one pack of Attune.")
        self._folder = folder
        self.report = Report()
        self._read: set[Path] = {head}
        self._head = TakenKeys(self.report, "pack.yaml", read(head), "the pack")
        self._theirs = self._head.take_text("ref") or folder.name
        self.project = AttuneProject(_name(self._theirs))
        self._words: dict[tuple[str, str], tuple[str, str]] = {}
        """By the kind and the name of a part here: its file, and its name there."""
        if self.project.name != self._theirs:
            self._head.gap(
                "ref", f"the pack {self._theirs} is named {self.project.name} in Penstock", RENAMED
            )
        self._workflows: list[AttuneWorkflow] = []
        self._schemas: dict[str, dict[str, Any]] = {"core_echo": {"message": {"type": "string"}}}
        """By the name of an action here: its parameters."""
        self._workflow_names: set[str] = set()
        """The names of the actions that are workflows."""
        self._limited: dict[str, str] = {}
        """By the scope of a limit: the name of the first policy for it."""

    def mapped(self) -> AttuneProject:
        """Return the project. Its parts refer only to each other."""
        self._manifest()
        for file, source in self._files("triggers"):
            self._trigger(file, source)
        for file, source in self._files("sensors"):
            self._sensor(file, source)
        actions = list(self._files("actions"))
        for file, source in actions:
            self._know_action(file, source)
        for file, source in sorted(actions, key=lambda entry: bool(entry[1].get("workflow_file"))):
            self._action(file, source)
        for file, source in self._files("workflows"):
            self._workflow(file, source, {}, None)
        for workflow in self._workflows:
            for ref in sorted(workflow.actions):
                self._action_of(ref, workflow.file)
        for file, source in self._files("rules"):
            self._rule(file, source)
        policies = [(file, source) for file, source in self._files("policies")]
        for file, source in policies:
            self._policy(file, source)
        for secret in sorted({name for workflow in self._workflows for name in workflow.secrets}):
            self.report.gap("pack.yaml", 1, f"the key {secret}", f"Set it: `penstock secrets set {secret}`.")
        self._left_files()
        return self.project

    # -- the files of a pack -------------------------------------------------------------------------------------

    def _files(self, kind: str) -> Iterator[tuple[str, Marked]]:
        for file in sorted([*self._folder.glob(f"{kind}/*.yaml"), *self._folder.glob(f"{kind}/*.yml")]):
            if file not in self._read:
                self._read.add(file)
                inside = str(file.relative_to(self._folder))
                if (source := self._source(inside, file)) is not None:
                    yield inside, source

    def _source(self, inside: str, file: Path) -> Marked | None:
        """Return the mapping in a file; None for a file that cannot be read, which becomes a gap."""
        try:
            return read(file)
        except InvalidInput as error:
            self.report.gap(inside, 1, f"{inside} cannot be read: {str(error).removeprefix(f'{file}: ')}",
                            "Correct the file, and import again.")  # fmt: skip
            return None

    def _left_files(self) -> None:
        """Record a gap for each file that was not read."""
        ignored = {file for pattern in _IGNORED for file in self._folder.glob(pattern)}
        for file in sorted(self._folder.rglob("*")):
            inside = file.relative_to(self._folder)
            if not file.is_file() or file in self._read or file in ignored or "__pycache__" in inside.parts:
                continue
            by_hand = _ELSEWHERE.get(inside.parts[0], "See what it is for: Penstock does not read it.")
            self.report.found["other files"] += 1
            self.report.gap(str(inside), 1, f"{inside} is not imported", by_hand)

    def _manifest(self) -> None:
        keys = self._head
        for key in ("name", "description"):
            keys.take(key)
        keys.refuse(
            "conf_schema", "Write what is configured as parameters, secrets, or settings of a worker."
        )
        keys.refuse("config", "Write what is configured as parameters, secrets, or settings of a worker.")
        keys.refuse("runtime_deps", "Install these programs on the machines of workers.")
        keys.refuse("dependencies", "Import these packs, too.")
        keys.refuse("worker_selector", "Write `labels` of each action, which workers carry.")
        for key in _PLACES:
            keys.refuse(key, "Write `labels` of each action, which workers carry.")
        if not keys.take_enabled():
            keys.gap("enabled", "the pack is disabled", "Apply the pack once it should run.")
        keys.close()

    # -- triggers and sensors ------------------------------------------------------------------------------------

    def _trigger(self, file: str, source: Marked) -> None:
        keys = TakenKeys(self.report, file, source, f"trigger {source.get('ref')}")
        gaps_before = self.report.recorded
        self.report.found["triggers"] += 1
        name = self._own(keys, "trigger")
        self.report.place("triggers", name, file, 1)
        kind = keys.take("type", "custom")
        schema = keys.take("payload_schema") or keys.take("output") or keys.take("out_schema")
        keys.take("payload_schema")
        keys.take("output")
        keys.take("out_schema")
        self.project.triggers[name] = _described(keys) | (
            {"schema": _schema(schema)} if _is_schema(schema) else {}
        )
        if kind == "webhook":
            keys.gap(
                "type", f"trigger {name} is a webhook", f"penstock webhooks set {self.project.name}.{name}"
            )
        elif kind not in ("custom", "sensor"):
            keys.gap(
                "type",
                f"trigger {name} of the type {kind}",
                "Write a timer as a schedule; let any other source publish events.",
            )
        for key in ("parameters_schema", "param_schema", "parameters", "webhook_enabled"):
            keys.refuse(key, "A rule checks the payload with a condition in `when`.")
        for key in ("reference_visibility", "reference_allowed_pack_refs"):
            keys.refuse(key, "Any pack of an installation may have rules for it.")
        if not keys.take_enabled():
            keys.gap("enabled", f"trigger {name} is disabled", "Retire it: `penstock retire`.")
        keys.close()
        self._count("triggers", name, gaps_before)

    def _sensor(self, file: str, source: Marked) -> None:
        keys = TakenKeys(self.report, file, source, f"sensor {source.get('ref')}")
        self.report.found["sensors"] += 1
        name = self._own(keys, None)
        description = keys.take_text("description") or keys.take_text("label")
        entry, runner = keys.take_text("entry_point"), keys.take_text("runner_type")
        interval, is_enabled = keys.take("poll_interval"), keys.take_enabled()
        triggers = keys.take("trigger_types") or keys.take("trigger_type") or []
        keys.take("trigger_type")
        for key in ("parameters", "log_retention_policy", "log_retention_limit", "config"):
            keys.refuse(key, "Write it into the function of the poll trigger.")
        keys.close()
        self._mark(f"sensors/{entry}")
        for ref in [triggers] if isinstance(triggers, str) else triggers:
            pack, _, word = str(ref).rpartition(".")
            if pack not in ("", self._theirs):
                keys.gap(
                    "trigger_types", f"sensor {name} fires {ref} of another pack", "Import that pack, too."
                )
                continue
            trigger = self.project.triggers.setdefault(_name(word), {"description": description})
            if not is_enabled:
                continue
            function = f"poll_{_name(word)}"
            every = interval if isinstance(interval, int | float) and interval > 0 else 60
            source_text = f"def {function}(state):\n    raise NonRetryable({f'to do: look as the sensor {name} did'!r})\n"
            trigger["poll"] = {"every": every, **self.project.function(function, source_text)}
        self.report.gap(
            file,
            keys.source.line("entry_point"),
            f"sensor {name}: {runner} {entry}",
            f"Move what it looks for into its function in {self.project.module}.py, which returns a list of payloads"
            + ("." if interval else "; it had no poll_interval, and is called each minute.")
            + ("" if is_enabled else " It was disabled: write `poll` of its triggers once it should run."),
        )

    # -- actions -------------------------------------------------------------------------------------------------

    def _know_action(self, file: str, source: Marked) -> None:
        """Note the parameters of an action, before a workflow or a rule passes values to it."""
        keys = TakenKeys(Report(), file, source, "")
        name = _name((keys.take_text("ref") or keys.take_text("name")).rpartition(".")[2])
        self._schemas[name] = parameters_of(keys)
        if source.get("workflow_file"):
            self._workflow_names.add(name)

    def _action(self, file: str, source: Marked) -> None:
        keys = TakenKeys(self.report, file, source, f"action {source.get('ref') or source.get('name')}")
        gaps_before = self.report.recorded
        name = self._own(keys, "action")
        graph = keys.take_text("workflow_file")
        is_enabled = keys.take_enabled()
        head = _described(keys) | {"parameters": parameters_of(keys, is_of_workflow=bool(graph))}
        if not is_enabled:
            keys.gap("enabled", f"action {name} is disabled, and Attune fails each of its executions",
                     "It also fails in Penstock. To let it run, write `enabled: true` and import again.")  # fmt: skip
            self.report.found["workflows" if graph else "actions"] += 1
            self.project.actions[name] = head | self.project.function(
                name, stub(name, f"{name}, which is disabled")
            )
            self._mark(f"actions/{graph or source.get('entry_point')}")
            return
        if graph:
            if "parameters" not in source:
                head.pop("parameters")
            keys.describe("output", "output_schema")
            keys.refuse(
                "default_execution_permission_set_refs",
                "Omit it: running code gets no credentials from Penstock.",
            )
            keys.close()
            path = (self._folder / "actions" / graph).resolve()
            if not path.is_file() or not path.is_relative_to(self._folder.resolve()):
                keys.gap("workflow_file", f"{graph} of {name} is not in the pack", "Write the workflow.")
                return
            self._read.add(self._folder / path.relative_to(self._folder.resolve()))
            inside = str(path.relative_to(self._folder.resolve()))
            if (graph_source := self._source(inside, path)) is not None:
                self._workflow(inside, graph_source, head, name)
            return
        self.report.found["actions"] += 1
        self.report.place("actions", name, file, 1)
        self.project.actions[name] = head | self._program(keys, name)
        self.project.actions[name]["timeout"] = keys.take("timeout_seconds", _TIMEOUT_S)
        keys.refuse(
            "timeout",
            f"Attune reads only `timeout_seconds`. In both systems this action has {self.project.actions[name]['timeout']} s: "
            "if that is wrong, write `timeout` of the action.",
        )
        self.project.actions[name]["on_worker_loss"] = "fail"
        labels = keys.take("worker_selector", {})
        if labels:
            self.project.actions[name]["labels"] = {str(key): str(value) for key, value in labels.items()}
        for key in _PLACES:
            keys.refuse(key, "Write `labels`, which workers carry.")
        keys.describe("output", "output_schema")  # only described, since Attune checks no result against it
        for key in ("log_retention_policy", "log_retention_limit"):
            keys.refuse(key, "PENSTOCK_LOG_RETENTION_DAYS holds for all logs.")
        keys.refuse(
            "default_execution_permission_set_refs",
            "Omit it: running code gets no credentials from Penstock.",
        )
        keys.close()
        self._count("actions", name, gaps_before)

    def _program(self, keys: TakenKeys, name: str) -> dict[str, Any]:
        """Return the keys that name the program of an action, or a function that is to be written by hand."""
        runner, entry = (
            keys.take_text("runner_type") or keys.take_text("runtime"),
            keys.take_text("entry_point"),
        )
        keys.take("runtime")
        delivery, form = keys.take("parameter_delivery", "stdin"), keys.take("parameter_format", "json")
        output = keys.take("output_format", "text")
        path = self._folder / "actions" / entry
        self._mark(f"actions/{entry}")
        why = None
        if runner not in _RUN:
            why = f"of the runner {runner}"
        elif not entry or not path.is_file() or not path.resolve().is_relative_to(self._folder.resolve()):
            why = f"whose entry point {entry} is not in the pack"
        elif (delivery, form) != ("stdin", "json"):
            why = f"that gets its parameters as {form} by {delivery}"
        elif output not in ("json", "text"):
            why = f"that gives {output}"
        if why is None:
            self.project.programs[f"programs/{entry}"] = path
            if _ENVIRONMENT.search(path.read_text(errors="replace")):
                keys.gap(
                    "entry_point",
                    f"{entry} of action {name} reads Attune's environment or its SDK",
                    "Let it read its parameters as JSON from standard input, and print its result.",
                )
            return {"command": [_RUN[runner], f"programs/{entry}"], "options": {"output": output}}
        keys.gap(
            "runner_type",
            f"action {name} {why}",
            f"Let a program read JSON from standard input, or write the function {name} of {self.project.module}.py.",
        )
        return self.project.function(name, stub(name, f"{runner} {entry}".strip()))

    def _action_of(self, ref: str, file: str) -> None:
        """Add an action that a workflow or a rule runs and the pack does not have, so that the project is complete by itself.
        It takes any parameters."""
        pack, _, word = ref.rpartition(".")
        is_own = pack in ("", self._theirs)
        name = _name(word) if is_own else self._foreign(ref)
        if name in self.project.actions or name in self.project.workflows:
            return
        if ref == "core.echo":
            self.project.actions[name] = self.project.function(name, _ECHO) | {
                "parameters": {"message": {"type": "string"}}
            }
            return
        if is_own:
            self.report.gap(file, 1, f"the action {ref} is not in the pack", "Write it.")
        elif ref == "core.ask":
            self.report.gap(file, 1, f"the action {ref} of Attune itself", ASK)
        else:
            self.report.gap(
                file, 1, f"the action {ref} of another pack", f"Import that pack, or write {name}."
            )
        self.project.actions[name] = self.project.function(name, stub(name, ref))

    def _foreign(self, ref: str) -> str:
        return _name(ref.replace(".", "_"))

    # -- workflows -----------------------------------------------------------------------------------------------

    def _workflow(self, file: str, source: Marked, head: dict[str, Any], name: str | None) -> None:
        ref = str(source.get("ref") or source.get("name") or Path(file).name.partition(".")[0])
        if name is None:
            name = _name(ref.rpartition(".")[2])
            keys = TakenKeys(self.report, file, source, f"workflow {name}")
            self._note_name(keys, "action", ref.rpartition(".")[2], "ref" if source.get("ref") else "name")
        if "parameters" in source and "parameters" not in head:
            keys = TakenKeys(self.report, file, {"parameters": source["parameters"]}, f"workflow {name}")
            head = {**head, "parameters": parameters_of(keys, is_of_workflow=True)}
            lines = source.lines
            source = Marked({key: value for key, value in source.items() if key != "parameters"})
            source.lines = lines
        workflow = AttuneWorkflow(self.report, file, source, name, head, self._parameters_of_action)
        body = workflow.mapped()
        for task in body["tasks"].values():
            action = task.get("action")
            if action not in (None, "noop", "fail"):
                task["action"] = self._ref(action)
        self.project.workflows[name] = body
        self._workflows.append(workflow)

    def _parameters_of_action(self, ref: str) -> Mapping[str, Any] | None:
        """Return the parameters of an action by its ref; None if they are not known."""
        return self._schemas.get(self._ref(ref).rpartition(".")[2])

    def _ref(self, ref: str) -> str:
        """Return Penstock's ref of an action. The name of an action from another pack begins with the name of that
        pack."""
        pack, _, word = ref.rpartition(".")
        return f"{self.project.name}.{_name(word) if pack in ('', self._theirs) else self._foreign(ref)}"

    # -- rules and policies --------------------------------------------------------------------------------------

    def _rule(self, file: str, source: Marked) -> None:
        keys = TakenKeys(self.report, file, source, f"rule {source.get('ref')}")
        gaps_before = self.report.recorded
        name = self._own(keys, "rule")
        trigger, action = keys.take_text("trigger_ref"), keys.take_text("action_ref")
        kind = "schedules" if trigger in TIMERS else "rules"
        self.report.found[kind] += 1
        self.report.place(kind, name, file, 1)
        enabled, description = keys.take_enabled(), _described(keys)
        mapping = AttuneExpressions(_RULE)
        schema = self._parameters_of_action(action) or {}
        try:
            params = {
                key: with_default(value, schema.get(key, {}).get("default"))
                for key, value in mapping.paths(keys.take("action_params", {})).items()
            }
        except NotMapped as error:
            keys.gap(
                "action_params",
                f"action_params of rule {name}: {error}",
                "Write the value. Until then the rule is disabled.",
            )
            params, enabled = {}, False
        self._action_of(action, file)
        rule: dict[str, Any] = {**description, "action": self._ref(action), "params": params}
        times = keys.take("trigger_params", {})
        when, mapped = self._conditions(keys, mapping)
        enabled = enabled and mapped
        if enabled is not True:
            rule["enabled"] = False
        if trigger in TIMERS:
            self._timer(keys, name, rule, trigger, times, when)
        else:
            if times:
                keys.gap(
                    "trigger_params",
                    f"trigger_params of rule {name}",
                    "Write them into the event's source.",
                )
            pack, _, word = trigger.rpartition(".")
            if pack not in ("", self._theirs):
                keys.gap(
                    "trigger_ref",
                    f"rule {name} is for {trigger} of another pack",
                    "Publish such events, or import that pack.",
                )
                self.project.triggers.setdefault(
                    self._foreign(trigger), {"description": f"Stands for {trigger}."}
                )
                rule["trigger"] = self._foreign(trigger)
            else:
                rule["trigger"] = _name(word)
                self.project.triggers.setdefault(_name(word), {})
            if when is not None:
                rule["when"] = when
            self.project.rules[name] = rule
        keys.close()
        self._count(kind, name, gaps_before)

    def _timer(
        self, keys: TakenKeys, name: str, rule: dict[str, Any], trigger: str, times: Any, when: str | None
    ) -> None:
        """Convert a rule for a timer to a schedule."""
        if when is not None or _uses_event(rule["params"]):
            keys.gap(
                "conditions",
                f"rule {name} reads the events of a timer",
                "Check `scheduled_time` in the action instead.",
            )
            rule["enabled"], rule["params"] = False, {}
        try:
            self.project.schedules[name] = {**rule, **timing(trigger, times)}
        except NotMapped as error:
            keys.gap("trigger_params", f"the timer of rule {name}: {error}", "Write it as a schedule.")

    def _conditions(self, keys: TakenKeys, mapping: AttuneExpressions) -> tuple[str | None, bool]:
        """Return the condition of a rule (None: it has none), and whether the whole condition was mapped."""
        conditions = keys.take("conditions")
        try:
            if not conditions:
                return None, True
            if isinstance(conditions, str):
                raise NotMapped("a bare text, with which the rule never matches in Attune")
            if isinstance(conditions, Mapping):
                if conditions.keys() != {"expression"}:
                    raise NotMapped(", ".join(map(str, conditions)))
                return mapping.criteria(conditions["expression"]), True
            return " and ".join(_criterion(entry) for entry in conditions), True
        except NotMapped as error:
            keys.gap(
                "conditions",
                f"conditions of {keys.subject}: {error}",
                "Write `when`. Until then the rule is disabled.",
            )
            return None, False

    def _policy(self, file: str, source: Marked) -> None:
        keys = TakenKeys(self.report, file, source, f"policy {source.get('ref')}")
        gaps_before = self.report.recorded
        self.report.found["policies"] += 1
        name = self._own(keys, "policy")
        self.report.place("limits", name, file, 1)
        is_in_force = keys.take_enabled()
        limit: dict[str, Any] = _described(keys)
        action = keys.take_text("action_ref")
        keys.take("pack_ref")
        keys.refuse("scope", "Attune reads only `action_ref`: if the policy is for one action, write it.")
        limit["scope"] = self._ref(action)
        if not action:
            keys.gap(
                "pack_ref" if source.get("pack_ref") else "ref",
                f"policy {name} is for each action of the pack that has no policy of its own",
                "In Attune each action has its own limit: write a limit for each action.",
            )
            is_in_force = False
        elif limit["scope"].rpartition(".")[2] in self._workflow_names:
            keys.gap(
                "action_ref",
                f"policy {name} is for the workflow {action}, and Attune enforces no policy for workflows",
                "If the workflow should have the limit, write it.",
            )
            is_in_force = False
        elif limit["scope"].rpartition(".")[2] not in self.project.actions:
            keys.gap(
                "action_ref",
                f"policy {name} is for {action}, which is not in the pack",
                "Write it in the pack of that action.",
            )
            is_in_force = False
        if limit["scope"] in self._limited and is_in_force:
            keys.gap(
                "action_ref",
                f"policy {name} has the same scope as {self._limited[limit['scope']]}",
                "Attune applies only one of them, Penstock both: leave one out.",
            )
        if is_in_force:
            self._limited.setdefault(limit["scope"], name)
        keys.refuse("priority", "In Penstock all limits of an execution hold at once.")
        concurrency = TakenKeys(
            self.report, file, keys.take("concurrency", {}), f"concurrency of policy {name}"
        )
        maximum, method = concurrency.take("limit"), concurrency.take("method")
        if (maximum is None) != (method is None) or not _is_count(maximum):
            keys.gap(
                "concurrency",
                f"concurrency of policy {name}, with the limit {maximum!r} and the method {method!r}",
                "Attune loads no such policy: it requires a number above 0 and a method. If a limit is intended, write both.",
            )
            is_in_force = False
        elif maximum is not None:
            limit["max"] = maximum
            limit["when_full"] = {"enqueue": "enqueue", "cancel": "cancel_new"}.get(str(method), "enqueue")
        if method not in (None, "enqueue", "cancel"):
            concurrency.gap("method", f"method {method} of policy {name}", "Write when_full.")
        if parameters := concurrency.take("parameters"):
            limit["by"] = [str(parameter) for parameter in parameters]
            undeclared = [
                path for path in limit["by"] if path not in (self._parameters_of_action(action) or ())
            ]
            if undeclared:
                concurrency.gap(
                    "parameters",
                    f"policy {name} groups by {', '.join(undeclared)}, which {action} does not declare as a parameter",
                    "Write a limit by a parameter of the action.",
                )
                is_in_force = False
        concurrency.close()
        rate = TakenKeys(self.report, file, keys.take("rate_limit", {}), f"rate_limit of policy {name}")
        count, window = rate.take("max_executions"), rate.take("window_seconds")
        if (count is None) != (window is None) or not _is_count(count) or not _is_count(window):
            keys.gap(
                "rate_limit",
                f"rate_limit of policy {name}, of {count!r} executions in {window!r} seconds",
                "Attune loads no such policy: it requires two numbers above 0. If a limit is intended, write both.",
            )
            is_in_force = False
        elif count is not None:
            limit["rate"] = f"{count}/{window}s"
            rate.gap(
                "max_executions",
                f"rate of policy {name}",
                "In Penstock executions above the rate wait: check that this is right.",
            )
        rate.close()
        keys.refuse(
            "quotas", "Write a limit with `max` for concurrent executions: Penstock does not limit a total."
        )
        keys.close()
        if not is_in_force:
            keys.gap("enabled", f"policy {name} is not in force", "The import omits it.")
        elif "max" in limit or "rate" in limit:
            self.project.limits[name] = limit
        self._count("policies", name, gaps_before)

    # -- names, keys and reports ---------------------------------------------------------------------------------

    def _own(self, keys: TakenKeys, kind: str | None) -> str:
        """Return the name of a part, from its ref or its name. `kind` is None for a part that is only read for other
        parts."""
        ref, name = keys.take_text("ref"), keys.take_text("name")
        word = (ref or name).rpartition(".")[2]
        if kind is not None:
            self._note_name(keys, kind, word, "ref" if ref else "name")
        return _name(word)

    def _note_name(self, keys: TakenKeys, kind: str, word: str, key: str) -> None:
        """Record a gap for a part that gets another name in Penstock, and for the second of two parts with one name."""
        ours = _name(word)
        if word and word != ours:
            keys.gap(key, f"the {kind} {word} is named {ours} in Penstock", RENAMED)
        if self._words.setdefault((kind, ours), (keys.file, word)) != (keys.file, word):
            keys.gap(
                key,
                f"two of the kind {kind} become {ours}",
                "Rename one of them: the second one replaces the first.",
            )

    def _mark(self, inside: str) -> None:
        self._read.add(self._folder / inside)

    def _count(self, kind: str, name: str, gaps_before: int) -> None:
        if self.report.recorded == gaps_before:
            self.report.map(kind, name)


def _name(text: str) -> str:
    word = re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")
    return word if word[:1].isalpha() else f"p_{word}"


def _described(keys: TakenKeys) -> dict[str, Any]:
    """Return the description of a part; its label if it has no description."""
    description = keys.take_text("description")
    return {"description": description} if description else {"description": keys.take_text("label")}


def _is_schema(schema: Any) -> bool:
    return isinstance(schema, Mapping) and bool(schema)


def _schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema as it is: a JSON Schema, or parameters that are listed one by one."""
    return {str(key): value for key, value in schema.items()}


def _criterion(entry: Any) -> str:
    """Return one entry of a list of conditions as a Penstock condition. Raises NotMapped for a part without an
    equivalent in Penstock."""
    if not isinstance(entry, Mapping) or not {"field", "operator"} <= entry.keys() <= {
        "field",
        "operator",
        "value",
    }:
        raise NotMapped(str(entry))
    operator, steps = str(entry["operator"]), str(entry["field"]).split(".")
    if operator not in ("equals", "not_equals", "contains") or not all(steps):
        raise NotMapped(str(entry))
    field = "payload"
    for step in steps:
        field = member(field, step)
    expected = entry.get("value")
    value = constant(expected)
    if operator == "contains":  # Attune's `contains` accepts only texts
        return f"({field} is string and {value} in {field})" if isinstance(expected, str) else "false"
    return _equal(field, expected, value, is_negated=operator == "not_equals")


def _equal(field: str, expected: Any, value: str, *, is_negated: bool) -> str:
    """Write a comparison of JSON values. In Attune, a truth value is not a number, and `1` is not `1.0`."""
    if isinstance(expected, str) or expected is None:
        return f"({field} {'!=' if is_negated else '=='} {value})"
    if isinstance(expected, list):
        raise NotMapped(f"a comparison with {expected}, whose numbers and truth values differ in Attune")
    kind = "boolean" if isinstance(expected, bool) else "integer" if isinstance(expected, int) else "float"
    equal = f"{field} is {kind} and {field} == {value}"
    return f"(not ({equal}))" if is_negated else f"({equal})"


def _is_count(value: Any) -> bool:
    return value is None or (isinstance(value, int) and not isinstance(value, bool) and value > 0)


def _uses_event(params: Any) -> bool:
    return "payload" in str(params) or "event." in str(params)
