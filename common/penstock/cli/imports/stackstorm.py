"""A pack of StackStorm as a pack of ours: actions, triggers, rules and Orquesta workflows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from penstock.cli.imports import known_keys, stackstorm_rules
from penstock.cli.imports.known_keys import name_left
from penstock.cli.imports.marked_yaml import Marked, read
from penstock.cli.imports.orquesta import Orquesta
from penstock.cli.imports.orquesta_expressions import NotMapped
from penstock.cli.imports.project import Project, stub
from penstock.cli.imports.report import Report
from penstock.cli.imports.stackstorm_runners import BUILT_IN, runner_parameters
from penstock.errors import NotFound

_KEPT = known_keys.PARAMETER.mapped
_ELSEWHERE = {
    "aliases": ("a chat command", "There is no ChatOps: have the bot call `penstock run`, or a webhook."),
    "policies": ("a policy", "Write it as `limits` or `retry` of the action."),
    "sensors": (
        "a sensor",
        "Write it as a poll trigger (docs/poll-triggers.md), or have its source publish events.",
    ),
}


class StackStormPack:
    """Maps one pack into a project."""

    def __init__(self, folder: Path) -> None:
        head = folder / "pack.yaml"
        if not head.is_file():
            raise NotFound(f"{folder} has no pack.yaml", hint="Name the folder of one pack of StackStorm.")
        about = read(head)
        self._folder = folder
        self.report = Report()
        self.project = Project(_name(about.get("ref") or about.get("name") or folder.name))
        self._theirs = str(about.get("ref") or about.get("name") or folder.name)
        self._orquesta: list[tuple[str, Marked]] = []
        self._of_runners: dict[str, frozenset[str]] = {}

    def mapped(self) -> Project:
        for file, source in self._files("triggers"):
            name_left(self.report, file, source, known_keys.TRIGGER, f"trigger {source.get('name')}")
            self._trigger(source)
        for kind, (label, by_hand) in _ELSEWHERE.items():
            for file, source in self._files(kind):
                self.report.found[kind] += 1
                self.report.gap(
                    file, 1, f"{label}: {source.get('class_name') or source.get('name')}", by_hand
                )
                for trigger in source.get("trigger_types") or []:
                    self._trigger(trigger)
        for file, source in self._files("actions"):
            self._action(file, source)
        for file, source in self._orquesta:
            self._workflow(file, source)
        for file, source in self._files("rules"):
            self._rule(file, source)
        for definition in (*self.project.rules.values(), *self.project.schedules.values()):
            self._take(definition["action"], definition.get("params") or {})
        for task in (
            task for definition in self.project.workflows.values() for task in definition["tasks"].values()
        ):
            if isinstance(inputs := task.get("input"), dict) and "action" in task:
                self._take(task["action"], inputs)
        return self.project

    def _take(self, ref: str, params: dict[str, Any]) -> None:
        """Take over the parameters of the runner beside those that the action declares."""
        for name in self._of_runners.get(ref, frozenset()) & params.keys():
            self.project.actions[ref.rpartition(".")[2]]["parameters"].setdefault(name, {})

    def _files(self, kind: str) -> Iterator[tuple[str, Marked]]:
        for file in sorted([*self._folder.glob(f"{kind}/*.yaml"), *self._folder.glob(f"{kind}/*.yml")]):
            yield str(file.relative_to(self._folder)), read(file)

    def _trigger(self, source: Marked) -> None:
        self.report.found["triggers"] += 1
        self.report.mapped["triggers"] += 1
        schema = source.get("payload_schema")
        trigger = {"schema": _whole(schema)} if _is_schema(schema) else {}
        self.project.triggers[_name(str(source.get("name")))] = _described(source) | trigger

    def _action(self, file: str, source: Marked) -> None:
        runner, name = source.get("runner_type"), _name(str(source.get("name")))
        name_left(self.report, file, source, known_keys.ACTION, f"action {name}")
        if runner == "orquesta":
            self.report.found["workflows"] += 1
            self._orquesta.append((file, source))
            return
        self.report.found["actions"] += 1
        self.project.actions[name] = self._run(file, source, name) | {
            "description": source.get("description") or "",
            "parameters": self._parameters(file, source),
        }
        self._of_runners[f"{self.project.name}.{name}"] = runner_parameters(str(runner))

    def _run(self, file: str, source: Marked, name: str) -> dict[str, Any]:
        """Return the keys that say what the action runs."""
        runner, entry = source.get("runner_type"), source.get("entry_point") or ""
        fixed = (source.get("parameters") or {}).get("cmd")
        fixed = fixed.get("default") if isinstance(fixed, dict) else None
        if (
            runner in ("local-shell-cmd", "shell")
            and isinstance(fixed, str)
            and not re.search("{{|{%", fixed)
        ):
            self.report.mapped["actions"] += 1
            return {"command": ["sh", "-c", fixed]}
        by_hand = {
            "python-script": f"Move what `run` of {entry} does into the function {name} of {self.project.module}.py.",
            "local-shell-script": f"Put {entry} beside pack.yaml, and read parameters as JSON from its standard input.",
            "http-request": "Write it as an action with `url`, or with httpx in the function.",
        }
        self.report.gap(
            file,
            source.line("runner_type"),
            f"action {name} of the runner {runner}",
            by_hand.get(
                str(runner), f"Write what it did into the function {name} of {self.project.module}.py."
            ),
        )
        return self.project.function(name, stub(name, f"{runner} {entry}".strip()))

    def _parameters(self, file: str, source: Marked) -> dict[str, Any]:
        parameters = {}
        for name, spec in (source.get("parameters") or {}).items():
            spec = spec if isinstance(spec, Marked) else Marked()
            mapped = {key: _whole(spec[key]) for key in spec if key in _KEPT and spec[key] is not None}
            if name != "cmd":  # which is part of the command
                name_left(self.report, file, spec, known_keys.PARAMETER, f"parameter {name}")
            if "default" in mapped and "{{" in str(mapped["default"]):
                line = getattr(spec, "lines", {}).get("default", 1)
                self.report.gap(
                    file,
                    line,
                    f"the default {mapped.pop('default')} of {name}",
                    "Read it in the action: a setting, or a secret.",
                )
            if "enum" in mapped and "default" in mapped and mapped["default"] not in mapped["enum"]:
                mapped.pop("default")
            parameters[name] = mapped
        return parameters

    def _workflow(self, file: str, source: Marked) -> None:
        name = _name(str(source.get("name")))
        entry = f"actions/{source.get('entry_point')}"
        if not (self._folder / entry).is_file():
            self.report.gap(
                file, source.line("entry_point"), f"{entry} is not there", "Find the workflow's file."
            )
            return
        gap_count = len(self.report.gaps)
        workflows = {
            f"{self.project.name}.{_name(str(workflow.get('name')))}" for _, workflow in self._orquesta
        }
        orquesta = Orquesta(entry, self.report, lambda ref, line: self._ref(ref, entry, line), workflows)
        body = orquesta.workflow(read(self._folder / entry))
        described = self._parameters(file, source)
        for parameter, about in (body.get("parameters") or {}).items():
            about |= described.get(parameter, {}) | about
            if about.get("required") and (
                "default" in about or not described.get(parameter, {}).get("required")
            ):
                about.pop("required")  # the caller may omit it: the action has a default, or it is optional
                about.setdefault("default", None)
                about.pop("type", None) if about["default"] is None else None
        self.project.workflows[name] = _described(source) | body
        if len(self.report.gaps) == gap_count:
            self.report.mapped["workflows"] += 1

    def _ref(self, ref: str, file: str, line: int) -> str:
        """The ref here of one of theirs; where it is in no file of the pack, a function to be written."""
        pack, _, name = ref.rpartition(".")
        name = _name(name)
        own = {*self.project.actions, *(_name(str(source.get("name"))) for _, source in self._orquesta)}
        if pack == self._theirs and name in own:
            return f"{self.project.name}.{name}"
        name = _name(ref)
        if name not in self.project.actions:
            if ref not in BUILT_IN:
                by_hand = f"Import that pack too, or write the function {name} of {self.project.module}.py."
                self.report.gap(file, line, f"the action {ref} of another pack", by_hand)
            self.project.actions[name] = self.project.function(name, BUILT_IN.get(ref) or stub(name, ref))
        return f"{self.project.name}.{name}"

    def _rule(self, file: str, source: Marked) -> None:
        self.report.found["rules"] += 1
        gap_count = len(self.report.gaps)
        name, trigger, act = (
            _name(str(source.get("name"))),
            source.get("trigger") or {},
            source.get("action") or Marked(),
        )
        known_keys.name_left_of_rule(self.report, file, source)
        kind, ref = str(trigger.get("type")), str(act.get("ref"))
        action = self._ref(ref, file, source.line("action"))
        if kind.endswith("Timer"):
            self._schedule(file, source, name, kind, action)
        else:
            self.project.rules[name] = {
                **_described(source),
                "trigger": self._event(kind, file, source),
                **self._criteria(file, source),
                "action": action,
                **self._given(file, act),
            }
            if source.get("enabled") is False:
                self.project.rules[name]["enabled"] = False
        if len(self.report.gaps) == gap_count:
            self.report.mapped["rules"] += 1

    def _schedule(self, file: str, source: Marked, name: str, kind: str, action: str) -> None:
        gap_count = len(self.report.gaps)
        try:
            when = stackstorm_rules.timer(kind, source["trigger"].get("parameters") or Marked())
        except NotMapped:
            self.report.gap(file, source.line("trigger"), f"a timer, {kind}", "Write it as a schedule.")
            return
        self.project.schedules[name] = {
            **_described(source),
            "action": action,
            **when,
            **self._given(file, source.get("action") or Marked(), sees=False),
        }
        if source.get("enabled") is False or len(self.report.gaps) > gap_count:
            self.project.schedules[name]["enabled"] = False

    def _event(self, kind: str, file: str, source: Marked) -> str:
        pack, _, name = kind.rpartition(".")
        trigger_name = _name(name) if pack == self._theirs else _name(kind)
        if trigger_name not in self.project.triggers:
            by_hand = (
                "Make it with `penstock webhooks set`; the body is the payload itself, not `payload.body`."
                if kind == "core.st2.webhook"
                else f"Have whoever knows of it publish {self.project.name}.{trigger_name}."
            )
            self.report.gap(
                file, source.line("trigger"), f"the trigger {kind} is in no file of the pack", by_hand
            )
            self.project.triggers[trigger_name] = {}
        return f"{self.project.name}.{trigger_name}"

    def _criteria(self, file: str, source: Marked) -> dict[str, Any]:
        conditions, fields = [], {}
        criteria = source.get("criteria") or Marked()
        for path, criterion in criteria.items():
            try:
                conditions.append(stackstorm_rules.criterion(path, criterion))
            except NotMapped:
                text = (
                    f"the criterion {path}: {dict(criterion) if isinstance(criterion, dict) else criterion}"
                )
                self.report.gap(
                    file, criteria.line(path), text, "Add it to `when`; the rule is disabled until then."
                )
                fields["enabled"] = False
        return (
            {"when": " and ".join(f"({condition})" for condition in conditions)} if conditions else {}
        ) | fields

    def _given(self, file: str, act: Marked, sees: bool = True) -> dict[str, Any]:
        params = {}
        parameters = act.get("parameters") or Marked()
        for name, value in parameters.items():
            try:
                if not sees and "{{" in str(value):
                    raise NotMapped(value)
                params[name] = stackstorm_rules.parameters(value)
            except NotMapped:
                params[name] = "{{ payload.to_do }}" if sees else "to do"  # the rule fails, and says so
                self.report.gap(
                    file, parameters.line(name), f"the parameter {name}: {value}", "Write it as a template."
                )
        return {"params": params} if params else {}


def _name(theirs: str) -> str:
    """A name as it can be here."""
    name = re.sub(r"\W+", "_", theirs.strip()).strip("_").lower()
    return name if name[:1].isalpha() else f"x_{name}"


def _described(source: Marked) -> dict[str, str]:
    description = source.get("description")
    return {"description": str(description)} if description else {}


def _is_schema(schema: Any) -> bool:
    return isinstance(schema, dict) and bool(schema) and "type" in schema


def _whole(schema: Any) -> Any:
    """A part of a schema without the `required: true` of its fields, which theirs may have and JSON Schema has not."""
    if isinstance(schema, dict):
        return {
            name: _whole(part)
            for name, part in schema.items()
            if name != "required" or not isinstance(part, bool)
        }
    return schema
