"""A default that is computed has the value that StackStorm gives it. The oracle renders the parameters with Jinja itself, one
after another as StackStorm does, and converts them as its documentation says."""

from __future__ import annotations

import ast
import random
from pathlib import Path
from typing import Any

import pytest
import yaml
from jinja2 import Environment, StrictUndefined, meta

from penstock.language.expressions import compile_template
from penstock.testing import Simulation
from penstock_import.applied import keep_applicable
from penstock_import.computed_defaults import ComputedDefaults
from penstock_import.stackstorm import StackStormPack
from penstock_import.wanted_text import NotMapped

JINJA = Environment(trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined)
CASTS: dict[str, Any] = {
    "string": str,
    "integer": int,
    "number": float,
    "boolean": lambda text: ast.literal_eval(text.capitalize()),
}
DEFAULTS = [
    *(
        "/tmp/st2_{{branch}}",
        "{{ branch }}",
        "{{branch | upper}}-{{ number }}",
        "{{ number + 1 }}",
        "{{ not flag }}",
    ),
    "{% if branch in ['main'] %}c4.large{% else %}c5.large{% endif %}",
    "{% if branch != '' %}--version={{branch}}{% endif %}",
    "a\n  {% if flag %}\n  {{ number }}\n  {% elif number > 2 %}\n  b\n  {% endif %}\nz\n",
    *(
        "{{ other }}/{{ branch }}",
        "{{ branch | default('x', true) }}",
        "{{ number * 2 }}",
        "{{ 'é' ~ branch }}",
    ),
    *(
        "{{ number > 2 }}",
        "{{ branch if flag else other }}",
        "{{ empty }}",
        "{{ [branch, 'b'] | join('-') }}",
    ),
]
VALUES: dict[str, list[Any]] = {
    "branch": ["main", "", "v3.8", "a{b"],
    "number": [0, 3, -7],
    "flag": [True, False],
    "empty": [None, "e"],
    "other": ["o", None],
}


def rendered(parameters: dict[str, Any], supplied: dict[str, Any], name: str) -> Any:
    """Return the text or the value of a parameter, before it is converted."""
    about = parameters[name]
    value = supplied.get(name)
    if value is not None and not about.get("immutable"):
        return value
    default = about.get("default")
    if not isinstance(default, str) or "{" not in default:
        return default
    names = meta.find_undeclared_variables(JINJA.parse(default))
    return JINJA.from_string(default).render({key: rendered(parameters, supplied, key) for key in names})


def value_there(parameters: dict[str, Any], supplied: dict[str, Any], name: str) -> Any:
    value = rendered(parameters, supplied, name)
    kind = parameters[name].get("type")
    value = CASTS[kind](value) if kind is not None and value is not None else value
    if kind == "boolean" and not isinstance(value, bool):
        raise ValueError("its schema refuses it")
    return value


def is_refused_here(template: str, parameters: dict[str, Any]) -> bool:
    try:
        return compile_template(template)({"parameters": parameters}) is None
    except Exception:
        return True


def test_random_default_has_the_value_that_stackstorm_computes() -> None:
    rng = random.Random(11)
    compared = refused_there = not_mapped = 0
    while compared < 1500:
        parameters: dict[str, Any] = {
            "branch": {"type": "string", "default": rng.choice(["main", None, "v3"])},
            "number": {"type": "integer", "default": rng.choice([1, 5])},
            "flag": {"type": "boolean", "default": rng.choice([True, False])},
            "empty": {"type": "string"},
            "other": {"type": "string", "default": rng.choice(["plain", "{{ branch }}!", "{{ number }}"])},
            "made": {"type": rng.choice(list(CASTS)), "default": rng.choice(DEFAULTS)},
        }
        if rng.random() < 0.2:
            parameters["made"]["immutable"] = True
        if rng.random() < 0.2:
            parameters["made"].pop("type")
        try:
            template = ComputedDefaults(parameters).of("made")
        except NotMapped:
            not_mapped += 1
            continue
        supplied = {name: rng.choice(values) for name, values in VALUES.items() if rng.random() < 0.6}
        here: dict[str, Any] = dict.fromkeys(parameters) | {
            name: about.get("default")
            for name, about in parameters.items()
            if "{" not in str(about.get("default"))
        }
        here |= supplied
        try:
            expected = value_there(parameters, supplied, "made")
        except Exception:
            refused_there += 1
            assert is_refused_here(template, here), (parameters, supplied, template)
            continue
        compared += 1
        value = compile_template(template)({"parameters": here})
        assert (type(value), value) == (type(expected), expected), (parameters, supplied, template)
    assert refused_there > 50
    assert not_mapped < compared


PARAMETERS = {
    "branch": {"type": "string", "default": "main"},
    "folder": {"type": "string", "default": "/tmp/{{branch}}", "required": True, "description": "where"},
    "flag": {
        "type": "string",
        "default": "{% if branch != 'main' %}--old{% endif %}",
        "immutable": True,
    },
}


