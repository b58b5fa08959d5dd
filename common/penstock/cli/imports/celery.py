"""The tasks, beat schedule, routes and retries of a Celery application as a pack of ours, read from its source."""

from __future__ import annotations

import ast
import re
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from penstock.cli.imports.celery_calls import NotLiteral, cron, literal, seconds, task_options
from penstock.cli.imports.celery_options import (
    BEAT_BY_HAND,
    RETRY,
    ROUTE_BY_HAND,
    SEE,
    TASK_BY_HAND,
    says_nothing,
    whole_retry,
)
from penstock.cli.imports.celery_settings import BEAT, ROUTES, CelerySettings
from penstock.cli.imports.project import Project, stub
from penstock.cli.imports.report import Report
from penstock.errors import NotFound


class CeleryProject:
    """Maps a file, or all files of a folder."""

    def __init__(self, source: Path) -> None:
        if not source.exists():
            raise NotFound(
                f"there is no {source}", hint="Name the file of a module, or the folder of a package."
            )
        self._folder = source if source.is_dir() else source.parent
        self._package = f"{source.name}." if source.is_dir() else ""
        whole = sorted(source.rglob("*.py")) if source.is_dir() else [source]
        self._files = [file for file in whole if file == source or not _is_test(file.relative_to(source))]
        self.report = Report()
        self.project = Project(re.sub(r"\W+", "_", source.stem).strip("_").lower() or "tasks")
        self._refs: dict[str, str] = {}
        """By the name that Celery knows a task by."""

    def mapped(self) -> Project:
        trees = []
        for file in self._files:
            try:
                trees.append((str(file.relative_to(self._folder)), ast.parse(file.read_text())))
            except (SyntaxError, UnicodeDecodeError) as error:
                by_hand = "Import with the Python that it is written for."
                self.report.gap(str(file.relative_to(self._folder)), 1, f"no Python here: {error}", by_hand)
        for name, tree in trees:
            for node in ast.walk(tree):
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                    options = task_options(node)
                    if options is not None:
                        self._task(name, node, options)
        settings = CelerySettings(dict(trees), self._gap)
        for name, key, value in settings.entries(ROUTES):
            self._route(name, key, value)
        for name, key, value in settings.entries(BEAT):
            self._schedule(name, key, value)
        settings.name_left()
        return self.project

    def _task(
        self, file: str, node: ast.FunctionDef | ast.AsyncFunctionDef, options: list[ast.keyword]
    ) -> None:
        self.report.found["tasks"] += 1
        self.report.mapped["tasks"] += 1
        name = node.name.strip("_").lower()
        module = file.removesuffix(".py").replace("/", ".").removesuffix(".__init__")
        if name in self.project.actions:
            name = f"{module.replace('.', '_')}_{name}".lower()
        keywords = {keyword.arg or "**options": keyword.value for keyword in options}
        action = self.project.function(name, stub(name, f"{node.name} of {file}"))
        retry: dict[str, Any] = {}
        for option, value in keywords.items():
            try:
                if option in RETRY:
                    retry |= RETRY[option](value)
                elif option == "time_limit":
                    action["timeout"] = seconds(value)
                elif option == "queue":
                    action["route"] = literal(value)
                elif not says_nothing(option, value):
                    self._gap(file, value, f"{option} of {node.name}", TASK_BY_HAND.get(option, SEE))
            except NotLiteral:
                self._gap(
                    file,
                    value,
                    f"{option} of {node.name} is computed: {ast.unparse(value)}",
                    "Write the value.",
                )
        if retry:
            action["retry"] = whole_retry(retry)
        self.project.actions[name] = action
        called = keywords.get("name")
        celery_name = (
            called.value if isinstance(called, ast.Constant) else f"{self._package}{module}.{node.name}"
        )
        self._refs[str(celery_name)] = name
        self._gap(
            file,
            node,
            f"the code of {node.name}",
            f"Move it into the function {name}_ of {self.project.module}.py.",
        )

    def _route(self, file: str, key: str, node: ast.expr) -> None:
        self.report.found["routes"] += 1
        try:
            value = literal(node)
        except NotLiteral:
            value = None
        queue = value.get("queue") if isinstance(value, dict) else value
        fitting = [name for ref, name in self._refs.items() if fnmatchcase(ref, key)]
        if not isinstance(queue, str) or not fitting:
            self._gap(file, node, f"the route of {key}", "Write `route` of the actions that are meant.")
            return
        self.report.mapped["routes"] += 1
        for option in value.keys() - {"queue"} if isinstance(value, dict) else ():
            self._gap(file, node, f"{option} of the route of {key}", ROUTE_BY_HAND.get(option, SEE))
        for name in fitting:
            self.project.actions[name].setdefault("route", queue)

    def _schedule(self, file: str, key: str, node: ast.expr) -> None:
        self.report.found["schedules"] += 1
        entry = {str(literal(k)): v for k, v in zip(node.keys, node.values, strict=True) if isinstance(k, ast.Constant)} \
            if isinstance(node, ast.Dict) else {}  # fmt: skip
        try:
            task = literal(entry["task"])
            schedule: dict[str, Any] = {"action": f"{self.project.name}.{self._known(task)}"}
            try:
                schedule["every"] = seconds(entry["schedule"])
            except NotLiteral:
                schedule["cron"] = cron(entry["schedule"])
            if "kwargs" in entry:
                schedule["params"] = literal(entry["kwargs"])
            if "args" in entry and literal(entry["args"]):
                raise NotLiteral("arguments by position")
        except (NotLiteral, KeyError) as error:
            self._gap(file, node, f"the schedule {key}: {error}", "Write it as a schedule.")
            return
        for option in entry.keys() - {"task", "schedule", "args", "kwargs"}:
            if not says_nothing(option, entry[option]):
                self._gap(
                    file, entry[option], f"{option} of the schedule {key}", BEAT_BY_HAND.get(option, SEE)
                )
        self.report.mapped["schedules"] += 1
        self.project.schedules[re.sub(r"\W+", "_", key).strip("_").lower()] = schedule

    def _known(self, task: str) -> str:
        """Raises KeyError. A file knows a task by less than the whole path where the folder lies deeper."""
        names = {name for ref, name in self._refs.items() if ref == task or task.endswith(f".{ref}")}
        if len(names) != 1:
            raise KeyError(task)
        return names.pop()

    def _gap(self, file: str, node: ast.stmt | ast.expr, subject: str, by_hand: str) -> None:
        self.report.gap(file, node.lineno, " ".join(subject.split()), by_hand)


def _is_test(file: Path) -> bool:
    return file.name.startswith(("test_", "conftest.")) or "tests" in file.parts
