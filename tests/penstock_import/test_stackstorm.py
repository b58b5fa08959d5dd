"""`penstock import stackstorm`: a pack becomes a project that has no fault, and what is left is listed with file and line."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from penstock.cli import build
from penstock.testing import Simulation
from penstock_import.consumed import read_tree
from penstock_import.orquesta import KnownAction, Orquesta
from penstock_import.orquesta_expressions import condition, template
from penstock_import.orquesta_names import OrquestaNames
from penstock_import.stackstorm_rules import criterion
from penstock_import.wanted_text import NotMapped

NAMES = OrquestaNames("task", {"a", "b", "name", "a" * 200}, shapes={"build": "plain"})
AT_END = OrquestaNames("end", {"a"}, shapes={"here": "plain"}, task="here")

PACK = {
    "pack.yaml": "ref: depot\nname: depot\nversion: 1.0.0\n",
    "triggers/arrived.yaml": "name: arrived\npack: depot\npayload_schema: {type: object}\n",
    "actions/date.yaml": """
name: date
runner_type: local-shell-cmd
entry_point: ""
parameters:
  cmd: {type: string, immutable: true, default: date -u}
""",
    "actions/weigh.yaml": """
name: weigh
runner_type: python-script
entry_point: weigh.py
parameters:
  crate: {type: string, required: true}
  key: {type: string, secret: true, default: "{{ config_context.key }}"}
""",
    "actions/unload.yaml": """
name: unload
runner_type: orquesta
entry_point: workflows/unload.yaml
parameters:
  crates: {type: array, required: true}
  limit: {type: integer, default: 10}
""",
    "actions/workflows/unload.yaml": """
version: 1.0
input:
  - crates
  - limit
vars:
  - heavy: 0
tasks:
  weigh:
    with: {items: <% ctx().crates %>, concurrency: 2}
    action: depot.weigh crate=<% item() %>
    retry: {count: 2, delay: 5}
    next:
      - when: <% succeeded() and ctx().limit > 3 %>
        publish:
          - heavy: <% result().len() %>
        do: tell
      - when: <% failed() %>
        do: fail
  tell:
    action: core.echo message=<% ctx(heavy) %>
    next:
      - when: <% result().values().where($.x > 1) %>
        do: again
      - do: weigh
  again:
    action: other.thing
    next:
      - do: quiet, often, late, computed
  quiet: {action: core.noop}
  often: {with: <% ctx(crates) %>, action: core.noop, retry: {count: 2}}
  late: {delay: 3}
  computed:
    action: <% ctx(limit) %>
    with: <% ctx(crates) %>
    retry: {count: 2}
    delay: 1
    input: {crate: <% item() %>}
output:
  - heavy: <% ctx().heavy %>
""",
    "rules/arrivals.yaml": """
name: arrivals
pack: depot
enabled: true
trigger: {type: depot.arrived}
criteria:
  trigger.port: {type: eq, pattern: Bath}
  trigger.weight: {type: greaterthan, pattern: 100}
action:
  ref: depot.unload
  parameters: {crates: "{{ trigger.crates }}"}
""",
    "rules/odd.yaml": """
name: odd
pack: depot
trigger: {type: depot.arrived}
criteria:
  trigger.port: {type: regex, pattern: "^B+"}
action: {ref: depot.date}
""",
    "rules/nightly.yaml": """
name: nightly
pack: depot
enabled: true
trigger: {type: core.st2.CronTimer, parameters: {hour: 2, minute: 0, timezone: Europe/Paris}}
action: {ref: depot.date}
""",
    "actions/night.yaml": "name: night\nrunner_type: orquesta\nentry_point: workflows/night.yaml\n",
    "actions/workflows/night.yaml": """
tasks:
  all:
    action: depot.unload crates=<% [] %>
    retry: {count: 3}
