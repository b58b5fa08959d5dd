"""Lines of the report about a StackStorm pack are true, and nothing has a line that changes nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock.language.expressions import compile_template
from tests.penstock_import.test_reviewed_changes import named, of_pack, texts

RULE: dict[str, Any] = {
    "name": "go",
    "enabled": True,
    "trigger": {"type": "other.came"},
    "action": {"ref": "core.local", "parameters": {"cmd": "true"}},
}
FLOW = {"name": "flow", "runner_type": "orquesta", "entry_point": "workflows/flow.yaml"}


def with_command(command: Any) -> dict[str, Any]:
    return {"rules/go.yaml": RULE | {"action": {"ref": "core.local", "parameters": {"cmd": command}}}}


def test_comment_mark_in_a_text_without_expression_stays(tmp_path: Path) -> None:
    """StackStorm renders a text of a rule only if it has an expression in it."""
    project, report = of_pack(tmp_path, with_command("x=abc; echo ${#x}"))
    assert compile_template(project.rules["go"]["params"]["cmd"])({}) == "x=abc; echo ${#x}"
    assert report.mapped["rules"] == 1, texts(report)


def test_comment_in_a_text_with_expression_is_named(tmp_path: Path) -> None:
    _, report = of_pack(tmp_path, with_command("echo {# all #} {{ trigger.x }}"))
    assert any("a comment of Jinja" in text for text in texts(report))
    assert report.mapped["rules"] == 0


@pytest.mark.parametrize("target", ["a", "b"])
def test_transition_back_after_a_failure_has_one_line(tmp_path: Path, target: str) -> None:
    """The line of the circle names it: the transition leads back, and not nowhere."""
    back = {"when": "<% failed() %>", "publish": [{"n": 1}], "do": target}
    onward = {"when": "<% failed() %>", "do": "c"}
    tasks: dict[str, Any] = {
        "a": {"action": "core.local cmd=true", "next": [{"do": "b"}]},
        "b": {"action": "core.local cmd=true", "next": [back, onward]},
        "c": {"action": "core.noop"},
    }
    flow = {"version": 1.0, "tasks": tasks}
    _, report = of_pack(tmp_path, {"actions/flow.yaml": FLOW, "actions/workflows/flow.yaml": flow})
    assert any(f"b goes back to {target}" in text for text in texts(report)), texts(report)
    assert not any("leads nowhere" in text for text in texts(report)), texts(report)


def test_default_of_a_key_of_the_store_is_no_difference(tmp_path: Path) -> None:
    """StackStorm reads a missing key as an empty text, so that nothing fails."""
    _, report = of_pack(tmp_path, with_command("echo {{ st2kv.system.a | default(false) }}"))
    assert not any("`default` after a member" in text for text in texts(report)), texts(report)


@pytest.mark.parametrize(
    ("kind", "advice"),
    [
        ("rule", "StackStorm knows the types"),
        ({"ref": "other"}, "StackStorm knows the types"),
        ({"ref": "backstop"}, "covers the cases that no other rule covers"),
    ],
)
def test_type_of_a_rule_has_its_own_advice(tmp_path: Path, kind: Any, advice: str) -> None:
    project, report = of_pack(tmp_path, {"rules/go.yaml": RULE | {"type": kind}})
    assert any("type of rule go" in text and advice in text for text in texts(report)), texts(report)
    assert project.rules["go"]["enabled"] is False


def test_reference_without_a_pack_is_named_as_such(tmp_path: Path) -> None:
    _, report = of_pack(tmp_path, {"rules/go.yaml": RULE | {"action": {"ref": "nopack"}}})
    assert any("the action nopack, a reference without a pack" in text for text in texts(report))
    assert not any("of another pack" in text for text in texts(report)), texts(report)


def test_payload_info_of_a_trigger_is_ignored(tmp_path: Path) -> None:
    trigger = {"name": "came", "payload_info": ["x"], "payload_schema": {"type": "object"}}
    _, report = of_pack(tmp_path, {"triggers/came.yaml": trigger})
    assert report.mapped["triggers"] == 1, texts(report)
    assert named(report, "triggers/came.yaml:2 payload_info of trigger came: StackStorm ignores it")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{{ trigger }}", "the whole event, of which only trigger.body is the payload in Penstock"),
        ("a {{ trigger.msg }}", "the event of a webhook has only `body` and `headers`, and no `msg`"),
        ("{{ trigger.headers['X-Id'] }}", "a part of the event other than its body"),
        (
            "{% if trigger.msg %}a{% endif %}",
            "the event of a webhook has only `body` and `headers`, and no `msg`",
        ),
    ],
)
def test_part_beside_the_body_of_a_webhook_has_its_reason(tmp_path: Path, text: str, reason: str) -> None:
    webhook = {
        "name": "hook",
        "enabled": True,
        "trigger": {"type": "core.st2.webhook", "parameters": {"url": "x"}},
        "action": {"ref": "core.local", "parameters": {"cmd": text}},
    }
    _, report = of_pack(tmp_path, {"rules/hook.yaml": webhook})
    assert any(line.partition(" | ")[0].endswith(f"{text}: {reason}") for line in texts(report)), texts(
        report
    )


@pytest.mark.parametrize("runner", ["action-chain", "orquesta"])
def test_unmapped_expression_has_one_line(tmp_path: Path, runner: str) -> None:
    """An expression that is not mapped has no line for its type beside its own."""
    chain = {"chain": [{"name": "one", "ref": "other.act", "parameters": {"url": "{{ your-url }}"}}]}
    task = {"action": "other.act", "input": {"url": "{{ your }} 1"}}
    head = {"name": "flow", "runner_type": runner, "entry_point": "workflows/flow.yaml"}
    flow = chain if runner == "action-chain" else {"version": 1.0, "tasks": {"one": task}}
    files = {"actions/flow.yaml": head, "actions/workflows/flow.yaml": flow}
    _, report = of_pack(tmp_path, files)
    assert len([line for line in texts(report) if "{{ your" in line]) == 1, texts(report)
