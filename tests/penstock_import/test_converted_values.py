"""Values that StackStorm converts to the type of a parameter before an action starts: texts, and numbers. The
expectations are what StackStorm's own `casts` do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock_import.report import Report
from tests.penstock_import.test_reviewed_changes import of_pack, simulated, texts

KINDS = ("integer", "number", "boolean", "array", "object", "string")
TAKE: dict[str, Any] = {
    "name": "take",
    "runner_type": "python-script",
    "entry_point": "take.py",
    "parameters": {kind: {"type": kind} for kind in KINDS},
}
SAY: dict[str, Any] = {
    "name": "say",
    "runner_type": "local-shell-cmd",
    "parameters": {
        "n": {"type": "number", "default": 5},
        "cmd": {"type": "string", "default": "printf %s 'n={{ n }}'", "immutable": True},
    },
}
ANYTHING = {"type": [*KINDS, "null"]}


def flow(tasks: Any, runner: str = "orquesta", output: Any = None, **parameters: Any) -> dict[str, Any]:
    """Return the files of the workflow `depot.flow` and of the actions `take` and `say`."""
    head = {"name": "flow", "runner_type": runner, "entry_point": "flows/flow.yaml", "parameters": parameters}
    if runner == "action-chain":
        body: dict[str, Any] = {"chain": tasks}
    elif runner == "orquesta":
        body = {"input": list(parameters), "tasks": tasks} | ({"output": output} if output else {})
    else:
        whole = {"input": list(parameters), "tasks": tasks} if parameters else {"tasks": tasks}
        body = {"version": "2.0", "depot.flow": whole}
    return {
        "actions/take.yaml": TAKE,
        "actions/say.yaml": SAY,
        "actions/flow.yaml": head,
        "actions/flows/flow.yaml": body,
    }


def unknown_types(report: Report) -> list[str]:
    return [text.partition(" |")[0] for text in texts(report) if "whose type is not known" in text]


@pytest.mark.parametrize(
    ("kind", "value", "passed"),
    [
        ("integer", "5", 5),
        ("integer", 3.7, 3),
        ("integer", 4, 4),
        ("number", "1.5", 1.5),
        ("number", 2, 2.0),
        ("boolean", "true", True),
        ("boolean", "False", False),
        ("boolean", True, True),
        ("array", '["a"]', ["a"]),
        ("array", ["a"], ["a"]),
        ("object", '{"a": 1}', {"a": 1}),
        ("string", "5", "5"),
        *((kind, None, None) for kind in KINDS),
    ],
)
@pytest.mark.parametrize(
    ("runner", "expression"), [("orquesta", "<% ctx(v) %>"), ("orquesta", "{{ ctx().v }}"), ("mistral-v2", "<% $.v %>")]
)  # fmt: skip
def test_value_of_a_task_has_the_type_of_its_parameter(
    tmp_path: Path, runner: str, expression: str, kind: str, value: Any, passed: Any
) -> None:
    tasks = {"one": {"action": "depot.take", "input": {kind: expression}}}
    simulation, report = simulated(tmp_path, flow(tasks, runner, v=ANYTHING))
    assert report.mapped["workflows"] == 1, texts(report)
    simulation.fake("one", returns={})
    run = simulation.run("depot.flow", {"v": value})
    assert run.status == "completed", run.error
    assert run.input("one") == {kind: passed}
    assert type(run.input("one")[kind]) is type(passed)


@pytest.mark.parametrize(("kind", "value"), [("integer", "five"), ("boolean", "yes"), ("boolean", 1), ("string", 5)])  # fmt: skip
def test_value_that_stackstorm_does_not_convert_fails_the_task(tmp_path: Path, kind: str, value: Any) -> None:
    tasks = {"one": {"action": "depot.take", "input": {kind: "<% ctx(v) %>"}}}
    simulation, _ = simulated(tmp_path, flow(tasks, v=ANYTHING))
    simulation.fake("one", returns={})
    assert simulation.run("depot.flow", {"v": value}).status == "failed"


def test_text_around_an_expression_is_converted(tmp_path: Path) -> None:
    tasks = {
        "one": {"action": "depot.take", "input": {"integer": "1<% ctx(v) %>", "number": "<% ctx(v) %>.5"}}
    }
    simulation, report = simulated(tmp_path, flow(tasks, v=ANYTHING))
    assert report.mapped["workflows"] == 1, texts(report)
    simulation.fake("one", returns={})
    assert simulation.run("depot.flow", {"v": 2}).input("one") == {"integer": 12, "number": 2.5}


@pytest.mark.parametrize("text", ["[<% ctx(v) %>]", "{% if true %}[1]{% endif %}"])
def test_text_that_stackstorm_parses_is_a_gap(tmp_path: Path, text: str) -> None:
    """Penstock reads no literals of Python, and refuses a text for a list."""
    project, report = of_pack(
        tmp_path, flow({"one": {"action": "depot.take", "input": {"array": text}}}, v=ANYTHING)
    )
    assert project.workflows["flow"]["tasks"]["one"]["input"] == {"array": "{{ none.to_do }}"}
    assert any(f"the expression {text}: " in line for line in texts(report)), texts(report)


def test_number_is_a_float_in_commands(tmp_path: Path) -> None:
    simulation, _ = simulated(tmp_path, flow({"one": {"action": "depot.say"}}))
    assert simulation.run("depot.say").result["stdout"] == "n=5.0"
    assert simulation.run("depot.say", {"n": 2}).result["stdout"] == "n=2.0"
    assert simulation.run("depot.say", {"n": None}).result["stdout"] == "n=5.0"


@pytest.mark.parametrize(
    ("about", "supplied", "said"),
    [
        ({"type": "number"}, {"n": 2}, "2.0 kg"),
        ({"type": "number"}, {}, "None kg"),
        ({"type": "number", "default": 3}, {}, "3.0 kg"),
        ({"type": "number", "default": 3}, {"n": None}, "3.0 kg"),
        ({"type": "number", "required": True}, {"n": 2}, "2.0 kg"),
        ({"type": "number", "default": 4, "immutable": True}, {}, "4.0 kg"),
        ({"type": "integer", "default": 3}, {"n": 2}, "2 kg"),
    ],
)
@pytest.mark.parametrize("runner", ["orquesta", "action-chain"])
def test_number_of_a_workflow_is_a_float(
    tmp_path: Path, runner: str, about: dict[str, Any], supplied: dict[str, Any], said: str
) -> None:
    task = {"action": "depot.take", "input": {"string": "<% ctx(n) %> kg"}}
    link = {"name": "one", "ref": "depot.take", "parameters": {"string": "{{ n }} kg"}}
    tasks = {"one": task} if runner == "orquesta" else [link]
    simulation, report = simulated(tmp_path, flow(tasks, runner, n=about))
    assert report.mapped["workflows"] == 1, texts(report)
    simulation.fake("one", returns={})
    assert simulation.run("depot.flow", supplied).input("one") == {"string": said}


def test_number_that_is_written_is_a_float(tmp_path: Path) -> None:
    head = {"name": "r", "trigger": {"type": "depot.arrived"}, "enabled": True}
    rule = head | {"action": {"ref": "depot.take", "parameters": {"number": 7, "integer": 7}}}
    files = flow([{"name": "one", "ref": "depot.take", "parameters": {"number": 7}}], "action-chain")
    project, _ = of_pack(
        tmp_path, files | {"triggers/arrived.yaml": {"name": "arrived"}, "rules/r.yaml": rule}
    )
    assert repr(project.rules["r"]["params"]) == "{'number': 7.0, 'integer': 7}"
    assert repr(project.workflows["flow"]["tasks"]["one"]["input"]) == "{'number': 7.0}"


@pytest.mark.parametrize(
    "text",
    ["{'a': '{{ v }}'}", "[{{ v }}, 1]", "{{ v }}{{ v }}", "1{{ v }}", "{% if v %}1{% else %}2{% endif %}"],
)
def test_text_that_may_become_another_type_is_named(tmp_path: Path, text: str) -> None:
    """No file of the pack says the type, so that the text stays one."""
    links = [{"name": "one", "ref": "other.take", "parameters": {"p": text}}]
    _, report = of_pack(tmp_path, flow(links, "action-chain", v={"type": "string"}))
    assert len(unknown_types(report)) == 1, texts(report)


@pytest.mark.parametrize("text", ["{{ v }}:8080", "to {{ v }}", "{{ v }}-{{ v }}"])
def test_text_that_stays_a_text_is_not_named(tmp_path: Path, text: str) -> None:
    links = [{"name": "one", "ref": "other.take", "parameters": {"p": text}}]
    _, report = of_pack(tmp_path, flow(links, "action-chain", v={"type": "string"}))
    assert not unknown_types(report)


def test_conversion_by_another_pack_is_named_once(tmp_path: Path) -> None:
    tasks = {"one": {"action": "other.take", "input": {"p": "<% ctx(v) %>", "q": "[<% ctx(v) %>]"}}}
    _, report = of_pack(tmp_path, flow(tasks, v={"type": "string"}))
    (line,) = [text for text in texts(report) if "the action other.take of another pack" in text]
    assert "StackStorm converts a text to the type of the parameter" in line
    assert [text.partition("the parameter ")[2] for text in unknown_types(report)] == [
        "q, [<% ctx(v) %>], whose type is not known"
    ]
