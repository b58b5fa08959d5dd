"""Every key that StackStorm and Celery know is mapped or named: nothing that was said is gone without a word."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from penstock.cli import build
from tests.penstock_import.test_reviewed_changes import named, of_pack, texts

ACTION_KEYS = {
    "enabled": False,
    "notify": {"on_failure": {"message": "no"}},
    "output_schema": {"type": "object", "properties": {"key": {"type": "string", "secret": True}}},
    "output_key": "result",
    "tags": [{"name": "team", "value": "a"}],
}
"""Of `ActionAPI` in StackStorm, those without an equal."""
RULE_KEYS = {
    "type": {"ref": "backstop"},
    "tags": [{"name": "team", "value": "a"}],
    "context": {"user": "stanley"},
}
"""Of `RuleAPI`, those without an equal."""


def imported(tmp_path: Path, kind: str, files: dict[str, str]) -> tuple[str, Path]:
    """The report, and the project's folder."""
    for name, text in files.items():
        file = tmp_path / "theirs" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    into = tmp_path / "ours"
    ran = CliRunner().invoke(build(), ["import", kind, str(tmp_path / "theirs"), "--into", str(into)])
    assert ran.exit_code == 0, ran.output
    checked = CliRunner().invoke(build(), ["lint", str(into)])
    assert checked.exit_code == 0, checked.output
    return (into / "IMPORT.md").read_text(), into


def pack(tmp_path: Path, **extra: str) -> tuple[str, Path]:
    return imported(
        tmp_path,
        "stackstorm",
        {"pack.yaml": "ref: depot\nname: depot\ndescription: Pens.\nversion: 1.0.0\nauthor: Pat\n", **extra},
    )


@pytest.mark.parametrize("runner", ["local-shell-cmd", "orquesta"])
def test_keys_of_an_action(tmp_path: Path, runner: str) -> None:
    parameters = {
        "crate": {"type": "string", "minLength": 2, "sorted": True, "immutable": True, "position": 1}
    }
    action = {"name": "weigh", "runner_type": runner, "weight": 3} | ACTION_KEYS
    action |= {"entry_point": "w.yaml"} if runner == "orquesta" else {}
    files = {
        "actions/weigh.yaml": yaml.safe_dump(action | {"parameters": parameters}),
        "actions/w.yaml": "input: [crate]\ntasks: {only: {action: core.noop}}\n",
    }
    page, _ = pack(tmp_path, **files)
    for key in ("notify", "output_schema", "output_key", "tags", "weight", "parameters.crate.sorted"):
        assert f"| {key} of action weigh |" in page, page
    assert "| action weigh is disabled |" in page
    assert "| parameter crate is immutable and has no default |" in page


def test_notification_is_named_and_counted_by_itself(tmp_path: Path) -> None:
    """A message to a route changes nothing of what a workflow does, as the route of an inquiry."""
    action = {
        "name": "weigh",
        "runner_type": "orquesta",
        "entry_point": "w.yaml",
        "notify": ACTION_KEYS["notify"],
    }
    page, _ = pack(
        tmp_path,
        **{
            "actions/weigh.yaml": yaml.safe_dump(action),
            "actions/w.yaml": "tasks: {only: {action: core.noop}}\n",
        },
    )
    assert "| workflows | 1 | 1 | 1 |" in page
    assert "| notifications | 1 | 0 |" in page
    assert "| notify of action weigh | Write `on_success` or `on_failure`" in page


def test_a_key_that_holds_anyway_is_not_a_gap(tmp_path: Path) -> None:
    action = {"name": "weigh", "pack": "depot", "runner_type": "local-shell-cmd", "enabled": True, "tags": []}
    parameters = {"cmd": {"default": "date", "immutable": True}}
    page, _ = pack(tmp_path, **{"actions/weigh.yaml": yaml.safe_dump(action | {"parameters": parameters})})
    assert "\nGaps to close by hand: 0" in page


