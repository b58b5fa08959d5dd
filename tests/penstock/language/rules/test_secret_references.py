"""`{{ secrets.x }}` may be given to what runs, and used for nothing else."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from penstock.errors import DefinitionError, ExpressionError, InvalidInput
from penstock.language.expressions import SECRETS, SecretText, compile_template, condition
from penstock.language.rules.secret_references import (
    KEY,
    checked_parameters,
    names_in,
    replaced,
    with_references,
    without_references,
)
from penstock.language.schemas import Schema
from penstock.language.workflows import from_yaml


def kept(template: Any, **names: Any) -> dict[str, Any]:
    found: dict[str, Any] = orjson.loads(
        checked_parameters(Schema(None), compile_template(template)({**names, "secrets": SECRETS}), 1_000)
    )
    return found


def test_a_reference_is_kept_beside_the_written_text() -> None:
    stored = kept(
        {"auth": "Bearer {{ secrets.token }}", "to": ["{{ x }}", "{{ secrets.a }}"]}, x="{{ secrets.b }}"
    )
    assert names_in(stored) == {"token", "a"}
    assert without_references(stored) == {
        "auth": "Bearer {{ secrets.token }}",
        "to": ["{{ secrets.b }}", "{{ secrets.a }}"],
    }
    assert replaced(stored, lambda parts: "|".join(parts)) == {
        "auth": "Bearer |token",
        "to": ["{{ secrets.b }}", "a"],
    }


def test_a_passed_on_secret_stays_a_reference_but_not_a_computed() -> None:
    parameters = with_references(kept({"token": "{{ secrets.token }}"}))
    assert names_in(kept({"a": "x {{ p.token }}"}, p=parameters)) == {"token"}
    assert KEY not in kept({"a": "{{ p.token | upper }}", "b": "{{ p.token[:5] }}"}, p=parameters)
    assert isinstance(parameters["token"], SecretText)


def test_texts_that_only_look_like_references_are_none() -> None:
    assert kept({"a": "{{ x }}"}, x="{{ secrets.b }}") == {"a": "{{ secrets.b }}"}
    with pytest.raises(InvalidInput):
        kept("{{ x }}", x={KEY: [[["a"], [{"secret": "b"}]]], "a": "b"})


@pytest.mark.parametrize(
    "written",
    [
        "{{ secrets }}",
        "{{ secrets.a ~ 'b' }}",
        "{{ secrets.a | length }}",
        "{{ secrets['a'] }}",
        "{% if secrets.a %}b{% endif %}",
        "{% for x in secrets %}{{ x }}{% endfor %}",
        "{{ secrets.a.b }}",
    ],
)
def test_nothing_is_computed_of_secrets(written: str) -> None:
    with pytest.raises(ExpressionError, match="an expression cannot compute with secrets") as refused:
        compile_template({"a": written})
    assert "only the worker" in (refused.value.hint or "")


@pytest.mark.parametrize(
    "where",
    [
        'when: "{{ secrets.a }}"',
        'route: "{{ secrets.a }}"',
        'publish: {x: "{{ secrets.a }}"}',
        'with_items: "{{ secrets.a }}"',
        'next: [{when: "{{ secrets.a }}", do: [end]}]',
    ],
)
def test_elsewhere_in_a_workflow_they_are_refused_in_a_plain_word(where: str) -> None:
    with pytest.raises(DefinitionError) as refused:
        from_yaml(f"workflow: a.b\ntasks:\n  first: {{action: a.c, {where}}}\n  end: {{action: a.c}}\n")
    assert "Only the worker knows secrets" in str(refused.value) + str(refused.value.hint)


def test_a_condition_does_not_see_them() -> None:
    with pytest.raises(ExpressionError, match="not defined"):
        condition("secrets.a")({"payload": {}})
