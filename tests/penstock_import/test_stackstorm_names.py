"""Names that workflows of StackStorm read beside their own: keys of the store, ids, inquiries, names with dots."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from jinja2 import Environment

from penstock.language.expressions import compile_template
from penstock.language.terms.sources import Source
from penstock.language.workflows.serialization import from_value
from penstock.testing import Simulation
from penstock.testing.memory_workflow import MemoryWorkflow
from penstock_import.action_chain import ActionChain
from penstock_import.applied import keep_applicable
from penstock_import.consumed import read_tree
from penstock_import.orquesta import KnownAction
from penstock_import.orquesta_expressions import template
from penstock_import.orquesta_names import OrquestaNames, Surroundings
from penstock_import.stackstorm import StackStormPack
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
    with pytest.raises(NotMapped, match="not text"):
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


def test_question_with_computed_texts_is_inquiry(tmp_path: Path) -> None:
    """A description and a route are texts for people and rules; nothing of the workflow depends on them."""
    schema = {
        "type": "object",
        "properties": {"sure": {"type": "boolean", "description": "Is <% ctx(word) %> right?"}},
    }
    branches = [
        {"when": "<% result().response.sure %>", "do": "yes"},
        {"when": "<% not result().response.sure %>", "do": "no"},
        {"when": "<% failed() %>", "do": "late"},
    ]
    say = {"action": "core.local", "input": {"cmd": "true"}}
    workflow = {
        "vars": [{"word": "pen"}],
        "tasks": {
            "ask": {
                "action": "core.ask",
                "input": {"route": "to <% ctx(word) %>", "schema": schema},
                "next": branches,
            },
            "yes": say | {"next": [{"do": "more"}]},
            **dict.fromkeys(("more", "no", "late"), say),
        },
    }
    simulation, report = imported(tmp_path, workflow)
    assert report.mapped["workflows"] == 1, report.gaps
    gaps = [gap.what for gap in report.gaps if not gap.what.startswith("expressions with")]
    assert gaps == ["the route to <% ctx(word) %> of an inquiry"]
    asked = yaml.safe_load((tmp_path / "ours" / "workflows.yaml").read_text())["flow"]["tasks"]["ask"][
        "inquiry"
    ]
    assert compile_template(asked["prompt"])({"context": {"word": "pen"}}) == "Is pen right?"
    assert asked["schema"] == {"type": "object", "properties": {"sure": {"type": ["boolean", "null"]}}}
    simulation.answer("ask", {"sure": True})
    run = simulation.run("depot.flow")
    assert (run.status, run.tasks["more"], run.tasks.get("late")) == ("completed", "completed", "skipped")


def test_part_that_stackstorm_ignores_is_named_apart(tmp_path: Path) -> None:
    task = {"action": "core.local cmd='true' and more", "input": {"cmd": "false"}}
    simulation, report = imported(tmp_path, {"tasks": {"one": task}})
    assert (report.mapped["workflows"], report.found["ignored parts"]) == (1, 2)
    assert [gap.what.partition(":")[0] for gap in report.gaps] == [
        "the input {'cmd'",
        "`and more` behind the action of one",
    ]
    assert simulation.run("depot.flow").status == "completed"


def test_text_that_publishes_nothing_is_named(tmp_path: Path) -> None:
    """Orquesta reads a value only directly behind `=`."""
    step = {"when": "<% succeeded() %>", "publish": "size= <% result().stdout %> unit='kg'"}
    flow = {"vars": [{"size": 1}], "tasks": {"one": {"action": "core.local cmd='true'", "next": [step]}},
            "output": [{"size": "<% ctx(size) %>"}, {"unit": "<% ctx(unit) %>"}]}  # fmt: skip
    simulation, report = imported(tmp_path, flow)
    assert "`size= <% result().stdout %>`, which sets no variable: StackStorm ignores it" in {
        gap.what for gap in report.gaps
    }
    assert simulation.run("depot.flow").result == {"size": 1, "unit": "kg"}


@pytest.mark.parametrize(("concurrency", "at_once"), [(None, 3), (0, 1), (2, 2)])
def test_concurrency_of_null_runs_all_items_at_once(
    tmp_path: Path, concurrency: int | None, at_once: int
) -> None:
    items = {"items": "<% [1, 2, 3] %>", "concurrency": "<% ctx(n) %>"}
    flow = {
        "vars": [{"n": concurrency}],
        "tasks": {"one": {"action": "core.local cmd=<% item() %>", "with": items}},
    }
    _, report = imported(tmp_path, flow)
    body = yaml.safe_load((tmp_path / "ours" / "workflows.yaml").read_text())["flow"]
    world = MemoryWorkflow(from_value({"workflow": "depot.flow", **body}, Source("x", 1)), {}).begin()
    assert len(world.open) == at_once
    assert [gap.what for gap in report.gaps] == ["the concurrency of one is computed: <% ctx(n) %>"]


def test_task_of_a_chain_may_begin_with_a_digit(tmp_path: Path) -> None:
    pack = tmp_path / "depot"
    chain = {"chain": [{"name": "one", "ref": "core.noop", "on-success": "0_two"}, {"name": "0_two", "ref": "core.noop"}],
             "default": "one"}  # fmt: skip
    for name, content in {
        "pack.yaml": {"name": "depot"},
        "actions/row.yaml": {"name": "row", "runner_type": "action-chain", "entry_point": "chains/row.yaml"},
        "actions/chains/row.yaml": chain,
    }.items():
        (pack / name).parent.mkdir(parents=True, exist_ok=True)
        (pack / name).write_text(yaml.safe_dump(content))
    source = StackStormPack(pack)
    project = source.mapped()
    keep_applicable(project, source.report)
    assert (source.report.mapped["workflows"], source.report.applied["workflows"]) == (1, 1), (
        source.report.gaps
    )
    project.write(tmp_path / "ours", "", source.report)
    assert Simulation(str(tmp_path / "ours")).run("depot.row").ran == ["one", "x_0_two"]


@pytest.mark.parametrize(
    ("default", "name"),
    [
        ("{{ st2kv.system.token }}", "token"),
        ("{{st2kv.system.depot.token | decrypt_kv}}", "depot_token"),
        ("{{ config_context.token }}", "config_context_token"),
    ],
)
def test_immutable_value_of_the_store_is_secret(tmp_path: Path, default: str, name: str) -> None:
    pack = tmp_path / "depot"
    parameters = {"token": {"type": "string", "default": default, "immutable": True, "required": True}}
    workflow = {
        "input": ["token"],
        "tasks": {"one": {"action": "core.local", "input": {"cmd": "say <% ctx(token) %>"}}},
    }
    chain = {"chain": [{"name": "one", "ref": "core.local", "parameters": {"cmd": "say {{ token }}"}}]}
    for folder, runner, content in (("flow", "orquesta", workflow), ("row", "action-chain", chain)):
        (pack / "actions" / "workflows").mkdir(parents=True, exist_ok=True)
        head = {"name": folder, "runner_type": runner, "entry_point": f"workflows/{folder}.yaml"}
        (pack / "actions" / f"{folder}.yaml").write_text(yaml.safe_dump(head | {"parameters": parameters}))
        (pack / "actions" / "workflows" / f"{folder}.yaml").write_text(yaml.safe_dump(content))
    (pack / "pack.yaml").write_text(
        "ref: depot\nname: depot\ndescription: Pens.\nversion: 1.0.0\nauthor: Pat\n"
    )
    source = StackStormPack(pack)
    project = source.mapped()
    keep_applicable(project, source.report)
    assert (source.report.mapped["workflows"], source.report.applied["workflows"]) == (2, 2), (
        source.report.gaps
    )
    assert source.report.found["keys of the store"] == 1
    for workflow_name in ("flow", "row"):
        made = project.workflows[workflow_name]
        assert made["tasks"]["one"]["input"] == {"cmd": f"say {{{{ secrets.{name} }}}}"}
        assert not made.get("parameters")


def test_callers_give_defaults_of_the_store_that_they_leave_out(tmp_path: Path) -> None:
    pack = tmp_path / "depot"
    (pack / "actions" / "workflows").mkdir(parents=True)
    (pack / "rules").mkdir()
    host = {"type": "string", "default": "{{ config_context.remote.host }}"}
    token = {"type": "string", "default": "{{ st2kv.system.token | decrypt_kv }}", "secret": True}
    say = {"action": "core.local", "input": {"cmd": "say <% ctx(host) %>"}}
    call = {"action": "depot.inner", "input": {"token": "t"}}
    flows: dict[str, Any] = {
        "inner": ({"host": host, "token": token}, {"input": ["host", "token"], "tasks": {"one": say}}),
        "outer": ({}, {"tasks": {"none": {"action": "depot.inner"}, "token": call}}),
    }
    for name, (described, body) in flows.items():
        head = {"name": name, "runner_type": "orquesta", "entry_point": f"workflows/{name}.yaml"}
        (pack / "actions" / f"{name}.yaml").write_text(yaml.safe_dump(head | {"parameters": described}))
        (pack / "actions" / "workflows" / f"{name}.yaml").write_text(yaml.safe_dump(body, sort_keys=False))
    rule = {
        "name": "fire",
        "enabled": True,
        "type": {"ref": "standard", "parameters": None},
        "trigger": {"type": "depot.came"},
        "action": {"ref": "depot.inner", "parameters": {"host": "h"}},
    }
    (pack / "rules" / "fire.yaml").write_text(yaml.safe_dump(rule))
    (pack / "pack.yaml").write_text(
        "ref: depot\nname: depot\ndescription: Pens.\nversion: 1.0.0\nauthor: Pat\n"
    )
    source = StackStormPack(pack)
    project = source.mapped()
    keep_applicable(project, source.report)
    stored = {
        "host": "{{ secrets.config_context_remote_host }}",
        "token": "{{ secrets.token }}",
    }
    tasks = project.workflows["outer"]["tasks"]
    assert tasks["none"]["input"] == stored
    assert tasks["token"]["input"] == {"host": stored["host"], "token": "t"}
    assert project.rules["fire"]["params"] == {"host": "h", "token": stored["token"]}
    assert project.rules["fire"].get("enabled", True)
    assert source.report.applied["workflows"] == 2
    assert source.report.mapped["workflows"] == 1
    assert source.report.mapped["rules"] == 1, source.report.gaps


def test_action_with_an_unmapped_default_may_be_called_without_it(tmp_path: Path) -> None:
    """Its own line says what its function has to read. Its callers are mapped."""
    pack = tmp_path / "depot"
    (pack / "actions" / "workflows").mkdir(parents=True)
    described = {
        "path": {"type": "string", "default": "{{ config_context.path }}", "required": True},
        "body": {"type": "object", "default": {"path": "{{ path }}"}, "immutable": True, "required": True},
    }
    act = {"name": "act", "runner_type": "python-script", "entry_point": "act.py", "parameters": described}
    flow = {"name": "flow", "runner_type": "orquesta", "entry_point": "workflows/flow.yaml"}
    (pack / "actions" / "act.yaml").write_text(yaml.safe_dump(act))
    (pack / "actions" / "flow.yaml").write_text(yaml.safe_dump(flow))
    (pack / "actions" / "workflows" / "flow.yaml").write_text("tasks: {one: {action: depot.act}}\n")
    (pack / "pack.yaml").write_text(
        "ref: depot\nname: depot\ndescription: Pens.\nversion: 1.0.0\nauthor: Pat\n"
    )
    source = StackStormPack(pack)
    project = source.mapped()
    keep_applicable(project, source.report)
    assert project.actions["act"]["parameters"].keys() == {"path"}
    assert source.report.mapped["workflows"] == source.report.applied["workflows"] == 1, source.report.gaps
    named = {gap.what for gap in source.report.gaps if gap.file == "actions/act.yaml"}
    assert {f"the default {described[name]['default']} of parameter {name}" for name in described} <= named


def test_immutable_value_of_the_store_is_refused_where_it_is_computed_with(tmp_path: Path) -> None:
    pack = tmp_path / "depot"
    (pack / "actions" / "workflows").mkdir(parents=True)
    parameters = {"token": {"type": "string", "default": "{{ config_context.token }}", "immutable": True}}
    head = {
        "name": "flow",
        "runner_type": "orquesta",
        "entry_point": "workflows/flow.yaml",
        "parameters": parameters,
    }
    step = {"when": "<% ctx(token) = 'a' %>", "publish": [{"word": "<% ctx(token) %>"}]}
    task = {"action": "core.local", "input": {"cmd": "say <% ctx(token).len() %>"}, "next": [step]}
    (pack / "pack.yaml").write_text(
        "ref: depot\nname: depot\ndescription: Pens.\nversion: 1.0.0\nauthor: Pat\n"
    )
    (pack / "actions" / "flow.yaml").write_text(yaml.safe_dump(head))
    (pack / "actions" / "workflows" / "flow.yaml").write_text(
        yaml.safe_dump({"input": ["token"], "tasks": {"one": task}})
    )
    source = StackStormPack(pack)
    source.mapped()
    refused = [
        gap.what for gap in source.report.gaps if "store" in gap.what and "of the pack's" not in gap.what
    ]
    assert len(refused) == 3, source.report.gaps


TEXT = "a\n  {% if ctx().n > 1 %}\n  {% set word = ctx().word | upper %}\n  {{ word }}\n  {% endif %}\nz\n"


@pytest.mark.parametrize("n", [1, 2])
def test_text_with_blocks_is_rendered_as_by_jinja(n: int) -> None:
    names = OrquestaNames("task", {"n", "word"})
    environment = Environment(trim_blocks=True, lstrip_blocks=True)
    theirs = environment.from_string(TEXT).render(ctx=lambda: {"n": n, "word": "pen"})
    assert compile_template(template(TEXT, names))({"context": {"n": n, "word": "pen"}}) == theirs


@pytest.mark.parametrize(
    "text",
    [
        "{% if ctx().n %}<% ctx().n %>{% endif %}",
        "{% raw %}{{ a }}{% endraw %}",
        "{% if ctx().n\n %}a{% endif %}",
    ],
)
def test_text_with_blocks_that_orquesta_reads_otherwise_is_refused(text: str) -> None:
    with pytest.raises(NotMapped):
        template(text, OrquestaNames("task", {"n"}))


def test_changed_name_of_a_pack_is_named(tmp_path: Path) -> None:
    (tmp_path / "pack.yaml").write_text(
        "name: Dry dock\nref: dry-dock\ndescription: d\nversion: 1.0.0\nauthor: a\n"
    )
    source = StackStormPack(tmp_path)
    assert source.mapped().name == "dry_dock"
    gaps = [(gap.file, gap.line, gap.what) for gap in source.report.gaps]
    assert gaps == [
        ("pack.yaml", 2, "the pack dry-dock is named dry_dock in Penstock"),
        ("pack.yaml", 2, "the ref of the pack, dry-dock"),
    ]


@pytest.mark.parametrize(
    ("expression", "kinds"),
    [
        ("ctx(a) in ctx(b)", {"`in` with a mapping"}),
        ("ctx(a) in [1, 2]", set()),
        ("ctx(a) + ctx(b)", {"a sum with a truth value"}),
        ("ctx(a) + 'b'", set()),
        ("ctx(a)[0]", {"an index of a text"}),
        ("ctx().a.b", {"a member of a list"}),
        ("ctx().a", set()),
        ("str(ctx(a)[0] + 1)", {"an index of a text", "a sum with a truth value"}),
    ],
)
def test_expression_with_a_value_of_its_own_is_named_once(
    tmp_path: Path, expression: str, kinds: set[str]
) -> None:
    (tmp_path / "actions").mkdir()
    (tmp_path / "pack.yaml").write_text(
        "ref: depot\nname: depot\ndescription: Pens.\nversion: 1.0.0\nauthor: Pat\n"
    )
    output = f"output:\n  - c: <% {expression} %>\n  - d: <% {expression} %>\n"
    flow = f"input: [a, b]\ntasks:\n  one:\n    action: core.noop\n{output}"
    for name in ("one", "two"):
        head = f"name: {name}\nrunner_type: orquesta\nentry_point: {name}.txt\nparameters: {{a: {{}}, b: {{}}}}\n"
        (tmp_path / "actions" / f"{name}.yaml").write_text(head)
        (tmp_path / "actions" / f"{name}.txt").write_text(flow)
    source = StackStormPack(tmp_path)
    source.mapped()
    lines = [(gap.file, gap.line, gap.what.removeprefix("expressions with ").partition(",")[0])
             for gap in source.report.gaps if gap.what.startswith("expressions with")]  # fmt: skip
    assert sorted(lines) == sorted(("actions/one.txt", 6, kind) for kind in kinds)


def test_parameter_of_the_runner_without_a_default_is_named(tmp_path: Path) -> None:
    (tmp_path / "actions").mkdir()
    (tmp_path / "pack.yaml").write_text(
        "ref: depot\nname: depot\ndescription: Pens.\nversion: 1.0.0\nauthor: Pat\n"
    )
    (tmp_path / "actions" / "a.yaml").write_text(
        "name: a\nrunner_type: python-script\nentry_point: a.py\n"
        "parameters:\n  debug: {type: boolean}\n  b: {type: string}\n"
    )
    source = StackStormPack(tmp_path)
    assert list(source.mapped().actions["a"]["parameters"]) == ["b"]
    assert any(
        (gap.line, gap.what) == (5, "the parameter debug of action a, which is one of its runner")
        for gap in source.report.gaps
    )
