"""The schemas for editors take what the models take, and refuse names that they do not know."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from jsonschema import Draft202012Validator

from penstock.language.packs import read_file
from penstock.language.packs.editor_schemas import SCHEMAS, pack_schema, workflow_schema
from penstock.language.workflows import Workflow, to_yaml
from penstock.language.workflows.safe_yaml import read
from tests.penstock.cli.commands import penstock
from tests.penstock.engine.graphs import workflows

ROOT = Path(__file__).parents[4]
PACK = """
name: shop
version: "1.0"
triggers:
  paid: {schema: {order: {type: integer, required: true}}, description: somebody paid}
actions:
  charge: {command: [cat], retry: 3, timeout: 10s, limits: {max: 5, by: order}, labels: {gpu: a100}}
  ship:
    url: https://example.com/ship
    retry: {max_attempts: 3, initial_delay: 5m, max_delay: 10m, retry_on: TimeoutError}
    on_worker_loss: fail
    on_success: charge
    parameters: {order: integer}
rules:
  charge_it: {trigger: paid, when: payload.order > 7, action: charge, params: {order: "{{ payload.order }}"}}
limits:
  slow: {scope: charge, rate: 100/min, burst: 10}
schedules:
  nightly: {action: charge, cron: "0 3 * * *", timezone: Europe/Berlin, params: {order: 1}}
routes:
  "*::shop::**": shop
workflows:
  sell:
    parameters: {order: integer}
    tasks:
      ask: {inquiry: {prompt: "Sell?", schema: {type: boolean}, timeout: 1d}}
      charge: {action: shop.charge, needs: ask, input: {order: 1}, retry: 2, timeout: 5m}
      ship:
        action: shop.ship
        needs: [charge]
        with_items: "{{ [1, 2] }}"
        concurrency: 1
        input: {order: "{{ item }}"}
        when: {all: [{success: charge}]}
        next: [{when: failed(), publish: {x: 1}}]
    output: "{{ tasks.ship.result }}"
"""


def _wrong(schema: dict[str, Any], document: Any) -> list[str]:
    return [error.message for error in Draft202012Validator(schema).iter_errors(document)]


@pytest.mark.parametrize("kind", SCHEMAS)
def test_a_schema_is_one(kind: str) -> None:
    Draft202012Validator.check_schema(SCHEMAS[kind]())


def test_a_pack_that_is_read_fits(tmp_path: Path) -> None:
    (tmp_path / "pack.yaml").write_text(PACK)
    read_file(tmp_path / "pack.yaml")
    assert _wrong(pack_schema(), read(PACK)[0]) == []


def test_the_yaml_of_the_pages_fits() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    texts = [
        text for page in pages for text in re.findall(r"^```yaml\n(.*?)^```", page.read_text(), re.M | re.S)
    ]
    seen = 0
    for document in (read(text)[0] for text in texts):
        if isinstance(document, dict) and ("workflow" in document or "name" in document):
            schema = workflow_schema() if "workflow" in document else pack_schema()
            assert _wrong(schema, document) == []
            seen += 1
    assert seen >= 2


@settings(max_examples=30, deadline=None)
@given(workflows())
def test_every_workflow_fits_as_it_is_written(workflow: Workflow) -> None:
    assert _wrong(workflow_schema(), read(to_yaml(workflow))[0]) == []


@pytest.mark.parametrize(
    ("given", "place"),
    [
        ("wen", {"rules": {"a": {"trigger": "b", "wen": "x", "action": "c"}}}),
        ("comand", {"actions": {"a": {"comand": ["cat"]}}}),
        ("rulez", {"rulez": {}}),
        ("max_atempts", {"actions": {"a": {"command": ["cat"], "retry": {"max_atempts": 3}}}}),
        ("neds", {"workflows": {"w": {"tasks": {"a": {"action": "b.c", "neds": "b"}}}}}),
    ],
)
def test_a_name_that_is_not_known_is_marked(given: str, place: dict[str, Any]) -> None:
    assert _wrong(pack_schema(), {"name": "shop", **place}) != []


def test_descriptions_of_the_models_are_shown_to_authors() -> None:
    rules = pack_schema()["properties"]["rules"]["additionalProperties"]["properties"]
    assert rules["action"]["description"] == "The action or workflow to start."


async def test_the_command_prints_it() -> None:
    assert json.loads((await penstock("schema", "workflow")).out)["required"] == ["workflow", "tasks"]
