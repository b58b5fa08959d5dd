"""`penstock import cloaca`: what is made runs as the file would there, and what is left over is named with its line."""

from __future__ import annotations

import importlib.util
import random
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from penstock import ContextTask, Workflow
from penstock.cli import build
from penstock.errors import DefinitionError
from penstock.language.loading.load import load
from penstock.testing.memory_workflow import MemoryWorkflow
from penstock_import.cloaca import CloacaFile

FILE = '''"""Nightly load."""

import cloaca
from os import getcwd

LIMIT = 3

def helper(n):
    return n + LIMIT

def note(task_id, context):
    print(task_id)

with cloaca.WorkflowBuilder("nightly") as builder:
    builder.description("Load it")
    builder.tag("team", "data")

    @cloaca.task(id="extract", retry_attempts=LIMIT, retry_backoff="fixed", retry_delay_ms=200, on_success=note)
    def extract(context):
        """what: it"""
        context.set("n", helper(1))  # a comment
        return context

    @cloaca.task(dependencies=[extract], trigger_rules=cloaca.all_of(
        cloaca.task_success("extract"), cloaca.context_value("n", ">", 3)))
    def load(context):
        return cloaca.Context({"loaded": True})

    @cloaca.task(dependencies=["load"], retry_condition="transient")
    def wait(context, handle):
        handle.defer_until(lambda: True)
        return context

    @cloaca.task(dependencies=["wait"])
    def tidy(context):
        context.remove("n")
        del context["n"]
        return context

@cloaca.trigger(on="nightly", cron="0 2 * * *", timezone="Europe/Paris")
def at_two():
    pass

@cloaca.trigger(on="nightly", poll_interval="5s")
def poll():
    return cloaca.TriggerResult.skip()

def main():
    runner = cloaca.DefaultRunner("sqlite://")
    runner.register_cron_workflow("nightly", "*/5 * * * *", "UTC")
    result = runner.execute("nightly", cloaca.Context({}))

if __name__ == "__main__":
    main()
'''


def imported(tmp_path: Path, text: str = FILE, name: str = "etl_file") -> tuple[CloacaFile, Any, str]:
    file = tmp_path / f"{name}.py"
    file.write_text(text)
    source = CloacaFile(file)
    project = source.mapped()
    return source, project, project.text()


def test_file_becomes_a_module_without_a_fault(tmp_path: Path) -> None:
    (tmp_path / "etl_file.py").write_text(FILE)
    told = CliRunner().invoke(
        build(), ["import", "cloaca", str(tmp_path / "etl_file.py"), "--into", str(tmp_path / "out")]
    )
    assert told.exit_code == 0, told.output
    definitions = load(str(tmp_path / "out/etl_file.py"))
    definitions.check()
    assert set(definitions.workflows) == {"etl_file.nightly"}
    schedules = {ref: (one.cron, one.timezone) for ref, one in definitions.schedules.items()}
    assert schedules == {
        "etl_file.at_two": ("0 2 * * *", "Europe/Paris"),
        "etl_file.nightly": ("*/5 * * * *", "UTC"),
    }
    extract, load_task = definitions.actions["etl_file.extract"], definitions.actions["etl_file.load"]
    assert extract.choices.retry.written() == {"max_attempts": 3, "backoff": "fixed", "initial_delay": 0.2}
    assert load_task.choices.retry.max_attempts == 3, "their default"
    assert (tmp_path / "out/IMPORT.md").is_file()


def test_gap_is_named_with_its_line(tmp_path: Path) -> None:
    source, _, text = imported(tmp_path)
    named = {(gap.line, gap.what) for gap in source.report.gaps}
    lines = FILE.splitlines()

    def line(part: str) -> int:
        return next(number for number, content in enumerate(lines, 1) if part in content)

    for part, words in (
        ("builder.tag", "builder.tag"),
        ('retry_condition="transient"', "retry_condition of task wait"),
        ("def wait", "takes more than the context"),
        ("context.remove", "context.remove in task tidy"),
        ("del context", "del in the context of task tidy"),
        ('poll_interval="5s"', "the poll trigger poll"),
        ("DefaultRunner", "runner = cloaca.DefaultRunner"),
        ("runner.execute", "runner.execute"),
        ("__main__", "if __name__"),
    ):
        assert any(at == line(part) and words in what for at, what in named), (part, sorted(named))
    assert "cloaca" not in text
    assert "# a comment" in text


