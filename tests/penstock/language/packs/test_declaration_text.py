"""A declaration as text. The loader of definitions reads each text, and must find an equal declaration."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock.language.definitions.rule import Rule
from penstock.language.definitions.schedule import Schedule
from penstock.language.definitions.window import Window
from penstock.language.loading import load
from penstock.language.packs.declaration_text import python_of, yaml_of

HOSTILE = 'it\'s "quoted" \\ {{ payload.x }} {% raw %} # no: comment\nnext line\u202e'
RULES: tuple[dict[str, Any], ...] = (
    {},
    {"when": "payload.amount > 100 and payload.note != 'a \"b\"'"},
    {
        "params": {
            "order": "{{ payload.order }}",
            "yes": True,
            "no": None,
            "list": [1, 2.5, "on"],
            "12": "0x1F",
        }
    },
    {
        "description": HOSTILE,
        "labels": {"customer": "{{ payload.customer }}"},
        "priority": -5,
        "tenant": "acme",
    },
    {"debounce": "30s", "by": ["payload.doc"], "at_most": "5m", "keep": "all", "expires": "2h"},
    {
        "budget": {"tokens": 100},
        "when_spent": "wait",
        "max_depth": 3,
        "max_descendants": 50,
        "enabled": False,
    },
)
SCHEDULES: tuple[dict[str, Any], ...] = (
    {"cron": "0 2 * * *"},
    {"every": "15m", "jitter": "30s", "missed": {"policy": "skip"}, "overlap": "queue"},
    {"at": "2030-01-31T09:00", "timezone": "Europe/Paris", "context": {"a": 1}},
    {"rrule": "DTSTART:20300107T090000 RRULE:FREQ=WEEKLY;BYDAY=MO", "retry": {"max_attempts": 3}},
    {
        "cron": "@daily",
        "starts_at": "2030-01-01T00:00:00Z",
        "params": {"words": "{{ fire.due_at }}"},
        "enabled": False,
    },
)
DECLARED = [
    *(Rule("shop.large", trigger="shop.paid", action="shop.charge", **options) for options in RULES),
    Rule("shop.both", action="shop.charge", window=Window(all=["shop.paid", "shop.placed"], within="1d")),
    *(Schedule("shop.nightly", action="shop.charge", **options) for options in SCHEDULES),
]


@pytest.mark.parametrize("declaration", DECLARED)
@pytest.mark.parametrize("kind", ["yaml", "py"])
def test_text_is_loaded_as_an_equal_declaration(
    declaration: Rule | Schedule, kind: str, tmp_path: Path
) -> None:
    file = tmp_path / f"copied.{kind}"
    file.write_text(yaml_of(declaration) if kind == "yaml" else python_of(declaration))
    [document] = load(file).documents()
    assert document.digest == declaration.document().digest, file.read_text()
