"""Parts of StackStorm's files that change nothing of what is run have a line, and leave their definition mapped."""

from __future__ import annotations

from pathlib import Path

from tests.penstock_import.test_reviewed_changes import of_pack, texts


def test_tags_are_named_and_change_nothing(tmp_path: Path) -> None:
    tags = [{"name": "a", "value": "b"}]
    action = {"name": "go", "runner_type": "orquesta", "entry_point": "workflows/go.yaml", "tags": tags}
    rule = {
        "name": "go",
        "enabled": True,
        "trigger": {"type": "other.came"},
        "action": {"ref": "depot.go"},
        "tags": tags,
    }
    flow = {"version": 1.0, "tasks": {"one": {"action": "core.noop"}}}
    files = {"actions/go.yaml": action, "actions/workflows/go.yaml": flow, "rules/go.yaml": rule}
    project, report = of_pack(tmp_path, files)
    assert (report.mapped["workflows"], report.mapped["rules"], report.found["tags"]) == (1, 1, 2)
    assert project.rules["go"].get("enabled") is not False
    assert any(text.startswith("actions/go.yaml:") and "tags of action go" in text for text in texts(report))


def test_task_of_a_chain_to_which_nothing_leads_is_named_as_ignored(tmp_path: Path) -> None:
    action = {"name": "go", "runner_type": "action-chain", "entry_point": "chains/go.yaml"}
    chain = [{"name": "one", "ref": "core.noop"}, {"name": "two", "ref": "core.noop"}]
    project, report = of_pack(
        tmp_path, {"actions/go.yaml": action, "actions/chains/go.yaml": {"default": "one", "chain": chain}}
    )
    assert report.mapped["workflows"] == 1
    assert list(project.workflows["go"]["tasks"]) == ["one"]
    assert any(
        "two, to which no task of the chain leads: StackStorm ignores it" in text for text in texts(report)
    )
