"""`penstock import attune`: a pack becomes a project without a fault, and each leaf of it is mapped or named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from penstock.cli import build
from penstock.language.loading.load import load
from penstock.language.terms.sources import Source
from penstock.language.workflows.serialization import from_value
from penstock.testing.memory_workflow import MemoryWorkflow
from penstock_import.attune import AttunePack
from penstock_import.attune_expressions import AttuneExpressions
from penstock_import.wanted_text import NotMapped

PACK: dict[str, str] = {
    "pack.yaml": "ref: depot\nlabel: Depot\nversion: 1.0.0\nconfig: {url: http://x}\n",
    "triggers/arrived.yaml": "ref: depot.arrived\nlabel: Arrived\ntype: custom\n"
    "payload_schema: {crate: {type: string, required: true}, size: {type: integer}}\n",
    "actions/weigh.yaml": """
ref: depot.weigh
label: Weigh
description: Weigh a crate
runner_type: python
entry_point: weigh.py
output_format: json
timeout_seconds: 60
worker_selector: {scale: big}
parameters:
  crate: {type: string, required: true}
  unit: {type: string, required: true, default: kg}
""",
    "actions/weigh.py": "import json, sys\nprint(json.dumps({'weight': len(json.load(sys.stdin)['crate'])}))\n",
    "actions/lift.yaml": "ref: depot.lift\nlabel: Lift\nrunner_type: shell\nentry_point: lift.sh\nparameter_delivery: env\n",
    "actions/lift.sh": "echo $ATTUNE_ACTION_X\n",
    "actions/unload.yaml": """
ref: depot.unload
label: Unload
workflow_file: workflows/unload.workflow.yaml
parameters: {crates: {type: array, required: true}, big: {type: boolean, default: false}}
""",
    "actions/workflows/unload.workflow.yaml": """
version: "1.0.0"
vars: {heavy: 0}
tasks:
  - name: weigh
    action: depot.weigh
    input: {crate: "{{ parameters.crates[0] }}", unit: "kg or null pointer"}
    retry: {count: 2, delay: 5, backoff: exponential, max_delay: 30}
    next:
      - when: "{{ succeeded() and result().weight > 3 }}"
        publish: [{heavy: "{{ result().weight }}"}]
        do: [tell]
      - when: "{{ failed() }}"
        do: [mourn]
  - name: tell
    action: core.echo
    with_items: "{{ parameters.crates }}"
    input: {message: "{{ item }} is heavy"}
  - name: mourn
    action: core.noop
output_map: {heavy: "{{ workflow.heavy }}"}
""",
    "rules/big.yaml": """
ref: depot.big
trigger_ref: depot.arrived
action_ref: depot.weigh
conditions: {expression: 'event.payload.size >= 10 and event.payload.crate != "null pointer trigger"'}
action_params: {crate: "{{ event.payload.crate }}", unit: "n: {{ event.payload.unit }}"}
""",
    "rules/list.yaml": """
ref: depot.listed
trigger_ref: arrived
action_ref: weigh
conditions:
  - {field: crate, operator: contains, value: "null pointer"}
  - {field: size, operator: not_equals, value: null}
action_params: {crate: x}
""",
    "rules/tick.yaml": """
ref: depot.tick
trigger_ref: core.crontimer
action_ref: core.echo
trigger_params: {expression: "0 0 9 * * MON"}
action_params: {message: hi}
""",
    "policies/one.yaml": """
