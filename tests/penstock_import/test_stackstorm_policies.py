"""Policies of StackStorm that its engine reads otherwise than one by one. The expectations are read from its registrar of
policies and from its two policies of concurrency."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.penstock_import.test_reviewed_changes import named, of_pack, texts

ACTION: dict[str, Any] = {
    "name": "act",
    "runner_type": "local-shell-cmd",
    "parameters": {
        "cmd": {"type": "string", "default": "true"},
        "name": {"type": "string", "required": True},
        "tag": {"type": "string"},
        "zone": {"type": "string", "required": True, "default": "a"},
    },
}


def policy(name: str = "few", **parameters: Any) -> dict[str, Any]:
    kind = "action.concurrency.attr" if "attributes" in parameters else "action.concurrency"
    return {
        "name": name,
        "resource_ref": "depot.act",
        "policy_type": kind,
        "parameters": {"threshold": 2, **parameters},
    }


def test_policy_whose_name_a_later_file_has_is_replaced(tmp_path: Path) -> None:
    files = {
        "actions/act.yaml": ACTION,
        "actions/other.yaml": ACTION | {"name": "other"},
        "policies/a.yaml": policy(),
        "policies/b.yaml": policy(threshold=3) | {"resource_ref": "depot.other"},
    }
    project, report = of_pack(tmp_path, files)
    assert "limits" not in project.actions["act"]
    assert project.actions["other"]["limits"] == [{"max": 3}]
    assert named(report, "policies/a.yaml:1 the policy few, which policies/b.yaml replaces"), texts(report)
    assert (report.found["policies"], report.mapped["policies"]) == (2, 1)


@pytest.mark.parametrize(("first", "second"), [("delay", "cancel"), ("cancel", "delay")])
def test_second_policy_that_acts_otherwise_is_a_gap(tmp_path: Path, first: str, second: str) -> None:
    files = {
        "actions/act.yaml": ACTION,
        "policies/a.yaml": policy("a", action=first),
        "policies/b.yaml": policy("b", action=second, attributes=["name"]),
    }
    project, report = of_pack(tmp_path, files)
    assert [limit.get("by") for limit in project.actions["act"]["limits"]] == [None]
    assert named(report, "policies/b.yaml:1 the policy b, which cancels or delays otherwise"), texts(report)
    assert report.mapped["policies"] == 1


def test_second_policy_that_acts_alike_is_mapped(tmp_path: Path) -> None:
    files = {
        "actions/act.yaml": ACTION,
        "policies/a.yaml": policy("a"),
        "policies/b.yaml": policy("b", action="delay", attributes=["name"]),
    }
    project, report = of_pack(tmp_path, files)
    assert project.actions["act"]["limits"] == [{"max": 2}, {"max": 2, "by": ["name"]}]
    assert report.mapped["policies"] == 2


@pytest.mark.parametrize(("attribute", "may_be_left_out"), [("name", False), ("tag", True), ("zone", True)])
def test_attribute_that_a_start_may_leave_out_is_named(
    tmp_path: Path, attribute: str, may_be_left_out: bool
) -> None:
    """Such a start counts with all others in StackStorm."""
    files = {"actions/act.yaml": ACTION, "policies/a.yaml": policy(attributes=[attribute])}
    _, report = of_pack(tmp_path, files)
    subject = f"policies/a.yaml:6 the attribute {attribute} of the policy few"
    assert named(report, subject) == may_be_left_out, texts(report)
    assert report.mapped["policies"] == 1


def test_second_policy_that_retries_is_a_gap(tmp_path: Path) -> None:
    """StackStorm asks both. The second one is left out here, and the first one stays."""
    retries = {"resource_ref": "depot.act", "policy_type": "action.retry"}
    files = {
        "actions/act.yaml": ACTION,
        "policies/a.yaml": {
            "name": "a",
            **retries,
            "parameters": {"retry_on": "failure", "max_retry_count": 3},
        },
        "policies/b.yaml": {
            "name": "b",
            **retries,
            "parameters": {"retry_on": "timeout", "max_retry_count": 1},
        },
    }
    project, report = of_pack(tmp_path, files)
    assert project.actions["act"]["retry"]["max_attempts"] == 4
    assert named(report, "policies/b.yaml:1 the policy b, which retries act beside another policy"), texts(
        report
    )
    assert report.mapped["policies"] == 1
