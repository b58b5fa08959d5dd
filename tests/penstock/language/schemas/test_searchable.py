"""The searchable parameters of a definition are parameters of it that a label can have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from penstock.language.schemas import parameters_schema
from penstock.language.schemas.searchable import check_searchable
from penstock.language.terms.options import Wrong

SCHEMA = parameters_schema(
    {
        "name": {"type": "string"},
        "size": {"type": "integer"},
        "lines": {"type": "array"},
        "address": {"type": "object"},
        "nothing": {"type": "null"},
        "token": {"type": "string", "secret": True},
    }
)


@pytest.mark.parametrize("names", [[], ["name"], ["size", "name"]])
def test_parameter_that_a_label_can_have_is_searchable(names: Sequence[str]) -> None:
    check_searchable(names, SCHEMA)


@pytest.mark.parametrize(
    ("name", "message", "hint"),
    [
        (
            "Name",
            "has a key that is not a lowercase word: 'Name'",
            "Write a key such as customer: a lowercase letter",
        ),
        ("other", "names no parameter: other", "Available: address, lines, name, nothing, size, token."),
        ("token", "names token, which is a secret", "Labels are shown in lists. Leave the parameter out."),
        *[
            (
                name,
                f"names {name}, which is not a text, number or boolean",
                "Make its searchable part a parameter.",
            )
            for name in ("lines", "address", "nothing")
        ],
    ],
)
def test_other_parameter_is_refused_with_a_hint(name: str, message: str, hint: str) -> None:
    with pytest.raises(Wrong) as wrong:
        check_searchable(["name", name], SCHEMA)
    assert str(wrong.value) == message
    assert (wrong.value.hint or "").startswith(hint)


@pytest.mark.parametrize("schema", [{}, {"properties": True}])
def test_name_is_checked_without_known_parameters(schema: dict[str, Any]) -> None:
    check_searchable(["name", "size"], schema)
    with pytest.raises(Wrong, match="not a lowercase word"):
        check_searchable(["name", "Size"], schema)


def test_name_after_a_parameter_of_any_type_is_checked() -> None:
    schema = {"properties": {"name": True, "size": {"type": "array"}}}
    with pytest.raises(Wrong, match="not a text, number or boolean"):
        check_searchable(["name", "size"], schema)