def pack_of(folder: Path, parameters: dict[str, Any]) -> StackStormPack:
    pack = folder / "depot"
    (pack / "actions" / "workflows").mkdir(parents=True)
    say = "echo {0} {1} {2}"
    flow = {
        "input": ["branch", "folder", "flag"],
        "vars": [{"twice": "<% ctx(folder) %><% ctx(folder) %>"}],
        "tasks": {
            "one": {
                "action": "core.local",
                "input": {"cmd": say.format("<% ctx(folder) %>", "<% ctx(flag) %>", "<% ctx(twice) %>")},
            }
        },
        "output": [{"said": "<% task(one).result.stdout %>"}],
    }
    row = {
        "vars": {"twice": "{{folder}}{{folder}}"},
        "chain": [
            {
                "name": "one",
                "ref": "core.local",
                "parameters": {"cmd": say.format("{{folder}}", "{{flag}}", "{{twice}}")},
            }
        ],
    }
    for name, runner, content in (("flow", "orquesta", flow), ("row", "action-chain", row)):
        head = {"name": name, "runner_type": runner, "entry_point": f"workflows/{name}.yaml"}
        (pack / "actions" / f"{name}.yaml").write_text(yaml.safe_dump(head | {"parameters": parameters}))
        (pack / "actions" / "workflows" / f"{name}.yaml").write_text(yaml.safe_dump(content))
    (pack / "pack.yaml").write_text(
        "ref: depot\nname: depot\ndescription: Pens.\nversion: 1.0.0\nauthor: Pat\n"
    )
    return StackStormPack(pack)


@pytest.mark.parametrize("workflow", ["flow", "row"])
@pytest.mark.parametrize(
    ("supplied", "said"),
    [
        ({}, "/tmp/main /tmp/main/tmp/main"),
        ({"folder": None}, "/tmp/main /tmp/main/tmp/main"),
        ({"branch": "v3"}, "/tmp/v3 --old /tmp/v3/tmp/v3"),
        ({"branch": "v3", "folder": "/srv"}, "/srv --old /srv/srv"),
    ],
)
def test_workflow_computes_the_default(
    tmp_path: Path, workflow: str, supplied: dict[str, Any], said: str
) -> None:
    source = pack_of(tmp_path, PARAMETERS)
    project = source.mapped()
    keep_applicable(project, source.report)
    assert source.report.mapped["workflows"] == 2, source.report.gaps
    project.write(tmp_path / "ours", "", source.report)
    run = Simulation(str(tmp_path / "ours")).run(f"depot.{workflow}", supplied)
    assert run.status == "completed", run
    assert run.input("one")["cmd"].split()[1:] == said.split()
    assert "flag" not in project.workflows[workflow]["parameters"]


@pytest.mark.parametrize(
    "about",
    [
        {"type": "string", "default": "{{ st2kv.system.x }}"},
        {"type": "string", "default": "{{ action_context.user }}"},
        {"type": "string", "default": "{{ folder }}"},
        {"type": "string", "default": "{{ branch }}", "enum": ["main", "v3"]},
        {"type": "string", "default": "{{ branch }}", "secret": True},
        {"type": "array", "default": "{{ branch }}"},
        {"type": "string", "default": "{% for x in branch %}{{ x }}{% endfor %}"},
    ],
)
def test_default_that_is_not_mapped_is_named(tmp_path: Path, about: dict[str, Any]) -> None:
    source = pack_of(tmp_path, PARAMETERS | {"folder": about})
    source.mapped()
    assert source.report.mapped["workflows"] == 0
    assert any(f"the default {about['default']}" in gap.what for gap in source.report.gaps)


def test_default_of_an_input_reads_an_earlier_one(tmp_path: Path) -> None:
    pack = tmp_path / "depot"
    (pack / "actions" / "workflows").mkdir(parents=True)
    head = {"name": "flow", "runner_type": "orquesta", "entry_point": "workflows/flow.yaml"}
    flow = {
        "input": [{"first": "<% 2 + 3 %>"}, {"second": "<% ctx(first) * 2 %>"}],
        "tasks": {"one": {"action": "core.noop"}},
        "output": [{"second": "<% ctx(second) %>"}],
    }
    (pack / "pack.yaml").write_text(
        "ref: depot\nname: depot\ndescription: Pens.\nversion: 1.0.0\nauthor: Pat\n"
    )
    (pack / "actions" / "flow.yaml").write_text(yaml.safe_dump(head))
    (pack / "actions" / "workflows" / "flow.yaml").write_text(yaml.safe_dump(flow))
    source = StackStormPack(pack)
    source.mapped().write(tmp_path / "ours", "", source.report)
    run = Simulation(str(tmp_path / "ours")).run("depot.flow", {})
    assert run.result == {"second": 10}


def test_file_that_is_no_yaml_is_named_and_the_others_are_read(tmp_path: Path) -> None:
    source = pack_of(tmp_path, PARAMETERS)
    (tmp_path / "depot" / "rules").mkdir()
    (tmp_path / "depot" / "rules" / "bad.yaml").write_text("name: a\n  b: c: d\n")
    (tmp_path / "depot" / "rules" / "list.yaml").write_text("- name: a\n")
    source = StackStormPack(tmp_path / "depot")
    source.mapped()
    assert source.report.mapped["workflows"] == 2
    assert source.report.found["rules"] == 2
    assert {gap.file for gap in source.report.gaps} >= {"rules/bad.yaml", "rules/list.yaml"}