def test_each_mention_of_cloaca_is_mapped_or_named(tmp_path: Path) -> None:
    """Re-read the source by itself: each line that names the package is in the report, or is one of those that are mapped."""
    source, _, _ = imported(tmp_path)
    named = {gap.line for gap in source.report.gaps}
    mapped = (
        "import cloaca",
        "WorkflowBuilder",
        "@cloaca.task",
        "cloaca.task_success",
        'cloaca.Context({"loaded"',
        "cron=",
        "TriggerResult",  # of a function that is named as a whole
    )
    for number, line in enumerate(FILE.splitlines(), 1):
        if "cloaca" in line and not any(part in line for part in mapped):
            assert number in named, line


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("import cloaca\n\n@cloaca.task(id=NAME)\ndef a(context): ...\n", "computed id"),
        ("import cloaca\n\n@cloaca.task(**options)\ndef a(context): ...\n", "computed options"),
        ("import cloaca\n\n@cloaca.task(invokes=graph)\ndef a(context): ...\n", "invokes of task a"),
        (
            "import cloaca\n\n@cloaca.task(trigger_rules=rule)\ndef a(context): ...\n",
            "trigger_rules of task a",
        ),
        (
            "import cloaca\n\n@cloaca.task()\ndef a(context):\n    return cloaca.var('X')\n",
            "cloaca.var in task a",
        ),
        (
            "import cloaca\nx = cloaca.var('X')\n\n@cloaca.task()\ndef a(context):\n    return x\n",
            "uses x, which the import omits",
        ),
        (
            "import cloaca\nwith cloaca.WorkflowBuilder('v') as b:\n    @cloaca.task()\n    def a(context): ...\n"
            "with cloaca.WorkflowBuilder('w') as b:\n    @cloaca.task()\n    def a(context): ...\n",
            "there are two tasks 'a'",
        ),
    ],
)
def test_odd_file_is_named(text: str, words: str, tmp_path: Path) -> None:
    source, _, made = imported(tmp_path, text)
    assert any(words in gap.what for gap in source.report.gaps), source.report.gaps
    compile(made, "made.py", "exec")


# -- the same outcomes as there ------------------------------------------------------------------------------------


class Theirs:
    """An interpreter of files of Cloacina, after its scheduler: a task is decided once all dependencies have ended."""

    def __init__(self) -> None:
        self.tasks: dict[str, tuple[Callable[..., Any], list[str], Any]] = {}

    def module(self) -> ModuleType:
        made = ModuleType("cloaca")

        def task(*, id: str, dependencies: list[str] = [], trigger_rules: Any = None, **_: Any) -> Any:  # noqa: B006
            def declare(function: Callable[..., Any]) -> Callable[..., Any]:
                self.tasks[id] = (function, dependencies, trigger_rules)
                return function

            return declare

        def group(kind: str) -> Callable[..., Any]:
            return lambda *parts: {"type": kind, "conditions": list(parts)}

        made.__dict__.update(
            task=task,
            all_of=group("All"),
            any_of=group("Any"),
            none_of=group("None"),
            always=lambda: {"type": "Always"},
            context_value=lambda key, operator, value: {
                "type": "ContextValue",
                "key": key,
                "operator": operator,
                "value": value,
            },
            **{
                f"task_{word.lower()}": (lambda kind: lambda name: {"type": kind, "task_name": name})(
                    f"Task{word}"
                )
                for word in ("Success", "Failed", "Skipped")
            },
        )
        return made

    def run(self, context: dict[str, Any]) -> dict[str, str]:
        statuses: dict[str, str] = {}
        for _ in self.tasks:
            for id, (function, dependencies, rule) in self.tasks.items():
                if id in statuses or not all(name in statuses for name in dependencies):
                    continue
                if not self.holds(rule or {"type": "Always"}, statuses, context):
                    statuses[id] = "skipped"
                    continue
                try:
                    function(SimpleNamespace(set=context.__setitem__, get=context.get))
                    statuses[id] = "completed"
                except ValueError:
                    statuses[id] = "failed"
        return statuses

    def holds(self, rule: Mapping[str, Any], statuses: Mapping[str, str], context: Mapping[str, Any]) -> bool:
        kind = rule["type"]
        if kind in ("All", "Any", "None"):
            parts = [self.holds(part, statuses, context) for part in rule["conditions"]]
            return {"All": all(parts), "Any": any(parts), "None": not any(parts)}[kind]
        if kind == "Always":
            return True
        if kind == "ContextValue":
            there, value = rule["key"] in context, context.get(rule["key"])
            return {"Equals": there and value == rule["value"], "Exists": there, "NotExists": not there}[
                rule["operator"]
            ]
        wanted = {"TaskSuccess": "completed", "TaskFailed": "failed", "TaskSkipped": "skipped"}[kind]
        return statuses[rule["task_name"]] == wanted


