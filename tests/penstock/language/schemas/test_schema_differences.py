"""The differences of schemas are told by place. Schemas without a difference have the same valid values."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from penstock.language.schemas import check_schema, normalise, parameters_schema, schema_differences
from penstock.language.schemas.budget import Budget
from penstock.language.schemas.validator import Validator
from penstock.language.terms.options import Wrong
from tests.penstock.language.schemas.directed_cases import KEYWORDS, Values, document

CASES: list[tuple[dict[str, Any], dict[str, Any], list[str]]] = [
    ({"n": {"type": "integer"}}, {"n": {"type": "integer", "description": "a number"}}, []),
    ({"n": {"type": "string", "secret": True}}, {"n": {"type": "string"}}, []),
    ({"n": {"enum": ["a", "b"]}}, {"n": {"enum": ["b", "a"]}}, []),
    (
        {"n": {"type": "integer"}},
        {"n": {"type": "string"}},
        ['n.type: the definition has "integer", the worker "string"'],
    ),
    ({"n": {"const": 1}}, {"n": {"const": True}}, ["n.const: the definition has 1, the worker true"]),
    ({"n": {"type": "integer"}}, {}, ["n: only the definition has it"]),
    ({}, {"n": {"type": "integer"}}, ["n: only the worker has it"]),
    (
        {"n": {"type": "integer", "required": True}},
        {"n": {"type": "integer"}},
        ["n: only the definition requires it"],
    ),
    (
        {"n": {"type": "integer"}},
        {"n": {"type": "integer", "default": 3}},
        ["n.default: only the worker has it, as 3"],
    ),
    ({"n": {"x-unit": "s"}}, {"n": {}}, []),
    (
        {"n": {"anyOf": [{"type": "string", "minLength": 1, "title": "Name"}, {"type": "integer"}]}},
        {"n": {"anyOf": [{"type": "string", "minLength": 1}, {"type": "integer"}]}},
        [],
    ),
    (
        {"n": {"anyOf": [{"type": "string", "title": "Name"}, {"type": "null"}]}},
        {"n": {"anyOf": [{"type": "string"}, {"type": "null"}]}},
        [],
    ),
    (
        {
            "n": {
                "type": "array",
                "items": {"anyOf": [{"type": "string", "description": "A name"}, {"type": "null"}]},
            }
        },
        {"n": {"type": "array", "items": {"type": ["null", "string"]}}},
        [],
    ),
    (
        {"n": {"anyOf": [{"minLength": 1}, {"maximum": 2}]}},
        {"n": {"anyOf": [{"minLength": 3}, {"maximum": 2}]}},
        [
            'n.anyOf: the definition has [{"minLength":1},{"maximum":2}], the worker [{"minLength":3},{"maximum":2}]'
        ],
    ),
    (
        {"n": {"const": "a" * 78}},
        {"n": {"const": "b" * 79}},
        [f'n.const: the definition has "{"a" * 78}", the worker "{"b" * 79}…'],
    ),
    (
        {"lines": {"type": "array", "items": {"type": "object", "properties": {"sku": {"type": "string"}}}}},
        {"lines": {"type": "array", "items": {"type": "object", "properties": {"sku": {"type": "integer"}}}}},
        ['lines.items.sku.type: the definition has "string", the worker "integer"'],
    ),
]


@pytest.mark.parametrize(("defined", "offered", "texts"), CASES)
def test_difference_is_told_by_place(
    defined: dict[str, Any], offered: dict[str, Any], texts: list[str]
) -> None:
    assert list(schema_differences(parameters_schema(defined), parameters_schema(offered))) == texts


def test_difference_of_whole_schemas_is_told_without_a_place() -> None:
    assert list(schema_differences(True, {"type": "string"})) == [  # type: ignore[arg-type]
        'the definition has true, the worker {"type":"string"}'
    ]


def changed(chance: Random, schema: Any) -> Any:
    """Return a copy of a schema with a keyword added, removed or taken from another schema, at any depth."""
    if not isinstance(schema, dict) or not schema:
        return {"type": "string"} if schema is True else True
    word = chance.choice(sorted(schema))
    value = schema[word]
    how = chance.random()
    if how < 0.2:
        return {name: value for name, value in schema.items() if name != word}
    if how < 0.4:
        return {**schema, **document(chance, chance.choice(sorted(KEYWORDS)))}
    if isinstance(value, dict) and value:
        return {**schema, word: changed(chance, value)}
    return schema


def test_schemas_without_a_difference_have_equal_values() -> None:
    """The oracle is the validator. A schema and a changed copy of it that disagree about a value have a difference."""
    chance = Random(11)
    disagreements = 0
    for _ in range(3000):
        schema = document(chance, chance.choice(sorted(KEYWORDS)))
        other = changed(chance, schema)
        try:
            check_schema(other)
        except Wrong:
            continue
        defined, offered = normalise(schema), normalise(other)
        assert list(schema_differences(defined, defined)) == []
        first, second, values = Validator(schema), Validator(other), Values(chance, schema)
        tried = [values.value() for _ in range(8)]
        if any(first.fits(value, Budget()) != second.fits(value, Budget()) for value in tried):
            disagreements += 1
            assert list(schema_differences(defined, offered)), (schema, other)
    assert disagreements > 300
