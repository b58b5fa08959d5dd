"""Every leaf of what is imported is accounted for. The oracle shares nothing with the importers: a leaf that is changed must
change what is made, or the gaps."""

from __future__ import annotations

import ast
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from penstock_import.celery import CeleryProject
from penstock_import.stackstorm import StackStormPack

CASES = int(os.environ.get("PENSTOCK_TEST_IMPORT_CASES", "40"))
"""The number of inputs that each test mutates; 10,000 for the long form."""
pytestmark = pytest.mark.timeout(600 + CASES)
PACK: dict[str, Any] = {
    "pack.yaml": {"ref": "depot", "name": "Depot", "version": "1.0.0", "author": "a", "description": "d"},
    "triggers/arrived.yaml": {
        "name": "arrived",
        "pack": "depot",
        "description": "x",
        "payload_schema": {"type": "object"},
    },
    "actions/date.yaml": {
        "name": "date",
        "runner_type": "local-shell-cmd",
        "entry_point": "",
        "enabled": True,
        "description": "says when",
        "parameters": {
            "cmd": {"type": "string", "default": "date {{zone}}", "immutable": True},
            "zone": {"type": "string", "default": "-u", "enum": ["-u", "-R"]},
            "cwd": {"type": "string", "default": "/tmp"},
            "timeout": {"type": "integer", "default": 9},
        },
    },
    "actions/unload.yaml": {
        "name": "unload",
        "runner_type": "orquesta",
        "entry_point": "workflows/unload.yaml",
        "parameters": {
            "crates": {"type": "array", "required": True},
            "limit": {"type": "integer", "default": 10},
        },
    },
    "actions/workflows/unload.yaml": {
        "version": 1.0,
        "input": ["crates", "limit"],
        "vars": [{"heavy": 0}],
        "tasks": {
            "weigh": {
                "action": "depot.date",
                "with": {"items": "i in <% ctx(crates) %>", "concurrency": 2},
                "input": {"zone": "<% item(i) %>"},
                "next": [
                    {
                        "when": "<% succeeded() and ctx().limit > 3 %>",
                        "publish": [{"heavy": "<% result().len() %>"}],
                        "do": "tell",
                    },
                    {"when": "<% failed() %>", "do": ["fail"]},
                ],
            },
            "tell": {
                "action": "core.echo",
                "input": {"message": "<% ctx(heavy) %>"},
                "retry": {"count": 2, "delay": 5},
            },
        },
        "output": [{"heavy": "<% ctx().heavy %>"}],
    },
    "rules/arrivals.yaml": {
        "name": "arrivals",
        "pack": "depot",
        "enabled": True,
        "trigger": {"type": "depot.arrived"},
        "criteria": {"trigger.port": {"type": "eq", "pattern": "Bath"}},
        "action": {"ref": "depot.unload", "parameters": {"crates": "{{ trigger.crates }}"}},
    },
    "rules/late.yaml": {
        "name": "late",
        "enabled": True,
        "type": {"ref": "standard", "parameters": {}},
        "context": {"user": "ann"},
        "trigger": {"type": "depot.arrived", "description": "of ships"},
        "criteria": {"trigger.port": {"type": "regex", "pattern": "^(Bath|Wells?).*late$"}},
        "action": {
            "ref": "depot.fixed",
            "description": "tells",
            "parameters": {
                "text": "{% set port = trigger.port %}{{ port }} is {{ trigger.hours }} hours late"
            },
        },
    },
    "actions/fixed.yaml": {
        "name": "fixed",
        "runner_type": "orquesta",
        "entry_point": "workflows/fixed.yaml",
        "output_schema": {"facts": {"type": "object"}},
        "parameters": {
            "text": {"type": "string"},
            "token": {"type": "string", "default": "{{ st2kv.system.token }}", "immutable": True},
        },
    },
    "actions/workflows/fixed.yaml": {
        "input": ["text", "token"],
        "vars": [{"facts": {"a": {"b": 1}}}],
        "tasks": {
            "ask": {
                "action": "core.ask",
                "input": {
                    "route": "to <% ctx(text) %>",
                    "schema": {
                        "type": "object",
                        "properties": {
                            "sure": {"type": "boolean", "description": "Is <% ctx(text) %> right?"}
                        },
                    },
                },
                "next": [{"when": "<% result().response.sure %>", "do": "read"}],
            },
            "read": {
                "action": "depot.look token=<% ctx(token) %>",
                "input": {"colour": "red"},
                "next": [{"when": "<% succeeded() %>", "publish": [{"facts": "<% result() %>"}]}],
            },
        },
        "output": [{"facts": "<% ctx(facts) %>"}],
    },
    "rules/nightly.yaml": {
        "name": "nightly",
        "enabled": True,
        "trigger": {
            "type": "core.st2.CronTimer",
            "parameters": {"hour": 2, "minute": 0, "timezone": "Europe/Paris"},
        },
        "action": {"ref": "depot.date"},
    },
    "policies/few.yaml": {
        "name": "few",
        "resource_ref": "depot.date",
        "policy_type": "action.concurrency",
        "parameters": {"threshold": 3, "action": "delay"},
    },
}
IDENTITY = {"pack", "version", "policy_type", "action", "name", "ref", "enabled", "position"}
"""Last keys of leaves that say what a file's place says, or what is so anyway."""