def _random_file(rng: random.Random) -> str:
    lines = ["import cloaca", ""]
    ids = [f"t{n}" for n in range(rng.randint(2, 6))]
    for n, id in enumerate(ids):
        dependencies = rng.sample(ids[:n], rng.randint(0, min(n, 3)))
        rule = _random_rule(rng, dependencies, 2) if dependencies and rng.random() < 0.7 else None
        options = [f"id={id!r}", f"dependencies={dependencies!r}"] + (
            [f"trigger_rules={rule}"] if rule else []
        )
        body = (
            "raise ValueError('it fails')"
            if rng.random() < 0.3
            else f"context.set('v{n}', {rng.randint(0, 1)})"
        )
        lines += [
            f"@cloaca.task({', '.join(options)})",
            f"def {id}(context):",
            f"    {body}",
            "    return context",
            "",
        ]
    return "\n".join(lines)


def _random_rule(rng: random.Random, tasks: list[str], depth: int) -> str:
    if depth and rng.random() < 0.4:
        parts = ", ".join(_random_rule(rng, tasks, depth - 1) for _ in range(rng.randint(1, 3)))
        return f"cloaca.{rng.choice(['all_of', 'any_of', 'none_of'])}({parts})"
    if rng.random() < 0.3:
        operator = rng.choice(["Equals", "Exists", "NotExists"])
        # Of a value that a dependency itself sets: what others set is seen at another time there.
        return f"cloaca.context_value({'v' + rng.choice(tasks)[1:]!r}, {operator!r}, 1)"
    if depth == 2 and rng.random() < 0.1:
        return "cloaca.always()"
    return f"cloaca.{rng.choice(['task_success', 'task_failed', 'task_skipped'])}({rng.choice(tasks)!r})"