ref: depot.one
action_ref: depot.weigh
concurrency: {limit: 2, method: cancel, parameters: [crate]}
""",
    "sensors/gate.yaml": "ref: depot.gate\nrunner_type: python\nentry_point: gate.py\n"
    "trigger_types: [depot.arrived]\npoll_interval: 30\n",
    "sensors/gate.py": "print()\n",
    "queues/q.yaml": "ref: depot.q\n",
}


def written(tmp_path: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        file = tmp_path / "depot" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return tmp_path / "depot"


def test_pack_becomes_a_project_without_a_fault(tmp_path: Path) -> None:
    into = tmp_path / "made"
    told = CliRunner().invoke(
        build(), ["import", "attune", str(written(tmp_path, PACK)), "--into", str(into)]
    )
    assert told.exit_code == 0, told.output
    definitions = load(str(into))
    definitions.check()
    weigh = definitions.actions["depot.weigh"]
    assert weigh.choices.options["command"] == ["python3", "programs/weigh.py"]
    assert (into / "programs/weigh.py").read_text() == PACK["actions/weigh.py"]
    assert weigh.choices.labels == {"scale": "big"}
    assert weigh.choices.timeouts.attempt == 60
    assert weigh.parameters_schema["required"] == ["crate"], "what has a default is never missing"
    limit = definitions.limits["depot.one"]
    assert (limit.scope, limit.max, limit.by, limit.when_full) == ("depot.weigh", 2, ("crate",), "cancel_new")
    assert definitions.schedules["depot.tick"].cron == "0 9 * * 1"
    assert definitions.triggers["depot.arrived"].poll.every == 30  # type: ignore[union-attr]
    rules = definitions.rules
    assert rules["depot.big"].when == '((payload.size >= 10) and (payload.crate != "null pointer trigger"))'
    assert rules["depot.listed"].when == (
        '(payload.crate is string and "null pointer" in payload.crate) and (payload.size != none)'
    )
    assert rules["depot.big"].params["crate"] == "{{ (payload.crate | default(none)) }}"
    task = definitions.workflows["depot.unload"].tasks[0]
    assert task.input["unit"] == "kg or null pointer"
    assert task.retry.written() == {
        "max_attempts": 3, "initial_delay": 5, "max_delay": 30, "jitter": 0.0,
    }  # fmt: skip
    assert definitions.workflows["depot.unload"].tasks[1].concurrency == 1, (
        "one at a time, where it says nothing"
    )


def test_workflow_goes_its_way(tmp_path: Path) -> None:
    project = AttunePack(written(tmp_path, PACK)).mapped()
    flow = from_value({"workflow": "depot.unload", **project.workflows["unload"]}, Source("x", 1))
    for weight, statuses in (
        (5, {"tell": "completed", "mourn": "skipped"}),
        (1, {"tell": "skipped", "mourn": "skipped"}),
    ):
        world = MemoryWorkflow(flow, {"crates": ["abcde", "x"]}).begin()
        world.finish(("weigh", {"weight": weight}))
        for _ in range(2):
            if world.open:
                world.finish((sorted(world.open)[0], "said"))
        assert world.final is not None
        assert {name: world.statuses[name] for name in statuses} == statuses
    world = MemoryWorkflow(flow, {"crates": ["abcde"]}).begin()
    world.finish(("weigh", "failed", {"type": "ValueError", "message": "it broke"}))
    assert world.statuses["mourn"] == "completed"


def test_gap_is_named_with_its_file(tmp_path: Path) -> None:
    pack = AttunePack(written(tmp_path, PACK))
    pack.mapped()
    named = {(gap.file, gap.what) for gap in pack.report.gaps}
    for file, words in (
        ("pack.yaml", "config of the pack"),
        ("actions/lift.yaml", "that gets its parameters as json by env"),
        ("sensors/gate.yaml", "sensor gate"),
        ("queues/q.yaml", "is not imported"),
    ):
        assert any(at == file and words in what for at, what in named), (file, sorted(named))


@pytest.mark.parametrize("file", [file for file in PACK if file.endswith(".yaml")])
@pytest.mark.parametrize("deep", [False, True])
def test_unknown_key_is_named_wherever_it_stands(file: str, deep: bool, tmp_path: Path) -> None:
    """Put a key that nobody knows into each mapping of each file, one at a time: each is in the report."""
    tree = yaml.safe_load(PACK[file])
    places = [place for place in _mappings(tree, ()) if bool(place) is deep and not _is_data(place)]
    for place in places:
        changed = yaml.safe_load(PACK[file])
        node: Any = changed
        for step in place:
            node = node[step]
        node["zz_unknown"] = "surprise"
        folder = tmp_path / "-".join(map(str, ("x", *place)))
        pack = AttunePack(written(folder, {**PACK, file: yaml.safe_dump(changed, sort_keys=False)}))
        project = pack.mapped()
        whole = "\n".join(f"{gap.file} {gap.what}" for gap in pack.report.gaps)
        kept = str([project.actions, project.triggers, project.workflows, project.rules, project.limits])
        around = f"{place[-1]} of" if place and isinstance(place[-1], str) else "zz_unknown"
        assert "zz_unknown" in whole + kept or around in whole or file == "queues/q.yaml", (place, whole)


def _mappings(node: Any, place: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    if isinstance(node, dict):
        return [place, *(found for key, value in node.items() for found in _mappings(value, (*place, key)))]
    if isinstance(node, list):
        return [found for number, value in enumerate(node) for found in _mappings(value, (*place, number))]
    return []


def _is_data(place: tuple[Any, ...]) -> bool:
    """Names of parameters, variables and values are the user's own."""
    return bool(
        {"parameters", "payload_schema", "vars", "input", "publish", "output_map", "action_params", "config"}
        & set(place)
    ) or ("worker_selector" in place)


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("parameters.a", "parameters.a"),
        ("workflow.total + 1", "(vars.total + 1)"),
        ('workflow.text == "workflow.total"', '(vars.text == "workflow.total")'),
        ("task.weigh.result.weight", "tasks.weigh.result.weight"),
        ("task.weigh.weight", "tasks.weigh.result.weight"),
        ("task.weigh.data.items", 'tasks.weigh.result["items"]'),
        ("length(parameters.items) > 0", '((parameters["items"] | length) > 0)'),
        ("contains(parameters.tags, 'task.x')", '("task.x" in parameters.tags)'),
        (
            "not (parameters.a or parameters.b)",
            "(not ((true if parameters.a else false) or (true if parameters.b else false)))",
        ),
        ("parameters['a-b']", 'parameters["a-b"]'),
        ("keystore.pin", "secrets.pin"),
    ],
)
def test_expression_is_written_from_its_tree(theirs: str, ours: str) -> None:
    names = {"parameters": "parameters", "workflow": "vars", "task": "tasks", "keystore": "secrets"}
    assert AttuneExpressions(names).template("{{ " + theirs + " }}") == "{{ " + ours + " }}"