NAMED_WHOLE = {("rules/late.yaml", "context"), ("actions/fixed.yaml", "output_schema")}
"""Parts that a gap names by their key, and not by what stands in them."""
Path_ = tuple[str | int, ...]


def leaves(value: Any, path: Path_ = ()) -> Iterator[Path_]:
    if isinstance(value, dict) and value:
        for key, child in value.items():
            yield from leaves(child, (*path, key))
    elif isinstance(value, list) and value:
        for number, child in enumerate(value):
            yield from leaves(child, (*path, number))
    else:
        yield path


def changed(value: Any, path: Path_, rng: random.Random) -> Any:
    """Return a copy with another value, or with a further key, at a path."""
    if not path:
        if isinstance(value, bool):
            return not value
        if isinstance(value, int):
            return value + rng.randint(1, 3)
        return f"{value}{rng.choice('qz')}" if isinstance(value, str) else "other"
    copy = dict(value) if isinstance(value, dict) else list(value)
    if len(path) == 1 and isinstance(copy, dict) and rng.random() < 0.4:
        copy[f"colour_{rng.randrange(9)}"] = rng.choice(["red", 5, True])
        return copy
    copy[path[0]] = changed(  # type: ignore[index]
        value[path[0]], path[1:], rng
    )
    return copy


def made_of_pack(folder: Path, pack: dict[str, Any]) -> tuple[str, set[tuple[str, str]]]:
    for name, content in pack.items():
        write(folder / name, content)
    return made_of_folder(folder)


def write(file: Path, content: Any) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(yaml.safe_dump(content, sort_keys=False))


def made_of_folder(folder: Path) -> tuple[str, set[tuple[str, str]]]:
    source = StackStormPack(folder)
    project = source.mapped()
    sections = [
        project.triggers,
        project.actions,
        project.workflows,
        project.rules,
        project.schedules,
        project.about,
    ]
    return repr((project.name, sections, project.functions)), {
        (gap.file, gap.what) for gap in source.report.gaps
    }


def test_every_leaf_of_a_pack_is_mapped_or_named(tmp_path: Path) -> None:
    rng = random.Random(7)
    previous = made_of_pack(tmp_path / "pack", PACK)
    for case in range(CASES):
        file = rng.choice(list(PACK))
        path = rng.choice(list(leaves(PACK[file])))
        mutated = changed(PACK[file], path, rng)
        if mutated == PACK[file]:
            continue
        write(tmp_path / "pack" / file, mutated)
        changed_outcome = made_of_folder(tmp_path / "pack")
        write(tmp_path / "pack" / file, PACK[file])
        is_identity = str(path[-1]) in IDENTITY and len(path) == 1
        is_named_whole = (file, path[0]) in NAMED_WHOLE
        assert changed_outcome != previous or is_identity or is_named_whole, (case, file, path, mutated)


CELERY = """
from celery import Celery, chain, chord, group
from celery.schedules import crontab

app = Celery("depot", task_routes={"depot.weigh": {"queue": "scales"}})
app.conf.task_time_limit = 600
app.conf.task_annotations = {"depot.tell": {"rate_limit": "10/s"}}
app.conf.timezone = "Europe/Paris"

@app.task(bind=True, name="depot.weigh", autoretry_for=(KeyError,), max_retries=2, default_retry_delay=30, time_limit=60)
def weigh(self, crate, unit="kg"):
    return crate

@app.task(name="depot.tell", queue="mail", acks_late=True)
def tell(text):
    return text

app.conf.beat_schedule = {
    "night": {"task": "depot.tell", "schedule": crontab(hour=2, minute=10), "args": ["x"]},
    "often": {"task": "depot.weigh", "schedule": 90.0, "kwargs": {"crate": "c"}},
}

def fulfil(crate):
    return chain(weigh.s(crate, unit="g"), tell.s()).delay()

def ship(crates):
    parts = []
    for crate in crates:
        parts.append(weigh.s(crate["label"], unit="t"))
    group(parts).delay()
    return chord([weigh.s(crate["id"], unit="kg") for crate in crates if crate["size"] > 3], tell.s()).delay()
"""


def made_of_celery(folder: Path, text: str) -> tuple[str, set[tuple[int, str]]]:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "depot.py").write_text(text)
    source = CeleryProject(folder / "depot.py")
    project = source.mapped()
    sections = [project.actions, project.workflows, project.schedules]
    return repr(sections), {(gap.line, gap.what) for gap in source.report.gaps}


def test_every_option_of_a_celery_application_is_mapped_or_named(tmp_path: Path) -> None:
    rng = random.Random(7)
    plain = made_of_celery(tmp_path / "plain", ast.unparse(ast.parse(CELERY)))
    for case in range(CASES):
        tree = ast.parse(CELERY)
        constants = [
            node
            for node in ast.walk(tree)
            if isinstance(node, ast.Constant)
            and isinstance(node.value, str | int | float)
            and node.value != "depot"
        ]
        words = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and node.keywords]
        if rng.random() < 0.7:
            node = rng.choice(constants)
            node.value = changed(node.value, (), rng)
        else:
            call = rng.choice(words)
            call.keywords.append(ast.keyword(f"colour_{rng.randrange(9)}", ast.Constant("red")))
        text = ast.unparse(tree)
        changed_outcome = made_of_celery(tmp_path / f"case{case % 50}", text)
        assert changed_outcome != plain, set(text.splitlines()) - set(
            ast.unparse(ast.parse(CELERY)).splitlines()
        )
