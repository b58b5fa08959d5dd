"""Every key that StackStorm and Celery know is mapped or named: nothing that was said is gone without a word."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from penstock.cli import build

ACTION_KEYS = {
    "enabled": False,
    "notify": {"on_failure": {"message": "no"}},
    "output_schema": {"type": "object"},
    "output_key": "result",
    "tags": [{"name": "team", "value": "a"}],
}
"""Of `ActionAPI` in StackStorm, those without an equal."""
PARAMETER_KEYS = {"position": 1, "immutable": True}
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


def pack(tmp_path: Path, **more: str) -> tuple[str, Path]:
    return imported(tmp_path, "stackstorm", {"pack.yaml": "ref: depot\n", **more})


@pytest.mark.parametrize("runner", ["local-shell-cmd", "orquesta"])
def test_keys_of_an_action(tmp_path: Path, runner: str) -> None:
    parameters = {"crate": {"type": "string", "minLength": 2, "sorted": True, **PARAMETER_KEYS}}
    action = {"name": "weigh", "runner_type": runner, "entry_point": "w.yaml", "weight": 3} | ACTION_KEYS
    files = {
        "actions/weigh.yaml": yaml.safe_dump(action | {"parameters": parameters}),
        "actions/w.yaml": "input: [crate]\ntasks: {only: {action: core.noop}}\n",
    }
    page, into = pack(tmp_path, **files)
    for key in (*ACTION_KEYS, "weight"):
        assert f"| {key} of action weigh |" in page, key
    for key in (*PARAMETER_KEYS, "sorted"):
        assert f"| {key} of parameter crate |" in page, key
    kept = yaml.safe_load(
        (into / "actions.yaml" if runner != "orquesta" else into / "workflows.yaml").read_text()
    )
    assert kept["weigh"]["parameters"]["crate"]["minLength"] == 2


def test_a_key_that_holds_anyway_is_not_a_gap(tmp_path: Path) -> None:
    action = {"name": "weigh", "pack": "depot", "runner_type": "local-shell-cmd", "enabled": True, "tags": []}
    parameters = {"cmd": {"default": "date", "immutable": True}}
    page, _ = pack(tmp_path, **{"actions/weigh.yaml": yaml.safe_dump(action | {"parameters": parameters})})
    assert "\n0 gaps are left" in page


def test_keys_of_a_rule(tmp_path: Path) -> None:
    trigger = {"type": "depot.arrived", "parameters": {"port": "Bath"}, "description": "ships"}
    rule = {"name": "on_ship", "trigger": trigger, "action": {"ref": "core.echo", "description": "says"}}
    timer = {
        "name": "nightly",
        "trigger": {"type": "core.st2.IntervalTimer", "parameters": {"unit": "hours", "delta": 1}},
    }
    timer |= {"action": {"ref": "core.echo"}, "criteria": {"trigger.x": {"type": "eq", "pattern": 1}}}
    files = {
        "triggers/arrived.yaml": "name: arrived\nparameters_schema: {type: object}\ndescription: x\n",
        "rules/one.yaml": yaml.safe_dump(rule | RULE_KEYS | {"description": "ships on time"}),
        "rules/two.yaml": yaml.safe_dump(timer | {"type": {"ref": "standard"}}),
    }
    page, into = pack(tmp_path, **files)
    for said in (
        *(f"{key} of rule on_ship" for key in RULE_KEYS),
        "parameters of the trigger of rule on_ship",
        "description of the trigger of rule on_ship",
        "description of the action of rule on_ship",
        "parameters_schema of trigger arrived",
        "criteria of rule nightly, which has a timer",
    ):
        assert f"| {said} |" in page, page
    assert "type of rule nightly" not in page
    assert yaml.safe_load((into / "triggers.yaml").read_text())["arrived"]["description"] == "x"
    assert yaml.safe_load((into / "rules.yaml").read_text())["on_ship"]["description"] == "ships on time"


def test_parameters_of_runners_may_be_given(tmp_path: Path) -> None:
    """`timeout` is the runner's, and no parameter that the action names; that of no runner is left as it is: a fault
    that lint names."""
    workflow = """
version: 1.0
tasks:
  weigh: {action: depot.weigh, input: {crate: 1, timeout: 5, sudo: true}}