def test_keys_of_a_rule(tmp_path: Path) -> None:
    trigger = {"type": "depot.arrived", "parameters": {"port": "Bath"}, "description": "of ships"}
    rule = {
        "name": "on_ship",
        "enabled": True,
        "trigger": trigger,
        "action": {"ref": "core.noop", "description": "says"},
    }
    timer = {
        "name": "nightly",
        "trigger": {"type": "core.st2.IntervalTimer", "parameters": {"unit": "hours", "delta": 1}},
    }
    timer |= {"action": {"ref": "core.noop"}, "criteria": {"trigger.x": {"type": "eq", "pattern": 1}}}
    files = {
        "triggers/arrived.yaml": "name: arrived\nparameters_schema: {type: object}\ndescription: x\n",
        "rules/one.yaml": yaml.safe_dump(rule | RULE_KEYS | {"description": "ships on time"}),
        "rules/two.yaml": yaml.safe_dump(timer | {"type": {"ref": "standard"}}),
    }
    page, into = pack(tmp_path, **files)
    for phrase in (
        *(f"{key} of rule on_ship" for key in RULE_KEYS),
        "parameters of the trigger of rule on_ship",
        "parameters_schema of trigger arrived",
        "criteria of rule nightly, which has a timer",
    ):
        assert f"| {phrase} |" in page, page
    assert "type of rule nightly" not in page
    assert yaml.safe_load((into / "triggers.yaml").read_text())["arrived"]["description"] == "x"
    rules = yaml.safe_load((into / "rules.yaml").read_text())
    assert rules["on_ship"]["description"] == "ships on time\nTrigger: of ships\nAction: says"
    assert rules["on_ship"]["enabled"] is False  # its trigger has parameters, which nothing compares yet


def test_keys_of_a_workflow_and_its_parts(tmp_path: Path) -> None:
    workflow = """
version: 1.0
input: [crates]
description: unloads
tasks:
  weigh:
    action: core.echo
    delay: 3
    with: {items: <% ctx().crates %>, concurrency: 2, batch: 3}
    timeout: 5
    next: [{when: <% succeeded() %>, publish: [{a: 1}], do: tell, note: x}]
  tell:
    action: core.echo message=hi
    join: all
    retry: {count: 1, when: <% failed() and ctx().crates %>, until: never}
"""
    action = (
        "name: unload\nrunner_type: orquesta\nentry_point: unload.yaml\nparameters: {crates: {type: array}}\n"
    )
    page, _ = pack(tmp_path, **{"actions/a.yaml": action, "actions/unload.yaml": workflow})
    for phrase in (
        "tasks.weigh.with.batch of workflow unload",
        "retry of tell when <% failed() and ctx().crates %>",
        "tasks.tell.retry.until of workflow unload",
        "tasks.weigh.timeout of workflow unload",
        "tasks.weigh.next[0].note of workflow unload",
        "`message=hi` behind the action of tell, which StackStorm does not read as parameters",
    ):
        assert f"| {phrase} |" in page, page


TASK_OPTIONS = (
    *("base", "abstract", "serializer", "compression", "backend", "throws", "soft_time_limit", "expires"),
    *("priority", "on_success", "on_failure", "on_retry"),
    *("routing_key", "exchange", "pydantic", "resultrepr_maxsize"),
)
"""Attributes of `celery.app.task.Task` without an equal in Penstock. An unknown one is named as well."""


def test_options_of_a_task(tmp_path: Path) -> None:
    options = ", ".join(f"{name}=X" for name in (*TASK_OPTIONS, "colour"))
    same = "bind=True, name='t', ignore_result=True, acks_late=True, track_started=True, reject_on_worker_lost=True"
    code = f"""
@app.task({options}, {same})
def weigh(self): ...

@app.task(acks_late=False, max_retries=None, **MORE)
def tell(): ...
"""
    page, into = imported(tmp_path, "celery", {"tasks.py": code})
    for name in (*TASK_OPTIONS, "colour"):
        assert f"| {name} of weigh |" in page, name
    assert "| **options of tell |" in page
    for name in ("bind", "ignore_result", "track_started", "reject_on_worker_lost", "acks_late"):
        assert f"| {name} of" not in page
    actions = yaml.safe_load((into / "actions.yaml").read_text())
    assert [actions[name]["on_worker_loss"] for name in ("weigh", "tell")] == ["rerun", "fail"]


def test_keys_of_the_beat_schedule_and_of_routes(tmp_path: Path) -> None:
    code = """
app = Celery("t", task_routes={"t": {"queue": "q", "priority": 3, "routing_key": "k"}}, timezone=ZONE)
@app.task(name="t")
def weigh(crate): ...
app.conf.beat_schedule = {
    "one": {"task": "t", "schedule": 90.0, "options": {"expires": 3}, "relative": True, "args": [3], "colour": 1},
    "two": {"task": "t", "schedule": 9.0, "args": [1, 2]},
    "three": {"task": "t", "schedule": crontab(hour=3), "args": [3]},
    NAME: {"task": "t", "schedule": 9.0},
}
if LATE: app.conf.beat_schedule["four"] = {"task": "t", "schedule": 1}
sender.add_periodic_task(10.0, weigh.s())
"""
    page, into = imported(tmp_path, "celery", {"tasks.py": code})
    for phrase in (
        "priority of the route of t",
        "routing_key of the route of t",
        "the zone of the schedule three is computed",
        "relative of the schedule one",
        "colour of the schedule one",
        "the schedule two: arguments by position",
        "an entry of beat_schedule is computed: {'task': 't', 'schedule': 9.0}",
        "the item four of beat_schedule, which counts where LATE",
        "the schedule of sender.add_periodic_task(10.0, weigh.s()): sender is not an application of this file",
        "the setting timezone",
    ):
        assert f"| {phrase} |" in page, page
    schedules = yaml.safe_load((into / "schedules.yaml").read_text())
    assert list(schedules) == ["one", "three"]
    assert schedules["one"]["params"] == {"crate": 3}
    assert schedules["three"]["enabled"] is False