""",
    "policies/one.yaml": "name: one\nresource_ref: depot.weigh\n",
}


@pytest.fixture
def project_folder(tmp_path: Path) -> Path:
    for name, text in PACK.items():
        file = tmp_path / "theirs" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    ran = CliRunner().invoke(
        build(), ["import", "stackstorm", str(tmp_path / "theirs"), "--into", str(tmp_path / "ours")]
    )
    assert ran.exit_code == 0, ran.output
    return tmp_path / "ours"


def test_an_imported_pack_has_no_fault(project_folder: Path) -> None:
    ran = CliRunner().invoke(build(), ["lint", str(project_folder)])
    assert (ran.exit_code, "no fault" in ran.output) == (0, True), ran.output


def test_a_feature_with_an_equal_is_mapped(project_folder: Path) -> None:
    workflow = yaml.safe_load((project_folder / "workflows.yaml").read_text())["unload"]
    weigh = workflow["tasks"]["weigh"]
    assert weigh["action"] == "depot.weigh"
    assert weigh["input"] == {"crate": "{{ item }}"}
    assert (weigh["with_items"], weigh["concurrency"]) == ("{{ context.crates }}", 2)
    assert "retry" not in weigh  # of a task with items StackStorm runs all of them again
    assert "item_failures" not in weigh  # all items run, as there with a concurrency above 1
    assert weigh["next"][0] == {
        "when": "succeeded() and (context.limit is not none and context.limit > 3)",
        "publish": {"heavy": '{{ (result if result else {"items": []}) | length }}'},
        "do": ["tell"],
    }
    assert weigh["next"][1] == {"when": "failed() and not cancelled()", "do": ["fail"]}
    night = yaml.safe_load((project_folder / "workflows.yaml").read_text())["night"]
    assert night["tasks"]["all"] == {"workflow": "depot.unload", "input": {"crates": "{{ [] }}"}}
    rules = yaml.safe_load((project_folder / "rules.yaml").read_text())
    when = '((payload.port | default(none)) == "Bath") and ((payload.weight | default(none)) > 100)'
    assert rules["arrivals"]["when"] == when
    assert "enabled" not in rules["arrivals"]
    parsed = "{{ (payload.crates | fromjson) if payload.crates is string else payload.crates }}"
    assert rules["arrivals"]["params"] == {"crates": parsed}
    assert yaml.safe_load((project_folder / "schedules.yaml").read_text())["nightly"]["cron"] == "0 2 * * *"
    assert yaml.safe_load((project_folder / "actions.yaml").read_text())["date"]["timeout"] == 60
    assert "run_shell(command" in (project_folder / "depot_actions.py").read_text()


def test_each_gap_is_listed_with_file_and_line(project_folder: Path) -> None:
    page = (project_folder / "IMPORT.md").read_text()
    for phrase in (
        "actions/weigh.yaml:3 | action weigh of the runner python-script",
        "actions/weigh.yaml:7 | the default {{ config_context.key }} of parameter key",
        "actions/workflows/unload.yaml:23 | when <% result().values().where($.x > 1) %>",
        "actions/workflows/unload.yaml:25 | tell goes back to weigh",
        "actions/workflows/unload.yaml:27 | the action other.thing of another pack",
        "actions/workflows/unload.yaml:34 | the action of computed is computed: <% ctx(limit) %>",
        "rules/odd.yaml:6 | the criterion trigger.port",
        "actions/workflows/unload.yaml:12 | retry of weigh, which runs all items again",
        "actions/workflows/night.yaml:5 | retry of the workflow all",
        "policies/one.yaml:1 | a policy: one",
        "| rules | 2 | 1 | 2 |",
    ):
        assert phrase in page, page


def test_nothing_to_do_is_a_function_where_it_is_repeated_or_late(project_folder: Path) -> None:
    tasks = yaml.safe_load((project_folder / "workflows.yaml").read_text())["unload"]["tasks"]
    assert tasks["quiet"] == {"action": "noop"}
    assert tasks["often"]["action"] == tasks["late"]["action"] == "depot.core_noop"
    assert (tasks["often"]["with_items"], tasks["late"]["delay"]) == ("{{ context.crates }}", 3)


def test_a_task_whose_action_is_computed_fails_until_it_is_written(project_folder: Path) -> None:
    tasks = yaml.safe_load((project_folder / "workflows.yaml").read_text())["unload"]["tasks"]
    assert tasks["computed"] == {
        "action": "fail",
        "input": {"message": "to do: write a task for each action that computed may run"},
    }


def test_a_rule_whose_criterion_is_not_mapped_matches_nothing_meanwhile(project_folder: Path) -> None:
    assert yaml.safe_load((project_folder / "rules.yaml").read_text())["odd"]["enabled"] is False


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("<% ctx().a.b %>", "{{ context.a.b }}"),
        ("<% ctx('a') %> and <% ctx(b) %>", "{{ context.a }} and {{ context.b }}"),
        ("<% task(build).result.stdout %>", "{{ tasks.build.result.stdout }}"),
        ("<% ctx().name = 'ctx().x' %>", '{{ context.name == "ctx().x" }}'),
        ("plain", "plain"),
    ],
)
def test_expressions_with_an_equal(theirs: str, ours: str) -> None:
    assert template(theirs, NAMES) == ours


@pytest.mark.parametrize(
    "theirs",
    [
        "<% $.x %>",
        "<% ctx().unknown %>",
        "{{ ctx('a') }} and <% ctx(b) %>",
        "{{ st2kv.system.a }}",
        "<% st2kv(a) %>",
    ],
)
def test_expressions_without_one(theirs: str) -> None:
    with pytest.raises(NotMapped):
        template(theirs, NAMES)


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        ({"when": "<% failed() %>", "do": "noop"}, "completed"),
        ({"when": "<% failed() %>", "do": "continue"}, "failed"),
        ({"when": "<% completed() %>", "publish": [{"x": 2}]}, "failed"),
        ({"when": "<% failed() %>", "do": ["after"]}, "completed"),
        ({"do": ["after"]}, "completed"),
        ({"when": "<% succeeded() %>", "do": ["after"]}, "failed"),
        ({"when": "<% failed() %>", "do": ["after", "fail"]}, "failed"),
    ],
)
def test_failure_is_handled_as_by_orquesta(tmp_path: Path, step: dict[str, object], expected: str) -> None:
    """The expectations are what Orquesta's own conductor did with these workflows."""
    tasks = {"first": {"action": "p.breaks", "next": [step]}}
    if "after" in str(step):
        tasks["after"] = {"action": "p.works"}
    text = yaml.safe_dump({"vars": [{"x": 1}], "tasks": tasks, "output": [{"x": "<% ctx().x %>"}]})
    (tmp_path / "flow.yaml").write_text(text)
    gaps: list[str] = []
    orquesta = Orquesta(lambda _, subject, __: gaps.append(subject), lambda ref, _: KnownAction(ref))
    body = orquesta.workflow(read_tree(tmp_path / "flow.yaml"), {})
    actions = {name: {"command": ["true"]} for name in ("breaks", "works")}
    pack = {"name": "p", "actions": actions, "workflows": {"flow": body}}
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / "pack.yaml").write_text(yaml.safe_dump(pack))
    simulation = Simulation(str(tmp_path / "p"))
    simulation.fake("p.breaks", raises=RuntimeError("no")).fake("p.works", returns={})
    assert [gap for gap in gaps if "StackStorm still returns the workflow's output" not in gap] == []
    assert simulation.run("p.flow").status == expected


def test_many_names_in_a_row_take_no_time() -> None:
    """A pattern that can be read in many ways would take for ever."""
    assert template("<% ctx()." + "a" * 200 + " %>", NAMES) == "{{ context." + "a" * 200 + " }}"


def test_conditions() -> None:
    assert (
        condition("<% succeeded() and result().code = 0 %>", AT_END) == "succeeded() and (result.code == 0)"
    )
    assert (
        criterion("trigger.body.x-y", {"type": "exists"})
        == '(payload.body["x-y"] | default(none)) is not none'
    )