"""
    files = {
        "actions/weigh.yaml": "name: weigh\npack: depot\nrunner_type: remote-shell-cmd\nparameters: {crate: {type: integer}}\n",
        "actions/a.yaml": "name: unload\nrunner_type: orquesta\nentry_point: unload.yaml\n",
        "actions/unload.yaml": workflow,
    }
    _, into = pack(tmp_path, **files)
    kept = yaml.safe_load((into / "actions.yaml").read_text())["weigh"]["parameters"]
    assert kept.keys() == {"crate", "timeout", "sudo"}


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
    retry: {count: 2, delay: 1, when: <% failed() and result().code > 3 %>, until: never}
    timeout: 5
    next: [{when: <% succeeded() %>, publish: [{a: 1}], do: tell, note: x}]
  tell:
    action: core.echo
    join: all
    retry: {count: 1, when: <% failed() %>}
"""
    action = "name: unload\nrunner_type: orquesta\nentry_point: unload.yaml\n"
    page, into = pack(tmp_path, **{"actions/a.yaml": action, "actions/unload.yaml": workflow})
    for said in (
        "batch of `with`",
        "retry when <% failed() and result().code > 3 %>",
        "until of `retry`",
        "timeout of the task weigh",
        "note of a step after weigh",
    ):
        assert f"| {said} |" in page, page
    assert "retry when <% failed() %>" not in page
    whole = yaml.safe_load((into / "workflows.yaml").read_text())["unload"]
    assert whole["description"] == "unloads"
    made = whole["tasks"]
    assert made["tell"]["join"] == "all"
    assert made["weigh"]["delay"] == 3


TASK_OPTIONS = (
    *(
        "base",
        "abstract",
        "serializer",
        "compression",
        "backend",
        "throws",
        "rate_limit",
        "soft_time_limit",
        "expires",
    ),
    *(
        "priority",
        "autoretry_for",
        "dont_autoretry_for",
        "retry_kwargs",
        "on_success",
        "on_failure",
        "on_retry",
    ),
    *("routing_key", "exchange", "pydantic", "resultrepr_maxsize"),
)
"""Of `celery.app.task.Task`, those without an equal. Named as well: one that nobody knows."""


def test_options_of_a_task(tmp_path: Path) -> None:
    options = ", ".join(f"{name}=X" for name in (*TASK_OPTIONS, "colour"))
    same = "bind=True, name='t', ignore_result=True, acks_late=True, track_started=True, reject_on_worker_lost=True"
    code = f"""
@app.task({options}, {same})
def weigh(self): ...

@app.task(acks_late=False, max_retries=None, **MORE)
def tell(): ...

@app.task(retry_backoff=5, retry_backoff_max=700, retry_jitter=False, max_retries=7)
def often(): ...

@app.task(default_retry_delay=180)
def slowly(): ...
"""
    page, into = imported(tmp_path, "celery", {"tasks.py": code})
    for name in (*TASK_OPTIONS, "colour"):
        assert f"| {name} of weigh |" in page, name
    for said in ("acks_late of tell", "max_retries of tell is computed: None", "**options of tell"):
        assert f"| {said} |" in page, page
    for name in ("bind", "ignore_result", "track_started", "reject_on_worker_lost"):
        assert f"| {name} of" not in page
    actions = yaml.safe_load((into / "actions.yaml").read_text())
    assert actions["often"]["retry"] == {
        "max_attempts": 8, "backoff": "exponential", "initial_delay": 5.0, "max_delay": 700, "jitter": 0.0
    }  # fmt: skip
    assert actions["slowly"]["retry"]["max_delay"] == 180


def test_keys_of_the_beat_schedule_and_of_routes(tmp_path: Path) -> None:
    code = """
app = Celery("t", task_routes={"t": {"queue": "q", "priority": 3, "routing_key": "k"}}, timezone="Europe/Paris")
@app.task(name="t")
def weigh(): ...
app.conf.beat_schedule = {
    "one": {"task": "t", "schedule": 9.0, "options": {"expires": 3}, "relative": True, "args": [], "colour": 1},
    "two": {"task": "t", "schedule": 9.0, "args": [1]},
    NAME: {"task": "t", "schedule": 9.0},
}
app.conf.beat_schedule["three"] = {"task": "t", "schedule": 1}
sender.add_periodic_task(10.0, weigh.s())
"""
    page, into = imported(tmp_path, "celery", {"tasks.py": code})
    for said in (
        "priority of the route of t",
        "routing_key of the route of t",
        "the timezone of schedules: 'Europe/Paris'",
        "options of the schedule one",
        "relative of the schedule one",
        "colour of the schedule one",
        "the schedule two: arguments by position",
        "an entry of beat_schedule is computed: {'task': 't', 'schedule': 9.0}",
        "beat_schedule is computed: {'task': 't', 'schedule': 1}",
        "a schedule that code adds: sender.add_periodic_task(10.0, weigh.s())",
    ):
        assert f"| {said} |" in page, page
    assert list(yaml.safe_load((into / "schedules.yaml").read_text())) == ["one"]
