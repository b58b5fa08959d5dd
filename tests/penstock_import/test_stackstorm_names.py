"""Names that workflows of StackStorm read beside their own: keys of the store, ids, inquiries, names with dots."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from penstock.language.expressions import compile_template
from penstock_import.action_chain import ActionChain
from penstock_import.consumed import read_tree
from penstock_import.orquesta import KnownAction
from penstock_import.orquesta_expressions import template
from penstock_import.orquesta_names import OrquestaNames, Surroundings
from penstock_import.stackstorm_rules import parameters
from penstock_import.wanted_text import NotMapped
from tests.penstock_import.test_stackstorm_failures import imported

KEYS: list[str] = []


def note(key: str) -> str:
    KEYS.append(key)
    return key.replace(".", "_")


HERE = Surroundings("depot", "flow", note)
INPUT = OrquestaNames("task", {"a", "b.c"}, surroundings=HERE)
AT_END = OrquestaNames("end", {"a"}, shapes={"first": "plain"}, task="first", surroundings=HERE)


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("<% st2kv('system.token') %>", "{{ secrets.token }}"),
        ("<% st2kv('system.token', decrypt => true) %>", "{{ secrets.token }}"),
        ("Bearer {{ st2kv('system.token', decrypt=true) }}", "Bearer {{ secrets.token }}"),
        ("<% ctx().st2.action_execution_id %>", "{{ system.id }}"),
        ("{{ ctx('st2').pack }}", '{{ "depot" }}'),
        ("<% ctx(st2).action %>", '{{ "depot.flow" }}'),
        ("<% ctx('b.c') %>", "{{ context.b_c }}"),
    ],
)
def test_name_of_surroundings_is_mapped(theirs: str, ours: str) -> None:
    assert template(theirs, INPUT) == ours


@pytest.mark.parametrize(
    ("theirs", "names"),
    [
        ("<% st2kv('system.token') + 'x' %>", INPUT),
        ("{{ st2kv('system.token') | upper }}", INPUT),
        ("<% st2kv('user.token') %>", INPUT),
        ("<% st2kv(ctx(a)) %>", INPUT),
        ("<% st2kv('system.token', default => 1) %>", INPUT),
        ("<% st2kv('system.token') %>", OrquestaNames("end", {"a"}, task="first")),
        ("<% ctx().st2.api_url %>", INPUT),
        ("<% ctx().st2 %>", INPUT),
        ("<% task(other).task_name %>", AT_END),
    ],
)
def test_name_of_surroundings_without_equal_is_refused(theirs: str, names: OrquestaNames) -> None:
    with pytest.raises(NotMapped):
        template(theirs, names)


def test_name_of_task_is_read_at_its_end() -> None:
    assert template("<% task().task_name %>", AT_END) == '{{ "first" }}'


def test_key_is_parameter_of_rule() -> None:
    assert (
        parameters("{{ st2kv.system.room.name }}", "string", surroundings=HERE) == "{{ secrets.room_name }}"
    )
    with pytest.raises(NotMapped, match="no text"):
        parameters("{{ st2kv.system.count }}", "integer", surroundings=HERE)


def test_keys_are_named_once_and_counted_apart(tmp_path: Path) -> None:
    workflow = {
        "tasks": {
            "first": {"action": "core.echo", "input": {"message": "<% st2kv('system.greeting') %>"}},
            "second": {"action": "core.echo", "input": {"message": "{{ st2kv('system.greeting') }}"}},
        }
    }
    _, report = imported(tmp_path, workflow)
    assert (report.mapped["workflows"], report.found["keys of the store"]) == (1, 1)
    assert "penstock secrets set greeting" in report.gaps[0].by_hand


def test_names_with_dots_are_variables(tmp_path: Path) -> None:
    workflow = {
        "vars": [{"first.host": "a"}],
        "tasks": {
            "one": {
                "action": "core.local",
                "input": {"cmd": "echo <% ctx('first.host') %>"},
                "next": [{"publish": [{"all.hosts": "<% result().stdout %>"}]}],
            }
        },
        "output": [{"hosts": "<% ctx('all.hosts') %>"}],
    }
    simulation, report = imported(tmp_path, workflow)
    assert report.mapped["workflows"] == 1, report.gaps
    assert simulation.run("depot.flow").result == {"hosts": "a"}


def test_two_names_that_become_one_are_named(tmp_path: Path) -> None:
    workflow = {"vars": [{"a.b": 1}, {"a_b": 2}], "tasks": {"one": {"action": "core.noop"}}}
    _, report = imported(tmp_path, workflow)
    assert [gap.what for gap in report.gaps] == ["the name a.b"]


ASK = {
    "tasks": {
        "ask": {
            "action": "core.ask",
            "input": {
                "route": "developers",
                "ttl": 60,
                "users": ["ann"],
                "schema": {
                    "type": "object",
                    "properties": {
                        "approved": {"type": "boolean", "description": "Go on?", "required": True}
                    },
                },
            },
            "next": [
                {"when": "<% task(ask).result.response.approved %>", "do": "yes"},
                {"when": "<% not result().response.approved %>", "do": "no"},
            ],
        },
        "yes": {"action": "core.local", "input": {"cmd": "true"}},
        "no": {"action": "core.local", "input": {"cmd": "true"}},
    },
}


@pytest.mark.parametrize(("answer", "runs"), [(True, "yes"), (False, "no")])
def test_question_is_inquiry(tmp_path: Path, answer: bool, runs: str) -> None:
    simulation, report = imported(tmp_path, ASK)
    assert report.mapped["workflows"] == 1, report.gaps
    assert report.found["routes of inquiries"] == 1
    workflow = yaml.safe_load((tmp_path / "ours" / "workflows.yaml").read_text())["flow"]
    assert workflow["tasks"]["ask"]["inquiry"] == {
        "prompt": "Go on?",
        "schema": {
            "type": "object",
            "properties": {"approved": {"type": "boolean", "description": "Go on?"}},
            "required": ["approved"],
        },
        "timeout": 3600,
        "assignee": "ann",
    }
    simulation.answer("ask", {"approved": answer})
    run = simulation.run("depot.flow")
    assert (run.status, run.tasks[runs]) == ("completed", "completed")


@pytest.mark.parametrize(
    ("key", "value"),
    [("users", ["ann", "bob"]), ("roles", ["admin"]), ("ttl", "<% ctx(a) %>"), ("colour", "red")],
)
def test_option_of_question_without_equal_is_named(tmp_path: Path, key: str, value: Any) -> None:
    workflow = {"input": ["a"], "tasks": {"ask": {"action": "core.ask", "input": {key: value}}}}
    _, report = imported(tmp_path, workflow)
    assert report.mapped["workflows"] == 0
    assert any(key in gap.what for gap in report.gaps)


def test_default_in_answer_is_named(tmp_path: Path) -> None:
    """StackStorm fills in what an answer lacks."""
    schema = {"type": "object", "properties": {"days": {"type": "integer", "default": 3}}}
    _, report = imported(tmp_path, {"tasks": {"ask": {"action": "core.ask", "input": {"schema": schema}}}})
    assert any("schema of the inquiry ask" in gap.what for gap in report.gaps)


def test_chain_reads_lines_keys_and_its_id(tmp_path: Path) -> None:
    """Jinja takes expressions over several lines, and a description says nothing to StackStorm."""
    chain = {
        "chain": [
            {
                "name": "first",
                "ref": "core.local",
                "description": "says it",
                "params": {
                    "cmd": "echo {{ word\n | upper }} {{ st2kv.system.host }} {{ action_context.parent.execution_id }}"
                },
            }
        ]
    }
    (tmp_path / "chain.yaml").write_text(yaml.safe_dump(chain))
    root, gaps = read_tree(tmp_path / "chain.yaml"), []
    mapped = ActionChain(
        lambda _, subject, __: gaps.append(subject),
        lambda ref, _: KnownAction(ref),
        lambda _: {"cmd": "string"},
        HERE,
    ).workflow(root, {"word": {"type": "string"}})
    assert (gaps, list(root.left())) == ([], [])
    command = mapped["tasks"]["first"]["input"]["cmd"]
    assert "{{ secrets.host }}" in command
    values = {"context": {"word": "pen"}, "system": {"id": "7"}}
    assert compile_template(command.replace("{{ secrets.host }}", "h"))(values) == "echo PEN h 7"
