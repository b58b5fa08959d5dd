"""The definitions that come as options, and not from a file."""

from __future__ import annotations

import pytest

from penstock.errors import DefinitionError
from penstock.operate.definitions import rule_of, schedule_of


def test_refusal_names_schedule_once() -> None:
    with pytest.raises(DefinitionError) as refused:
        schedule_of("depot.weekly", {"cron": "61 2 * * *", "action": "depot.check"})
    assert refused.value.message.startswith("schedule depot.weekly: cron: ")


def test_refusal_of_two_options_names_schedule_once_a_line() -> None:
    with pytest.raises(DefinitionError) as refused:
        schedule_of("depot.weekly", {"cron": "61 2 * * *", "at": "x", "action": "depot.check"})
    lines = refused.value.message.splitlines()
    assert len(lines) > 1
    assert all(line.startswith("schedule depot.weekly: ") for line in lines)


def test_refusal_names_rule_once() -> None:
    with pytest.raises(DefinitionError) as refused:
        rule_of("depot.large", {"tigger": "depot.placed"})
    assert refused.value.message.startswith("rule depot.large: tigger: ")
