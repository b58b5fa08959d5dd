"""Actions keep the times of their runners, by older names of those too, and a policy tries again only after what it names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from penstock.language.policies.policies import RetryPolicy
from penstock.run.outcomes import Outcome, TaskError
from penstock_import.stackstorm import StackStormPack


def imported(folder: Path, files: dict[str, Any]) -> StackStormPack:
    """Return the import of the pack `depot` with these files."""
    for name, content in {
        "pack.yaml": {
            "ref": "depot",
            "name": "depot",
            "description": "Pens.",
            "version": "1.0.0",
            "author": "Pat",
        },
        **files,
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(yaml.safe_dump(content))
    source = StackStormPack(folder)
    source.mapped()
    return source


@pytest.mark.parametrize(
    ("runner", "timeout"),
    [
        ("python-script", 600),
        ("run-python", 600),
        ("run-local", 60),
        ("http-runner", 60),
        ("run-remote-script", 60),
        ("mistral-v2", None),
        ("announcement", None),
    ],
)
def test_action_has_the_time_of_its_runner(tmp_path: Path, runner: str, timeout: int | None) -> None:
    action = {"name": "act", "runner_type": runner, "entry_point": ""}
    ours = imported(tmp_path, {"actions/act.yaml": action}).project.actions["act"]
    assert (ours["timeout"], ours["on_worker_loss"]) == (timeout, "fail")


def test_action_of_another_pack_is_run_once_and_without_a_bound(tmp_path: Path) -> None:
    flow = {"tasks": {"one": {"action": "other.thing"}}}
    head = {"name": "flow", "runner_type": "orquesta", "entry_point": "workflows/flow.yaml"}
    project = imported(tmp_path, {"actions/flow.yaml": head, "actions/workflows/flow.yaml": flow}).project
    ours = project.actions["other_thing"]
    assert (ours["timeout"], ours["on_worker_loss"]) == (None, "fail")


def test_name_with_dots_is_an_action_of_its_own_pack(tmp_path: Path) -> None:
    act = {"name": "kv.get", "runner_type": "local-shell-cmd"}
    flow = {"tasks": {"one": {"action": "depot.kv.get", "input": {"cmd": "true"}}}}
    source = imported(
        tmp_path,
        {
            "actions/get.yaml": act,
            "actions/flow.yaml": {
                "name": "flow",
                "runner_type": "orquesta",
                "entry_point": "workflows/flow.yaml",
            },
            "actions/workflows/flow.yaml": flow,
            "triggers/t.yaml": {"name": "key.changed", "pack": "depot"},
            "rules/r.yaml": {
                "name": "r",
                "enabled": True,
                "trigger": {"type": "depot.key.changed"},
                "action": {"ref": "depot.kv.get", "parameters": {"cmd": "true"}},
            },
            "policies/p.yaml": {
                "name": "p",
                "resource_ref": "depot.kv.get",
                "policy_type": "action.concurrency",
                "parameters": {"threshold": 2},
            },
        },
    )
    project = source.project
    assert set(project.actions) == {"kv_get"}
    assert project.workflows["flow"]["tasks"]["one"]["action"] == "depot.kv_get"
    assert (project.rules["r"]["trigger"], project.rules["r"]["action"]) == (
        "depot.key_changed",
        "depot.kv_get",
    )
    assert project.actions["kv_get"]["limits"] == [{"max": 2}]
    assert "of other packs" not in str(source.report.found)


class ActionTimedOut(Exception):
    """A command that took too long, as the function of an imported action raises it."""


LATE_ATTEMPT = Outcome.timed_out(60).error
LATE_COMMAND = TaskError.of(ActionTimedOut("late"))
OWN_TIMEOUT = TaskError.of(TimeoutError("of the action's own code"))
FAILURE = TaskError.of(ValueError("no"))


@pytest.mark.parametrize(
    ("runner", "retry_on", "retried"),
    [
        ("local-shell-cmd", "failure", [FAILURE, OWN_TIMEOUT]),
        ("python-script", "failure", [FAILURE, OWN_TIMEOUT]),
        ("local-shell-cmd", "timeout", [LATE_ATTEMPT, LATE_COMMAND]),
    ],
)
def test_policy_tries_again_after_failures_it_names(
    tmp_path: Path, runner: str, retry_on: str, retried: list[TaskError]
) -> None:
    """StackStorm keeps failures and timeouts apart."""
    parameters = {"retry_on": retry_on, "max_retry_count": 3, "delay": 2}
    policy = {
        "name": "p",
        "resource_ref": "depot.act",
        "policy_type": "action.retry",
        "parameters": parameters,
    }
    action = {"name": "act", "runner_type": runner, "entry_point": ""}
    project = imported(tmp_path, {"actions/act.yaml": action, "policies/p.yaml": policy}).project
    ours = RetryPolicy.model_validate(project.actions["act"]["retry"])
    assert ours.max_attempts == 4
    for error in (FAILURE, OWN_TIMEOUT, LATE_ATTEMPT):
        assert error is not None
        if not (retry_on == "timeout" and error is OWN_TIMEOUT):  # a shell's function raises none
            assert error.is_retried(ours.allows) is (error in retried), error.type
    if runner == "local-shell-cmd":
        assert LATE_COMMAND.is_retried(
            lambda kinds: ours.allows([kind.rpartition(".")[2] for kind in kinds])
        ) is (retry_on == "timeout")


@pytest.mark.parametrize("parameters", [{"retry_on": "timeout"}, {"retry_on": "failure", "delay": "x"}, {}])
def test_policy_without_an_equal_is_named(tmp_path: Path, parameters: dict[str, Any]) -> None:
    policy = {
        "name": "p",
        "resource_ref": "depot.act",
        "policy_type": "action.retry",
        "parameters": parameters,
    }
    action = {"name": "act", "runner_type": "python-script", "entry_point": ""}
    source = imported(tmp_path, {"actions/act.yaml": action, "policies/p.yaml": policy})
    assert "a policy: p" in str(source.report.gaps)
    assert "retry" not in source.project.actions["act"]
