"""Changes of meaning that a review from outside found, each with the smallest source that shows it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from celery.app.defaults import SETTING_KEYS

from penstock.language.expressions import compile_template
from penstock_import.celery_setting_names import advice_of
from penstock_import.known_keys import UNKNOWN, by_hand
from penstock_import.loose_expressions import loose_parts
from penstock_import.orquesta_expressions import template
from penstock_import.orquesta_names import OrquestaNames
from penstock_import.wanted_text import NotMapped
from tests.penstock_import.test_reviewed_changes import SHELL, of_application, of_pack, texts

APP = "from celery import Celery, chain, group\napp = Celery('depot')\n"
TASKS = APP + "@app.task\ndef weigh(a=None, b=None): ...\n@app.task\ndef pack(a=None): ...\n"

CALLS = (
    *(
        "where($ = 1)",
        "select($.k)",
        "keys()",
        "count()",
        "any()",
        "first()",
        "last()",
        "toList()",
        "flatten()",
    ),
    *("contains(b)", "containsKey(b)", "reverse()", "join(',')", "set(a, 2)", "items()", "values()"),
)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("<% ctx().l %>\n", "[1]\n"),
        ("{{ ctx().l }}\n", "[1]\n"),
        ("<% ctx().n %>\n", "None\n"),
        ("<% ctx().l %>", [1]),
        ("<% ctx().l %>\n\n", "[1]\n\n"),
        (" <% ctx().l %>", " [1]"),
        ("<% ctx().l %><% ctx().l %>\n", "[1][1]\n"),
        ("{{ ctx().l }} \n", "[1] \n"),
    ],
)
def test_expression_with_a_line_break_is_a_text_as_in_orquesta(written: str, expected: Any) -> None:
    """The expectations are the values of the evaluators of Orquesta 1.6."""
    names = OrquestaNames("task", {"l", "n"})
    names.variables = {"l", "n"}
    values = {"l": [1], "n": None}
    ours = compile_template(template(written, names))({"context": values, "parameters": values})
    assert ours == expected


@pytest.mark.parametrize(
    ("kind", "parameters"),
    [
        ("action.concurrency", {"threshold": 1}),
        ("action.concurrency.attr", {"threshold": 1, "attributes": ["cmd"]}),
    ],
)
def test_limit_of_an_action_that_is_made_twice_is_named(
    tmp_path: Path, kind: str, parameters: dict[str, Any]
) -> None:
    task = {"action": "depot.act", "input": {"cmd": "x"}}
    publish = [{"out": "<% result().stdout %>"}]
    reads = {"when": "<% failed() %>", "publish": publish, "do": "two"}
    workflow = {"version": 1.0, "tasks": {"one": task | {"next": [reads]}, "two": task}}
    policy = {"name": "few", "policy_type": kind, "resource_ref": "depot.act", "parameters": parameters}
    files = {
        "actions/act.yaml": SHELL,
        "actions/flow.yaml": {
            "name": "flow",
            "runner_type": "orquesta",
            "entry_point": "workflows/flow.yaml",
        },
        "actions/workflows/flow.yaml": workflow,
        "policies/few.yaml": policy,
    }
    project, report = of_pack(tmp_path, files)
    assert all("limits" in project.actions[name] for name in ("act", "act_kept"))
    assert any("act and act_kept each have the limit of few in Penstock" in text for text in texts(report))
    assert report.mapped["policies"] == 0


@pytest.mark.parametrize(
    "function",
    [
        "def run(weigh):\n    chain(weigh.s(1), pack.s()).delay()",
        "def run():\n    weigh = get()\n    chain(weigh.s(1), pack.s()).delay()",
        "def run():\n    from other import weigh\n    chain(weigh.s(1), pack.s()).delay()",
        "def run():\n    import other\n    chain(other.weigh.s(1), pack.s()).delay()",
        "def run():\n    def weigh(): ...\n    chain(weigh.s(1), pack.s()).delay()",
        "def run(weigh):\n    def inner():\n        chain(weigh.s(1), pack.s()).delay()",
        "def run(chain):\n    chain(weigh.s(1), pack.s()).delay()",
        "def run(self):\n    chain(self.weigh.s(1), pack.s()).delay()",
        "def run():\n    c = group(weigh.s(1), pack.s(2))\n    c.tasks.append(pack.s(3))\n    c.delay()",
        "def run():\n    c = chain(weigh.s(1), pack.s())\n    c.link_error(pack.s())\n    c.delay()",
        "def run():\n    c = chain(weigh.s(1), pack.s())\n    c |= pack.s()\n    c.delay()",
        "def run():\n    chain(weigh.s(1), pack.s()).delay(7)",
        "def run():\n    chain(weigh.s(1), pack.s())(7)",
        "def run():\n    c = chain(weigh.s(1), pack.s())\n    c.apply_async((7,))",
    ],
)
def test_canvas_with_another_meaning_is_named(tmp_path: Path, function: str) -> None:
    project, report = of_application(tmp_path, {"tasks.py": TASKS + function + "\n"})
    assert project.workflows == {}
    assert any("the canvas" in text for text in texts(report))


@pytest.mark.parametrize(
    "function",
    [
        "def run():\n    chain(weigh.s(1), pack.s()).delay()",
        "def run():\n    from depot.more import lift\n    chain(lift.s(), pack.s()).apply_async()",
        "def run():\n    from .more import lift as weigh\n    chain(weigh.s(), pack.s()).delay()",
        "def run():\n    from . import more\n    c = chain(more.lift.s(), pack.s())\n    return c.delay()",
        "def run():\n    import depot.more\n    chain(depot.more.lift.s(), pack.s()).delay()",
    ],
)
def test_canvas_of_own_tasks_is_a_workflow(tmp_path: Path, function: str) -> None:
    lifts = APP + "@app.task\ndef lift(): ...\n"
    files = {"tasks.py": TASKS + function + "\n", "more.py": lifts, "__init__.py": ""}
    project, report = of_application(tmp_path, files)
    (flow,) = project.workflows.values()
    first = next(iter(flow["tasks"].values()))
    assert first["action"] == ("depot.lift" if "lift" in function else "depot.weigh")
    assert not any("the canvas" in text for text in texts(report))


def test_schedule_of_a_longer_name_is_another_task(tmp_path: Path) -> None:
    source = APP + "@app.task(name='b.send')\ndef send(): ...\n"
    source += "app.conf.beat_schedule = {'x': {'task': 'shop.b.send', 'schedule': 10}}\n"
    project, report = of_application(tmp_path, {"tasks.py": source})
    assert project.schedules["x"]["action"] == "depot.shop_b_send"
    assert any("the task shop.b.send is not in the imported files" in text for text in texts(report))


@pytest.mark.parametrize(
    ("expression", "kind"),
    [
        *((f"<% ctx().x.{call} %>", "list") for call in CALLS),
        ("<% -ctx().x %>", "sign"),
        ("<% abs(ctx().x) %>", "sign"),
        ("<% json(ctx().x) %>", "json"),
        ("<% from_json_string(ctx().x) %>", "json"),
        ("{{ ctx().x | from_json_string }}", "json"),
        ("{{ ctx().x.get('k') }}", "list"),
        ("x{{ (1, 2) }}", "tuple"),
        ("{{ 'inf' | float }}", "float"),
        ("{{ ctx().x.keys() }}", "list"),
    ],
)
def test_expression_that_fails_in_stackstorm_alone_is_named(expression: str, kind: str) -> None:
    """Each failed in Orquesta 1.6 for null, a truth value, a text or a mapping, and had a value here."""
    assert kind in {part for part, _ in loose_parts(expression)}


@pytest.mark.parametrize("expression", ["first(ctx().x)", "last(ctx().x)"])
def test_functions_that_yaql_does_not_know_are_not_mapped(expression: str) -> None:
    names = OrquestaNames("task", {"x"})
    with pytest.raises(NotMapped, match="the function"):
        template(f"<% {expression} %>", names)


@pytest.mark.parametrize("option", ["delivery_mode=1", "store_eager_result=True"])
def test_option_that_celery_knows_is_not_said_to_be_unknown(tmp_path: Path, option: str) -> None:
    source = APP + f"@app.task({option})\ndef weigh(): ...\n"
    _, report = of_application(tmp_path, {"tasks.py": source})
    (gap,) = [gap for gap in report.gaps if gap.what.startswith(option.partition("=")[0])]
    assert "Celery does not know this option" not in gap.by_hand


def test_task_of_commander_is_none_of_celery(tmp_path: Path) -> None:
    source = "from commander.deploy import task\n@task\ndef update(ctx): ...\n"
    project, _ = of_application(tmp_path, {"tasks.py": TASKS, "deploy.py": source})
    assert sorted(project.actions) == ["pack", "weigh"]


@pytest.mark.parametrize("name", [f"CELERY_{name.upper()}" for name in sorted(SETTING_KEYS)])
def test_setting_that_celery_knows_is_not_said_to_be_unknown(name: str) -> None:
    assert not advice_of(name).startswith("No setting of Celery")


def test_parameters_of_a_rule_are_a_known_key() -> None:
    assert by_hand("rule", "action.parameters") != UNKNOWN
