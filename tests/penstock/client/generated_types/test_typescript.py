"""The TypeScript module that `penstock types` writes. What its compiler makes of it is tried in tests/sdk/test_typescript.py."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.client.generated_types.module import digest_of
from penstock.client.generated_types.typescript import module_of


def entry(ref: str, *, enabled: bool = True, **definition: Any) -> dict[str, Any]:
    return {"ref": ref, "enabled": enabled, "definition": definition}


def type_of(schema: Any) -> str:
    """Return the text of the aliases, and of the type of results with this schema."""
    text = module_of([entry("a.b", result=schema, parameters={"additionalProperties": False})])
    head, _, members = text.partition("/** The parameters and the result")
    aliases = "".join(line + "\n" for line in head.splitlines()[2:] if line)
    return aliases + members.partition("result: ")[2].partition(" };\n};")[0]


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({}, "unknown"),
        ({"type": "integer"}, "number"),
        ({"type": ["string", "null"]}, "string | null"),
        ({"enum": ["a", 1, None, True]}, '"a" | 1 | null | true'),
        ({"enum": ["a", [1]]}, "unknown"),
        ({"type": "array", "items": {"type": "string"}}, "string[]"),
        ({"type": "array", "items": {"type": ["string", "null"]}}, "(string | null)[]"),
        ({"type": "array", "prefixItems": [{"type": "string"}]}, "unknown[]"),
        ({"type": "object"}, "{ [name: string]: unknown }"),
        ({"type": "object", "additionalProperties": {"type": "number"}}, "{ [name: string]: number }"),
        ({"type": "object", "additionalProperties": False}, "Record<string, never>"),
        (
            {
                "type": "object",
                "properties": {"a-b": {"type": "string"}, "c": {"type": "boolean"}},
                "required": ["c"],
                "additionalProperties": False,
            },
            '{ "a-b"?: string; c: boolean }',
        ),
        ({"anyOf": [{"type": "string"}, {"type": "number"}]}, "string | number"),
        ({"anyOf": [{"type": "string"}, {}]}, "unknown"),
        ({"allOf": [{"type": ["string", "null"]}, {"type": "string"}]}, "(string | null) & string"),
        ({"type": "string", "secret": True, "enum": ["a"]}, "string"),
        (
            {
                "$ref": "#/$defs/tree",
                "$defs": {"tree": {"type": "array", "items": {"$ref": "#/$defs/tree"}}},
            },
            "export type ABResultTree = ABResultTree[];\nABResultTree",
        ),
        (
            {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}},
            "export type ABResultA = ABResultB;\nexport type ABResultB = unknown;\nABResultA",
        ),
    ],
)
def test_schema_has_its_type(schema: dict[str, Any], expected: str) -> None:
    assert type_of(schema) == expected


def test_module_names_current_actions_and_has_a_digest() -> None:
    definitions = [
        entry("shop.gone", enabled=False),
        entry("shop.charge", description="Charge */ a card.\nAt once.", parameters={"type": "object"}),
    ]
    text = module_of(definitions)
    assert "gone" not in text
    assert "  /** Charge * / a card. */\n" in text
    assert '  "shop.charge": { parameters: { [name: string]: unknown }; result: unknown };\n' in text
    assert digest_of(text) == digest_of(module_of(definitions[::-1])) != digest_of(module_of([]))
