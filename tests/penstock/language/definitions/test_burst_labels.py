"""Labels by which a rule groups bursts: which are accepted, and what is refused."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from penstock import Rule, Trigger, Window, action, load
from penstock.errors import DefinitionError
from penstock.language.rules.trial import play
from tests.penstock.language.definitions.refusals import refused

edited = Trigger("burst_labels.edited")
LABELS = {"customer": "{{ payload.customer }}"}


@action(pack="burst_labels")
async def index() -> None: ...


def rule(**options: Any) -> Rule:
    return Rule("burst_labels.on_edit", trigger=edited, action=index, debounce="5s", **options)


def test_label_of_the_rule_groups_bursts() -> None:
    assert rule(by="labels.customer", labels=LABELS).body()["by"] == ["labels.customer"]


def test_label_that_the_rule_does_not_give_is_refused() -> None:
    refused(
        lambda: rule(by=["payload.doc", "labels.team"], labels=LABELS),
        "has by='labels.team' without that label",
        "Add it to the rule: labels={'team': '{{ payload.team }}'}.",
    )


@pytest.mark.parametrize("path", ["labels", "labels.", "labels.Team", f"labels.{'x' * 64}"])
def test_path_of_no_valid_label_is_refused(path: str) -> None:
    refused(
        lambda: rule(by=path, labels=LABELS),
        f"is not a path of an event or a label: {path!r}",
        "or a label of the rule: 'labels.customer'",
    )


def test_window_is_not_grouped_by_labels() -> None:
    refused(
        lambda: Window(all=["a.b", "a.c"], by="labels.customer"),
        "is not a path of an event: 'labels.customer'",
    )


YAML = """
name: burst_labels
rules:
  on_edit:
    trigger: edited
    action: index
    labels: {customer: "{{ payload.customer }}"}
    debounce: 5s
    by: labels.%s
"""


def test_rule_in_yaml_takes_a_label(tmp_path: Path) -> None:
    file = tmp_path / "pack.yaml"
    file.write_text(YAML % "customer")
    [loaded] = load(file).rules.values()
    assert loaded.by == ("labels.customer",)
    file.write_text(YAML % "team")
    with pytest.raises(DefinitionError, match=r"pack\.yaml:\d+: .*by='labels\.team' without that label"):
        load(file)


def test_trial_groups_events_by_label() -> None:
    at = datetime(2030, 1, 31, 9, tzinfo=UTC).isoformat()
    events = [
        {"trigger": edited.ref, "payload": {"customer": name}, "at": at} for name in ("acme", "zeta", "acme")
    ]
    played = play(rule(by="labels.customer", labels=LABELS), events)
    assert [match.events for match in played.matches] == [[1], [0, 2]]