def test_random_files_come_out_as_in_cloacina(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(11)
    kinds: set[str] = set()
    tried = 0
    for number in range(150):
        text = _random_file(rng)
        theirs = Theirs()
        monkeypatch.setitem(sys.modules, "cloaca", theirs.module())
        exec(compile(text, "theirs.py", "exec"), {})
        expected = theirs.run({})
        name = f"random_{number}"
        source, project, made = imported(tmp_path, text, name)
        assert source.report.mapped["tasks"] == len(expected), source.report.gaps
        assert project.name == name
        try:
            ours = _outcomes(made, name, tmp_path)
        except DefinitionError as error:
            refusal = str(error)
        else:
            refusal = ""
        if refusal:  # a rule that cannot hold is refused here, and always skipped there
            never = re.findall(r"tasks\.(t\d)\.when: it can never run", refusal)
            assert {expected[task] for task in never} == {"skipped"}, refusal
            continue
        assert ours == expected, text
        tried += 1
        kinds |= set(expected.values())
    assert kinds == {"completed", "failed", "skipped"}
    assert tried > 60


def _outcomes(text: str, name: str, tmp_path: Path) -> dict[str, str]:
    """Run the workflow of a module on the engine, each task as soon as it is begun."""
    file = tmp_path / f"made_{name}.py"
    file.write_text(text)
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[file.stem] = module
    spec.loader.exec_module(module)
    tasks = {value.name: value for value in vars(module).values() if isinstance(value, ContextTask)}
    [flow] = [value for value in vars(module).values() if isinstance(value, Workflow)]
    world = MemoryWorkflow(flow, {}).begin()
    for _ in range(len(tasks)):
        if world.final is not None:
            break
        task = sorted(world.open)[0][0]
        try:
            world.finish((task, tasks[task].function(**tasks[task].bind(world.input(task)))))  # type: ignore[misc]
        except ValueError as error:
            world.finish((task, "failed", {"type": "ValueError", "message": str(error)}))
    return {task: world.statuses[task] for task in tasks}


NAMES = """\
import cloaca

@cloaca.task(id="fetch-data", dependencies=[])
def fetch(context):
    return context

@cloaca.task(id="checkAll", dependencies=["fetch-data"], trigger_rules=cloaca.all_of(
    cloaca.task_success("fetch-data"), cloaca.context_value("n", ">", 3)))
def check(context):
    return context

@cloaca.task(id="report", dependencies=["checkAll", "fetch-data"],
    trigger_rules={"type": "Any", "conditions": [{"type": "TaskSkipped", "value": "checkAll"}]})
def report(context):
    return context
"""


def test_ids_that_are_no_names_here_are_changed_everywhere(tmp_path: Path) -> None:
    source, _, text = imported(tmp_path, NAMES, "names_file")
    assert "id='fetch_data'" in text
    assert "dependencies=['check_all', 'fetch_data']" in text
    assert "'success': 'fetch_data'" in text
    assert "'skipped': 'check_all'" in text
    gaps = [gap.what for gap in source.report.gaps]
    assert "the task fetch-data is named fetch_data in Penstock" in gaps
    assert "the task checkAll is named check_all in Penstock" in gaps
    assert source.report.mapped == {"tasks": 3, "workflows": 1}


def test_task_that_needs_an_unknown_one_is_not_mapped(tmp_path: Path) -> None:
    text = (
        "import cloaca\ncloaca.constructor(id='reader', from_='x')\n\n"
        "@cloaca.task(dependencies=['reader'])\ndef count(context):\n    return context\n"
    )
    file = tmp_path / "lacking.py"
    file.write_text(text)
    source = CloacaFile(file)
    source.mapped()
    gaps = [(gap.line, gap.what) for gap in source.report.gaps]
    assert (4, "task count depends on reader, which is not a task of this file") in gaps
    assert (source.report.mapped["tasks"], source.report.mapped["workflows"]) == (0, 0)


PACKAGED = "import cloaca\n@cloaca.task(id='load', dependencies=[])\ndef load(context): ...\n"


def test_workflow_of_a_package_has_the_name_of_its_manifest(tmp_path: Path) -> None:
    module = tmp_path / "inbox/workflow/file_inbox"
    module.mkdir(parents=True)
    (tmp_path / "inbox/package.toml").write_text('[metadata]\nworkflow_name = "file_processing"\n')
    source, _, text = imported(module, PACKAGED, "tasks")
    assert "file_processing = workflow('file_processing', tasks=[load])" in text
    assert not any("the name of the workflow" in gap.what for gap in source.report.gaps)


@pytest.mark.parametrize(
    "manifest", [None, "[metadata]\n", "metadata = 3\n", "no toml", "[metadata]\nworkflow_name = 3\n"]
)
def test_workflow_without_a_known_name_is_named(tmp_path: Path, manifest: str | None) -> None:
    if manifest is not None:
        (tmp_path / "package.toml").write_text(manifest)
    source, _, text = imported(tmp_path, PACKAGED, "tasks")
    assert "tasks = workflow('tasks', tasks=[load])" in text
    assert any(
        "the name of the workflow, which in Penstock is tasks" in gap.what for gap in source.report.gaps
    )