@pytest.mark.parametrize(
    "theirs",
    [
        "config.url",
        "task.weigh",
        "task.weigh.result",
        "task.weigh.stdout",
        "task.weigh.exit_code",
        "inquiry.a.response",
        "'a' if parameters.b else 'c'",
        "parameters.a not in parameters.b",
        "parameters.a ~ parameters.b",
        "now()",
        "parameters.a | default(1)",
        "a b",
        "keystore.a.b",
    ],
)
def test_expression_without_an_equal_is_not_mapped(theirs: str) -> None:
    with pytest.raises(NotMapped):
        AttuneExpressions({"parameters": "parameters", "task": "tasks", "keystore": "secrets"}).template(
            "{{ " + theirs + " }}"
        )


def imported_files(folder: Path, files: dict[str, str]) -> tuple[AttunePack, set[str]]:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    source = AttunePack(folder)
    source.mapped()
    return source, {f"{gap.file}:{gap.line} {gap.what}" for gap in source.report.gaps}


GRAPH = "version: '1'\ntasks:\n  - name: a\n    action: core.echo\n    input: {message: hi}\n"


@pytest.mark.parametrize(
    ("file", "text", "gap"),
    [
        (
            "triggers/a.yaml",
            "\nref: dry-dock.Came-In\n",
            "triggers/a.yaml:2 the trigger Came-In is named came_in in Penstock",
        ),
        (
            "actions/a.yaml",
            "ref: dry-dock.Send-Mail\nrunner_type: shell\nentry_point: a.sh\n",
            "actions/a.yaml:1 the action Send-Mail is named send_mail in Penstock",
        ),
        (
            "rules/a.yaml",
            "ref: dry-dock.When-In\ntrigger_ref: dry-dock.came\naction_ref: dry-dock.go\n",
            "rules/a.yaml:1 the rule When-In is named when_in in Penstock",
        ),
        (
            "policies/a.yaml",
            "ref: dry-dock.Few\npack_ref: dry-dock\nconcurrency: {limit: 1}\n",
            "policies/a.yaml:1 the policy Few is named few in Penstock",
        ),
        (
            "workflows/a.yaml",
            f"ref: dry-dock.Go-On\n{GRAPH}",
            "workflows/a.yaml:1 the action Go-On is named go_on in Penstock",
        ),
    ],
)
def test_changed_name_is_named(tmp_path: Path, file: str, text: str, gap: str) -> None:
    source, gaps = imported_files(tmp_path, {"pack.yaml": "label: Dock\nref: dry-dock\n", file: text})
    assert gap in gaps
    assert "pack.yaml:2 the pack dry-dock is named dry_dock in Penstock" in gaps
    assert source.project.name == "dry_dock"


def test_kept_name_is_not_named(tmp_path: Path) -> None:
    _, gaps = imported_files(
        tmp_path, {"pack.yaml": "ref: dock\n", "workflows/a.yaml": f"ref: dock.go_on\n{GRAPH}"}
    )
    assert not any("here" in gap for gap in gaps)


def test_two_parts_that_become_one_are_named(tmp_path: Path) -> None:
    action = "runner_type: shell\nentry_point: a.sh\n"
    files = {"pack.yaml": "ref: dock\n", "actions/a.yaml": f"ref: dock.go-on\n{action}"}
    _, gaps = imported_files(tmp_path, files | {"workflows/b.yaml": f"ref: dock.go_on\n{GRAPH}"})
    assert "workflows/b.yaml:1 two of the kind action become go_on" in gaps