@pytest.mark.parametrize(
    ("tasks", "expected"),
    [
        ("  - {name: first, action: core.noop}\n", "flow.yaml:2 | tasks that are not a mapping, which Orquesta refuses"),
        ("  first: {input: {message: {{ ctx().x }} }}\n", "line 3: a key of a pack is a text, so a text with {{ }} needs"),
    ],
)  # fmt: skip
def test_workflow_that_is_not_written_as_one_is_named_as_such(
    tmp_path: Path, tasks: str, expected: str
) -> None:
    files = {
        "pack.yaml": "ref: depot\n",
        "actions/flow.yaml": "name: flow\nrunner_type: orquesta\nentry_point: workflows/flow.yaml\n",
        "actions/workflows/flow.yaml": f"version: 1.0\ntasks:\n{tasks}",
    }
    report, _ = imported(tmp_path, "stackstorm", files)
    assert expected in report


def test_keys_that_change_nothing_keep_a_definition_mapped(tmp_path: Path) -> None:
    notify = {"on-success": {"routes": ["chat"], "message": "done"}}
    files = {
        "actions/weigh.yaml": {"name": "weigh", "runner_type": "noop"},
        "actions/flow.yaml": {
            "name": "flow",
            "runner_type": "action-chain",
            "entry_point": "chains/flow.yaml",
        },
        "actions/chains/flow.yaml": {"chain": [{"name": "one", "ref": "depot.weigh", "notify": notify}]},
        "triggers/arrived.yaml": {"name": "arrived"},
        "rules/r.yaml": {
            "name": "r",
            "enabled": True,
            "trigger": {
                "type": "depot.arrived",
                "criteria": {"trigger.weight": {"type": "gt", "pattern": 9}},
            },
            "action": {"ref": "depot.weigh"},
        },
    }
    project, report = of_pack(tmp_path, files)
    assert (report.mapped["workflows"], report.mapped["rules"]) == (1, 1), texts(report)
    assert "enabled" not in project.rules["r"]
    assert named(report, "actions/chains/flow.yaml:4 notify of the task one of chain flow")
    assert named(report, "rules/r.yaml:5 the key criteria of the trigger of rule r: StackStorm ignores it")


@pytest.mark.parametrize(
    ("file", "content", "missing"),
    [
        ("actions/chain.yaml", {"chain": [{"name": "one", "ref": "depot.weigh"}]}, "name and no runner_type"),
        ("actions/weigh.yaml", {"name": "weigh"}, "runner_type"),
        ("rules/r.yaml", {"trigger": {"type": "depot.arrived"}, "action": {"ref": "depot.weigh"}}, "name"),
    ],
)
def test_file_without_required_keys_is_not_made(
    tmp_path: Path, file: str, content: dict[str, Any], missing: str
) -> None:
    project, report = of_pack(tmp_path, {file: content})
    assert {**project.actions, **project.rules} == {}
    assert named(report, f"{file}:1 {file} cannot be read: it has no {missing}, so StackStorm does not"), (
        texts(report)
    )


def test_task_that_nothing_leads_to_has_one_line(tmp_path: Path) -> None:
    chain = {
        "chain": [{"name": "one", "ref": "depot.weigh"}, {"name": "two", "ref": "depot.weigh"}],
        "default": "one",
    }
    files = {
        "actions/weigh.yaml": {"name": "weigh", "runner_type": "noop"},
        "actions/flow.yaml": {
            "name": "flow",
            "runner_type": "action-chain",
            "entry_point": "chains/flow.yaml",
        },
        "actions/chains/flow.yaml": chain,
    }
    _, report = of_pack(tmp_path, files)
    lines = [text for text in texts(report) if "chains/flow.yaml" in text and "the result of" not in text]
    assert len(lines) == 1
    assert "two, to which no task of the chain leads" in lines[0]
