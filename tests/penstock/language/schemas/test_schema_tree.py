from __future__ import annotations

from typing import Any

import pytest

from penstock.language.schemas.schema_tree import LISTS, NAMED, ONE, every, follow, inner, normalise


@pytest.mark.parametrize("word", ONE)
def test_schema_inside_is_met_below_a_keyword_of_one(word: str) -> None:
    part = {"title": "inside"}
    assert list(inner({word: part, "default": part})) == [((word,), part)]
    assert list(every({word: part})) == [((), {word: part}), ((word,), part)]
    assert list(every({word: True})) == [((), {word: True})]


@pytest.mark.parametrize("word", LISTS)
def test_schema_inside_is_met_below_a_keyword_of_a_list(word: str) -> None:
    parts: list[Any] = [{"title": "first"}, True, {"items": {}}]
    assert list(inner({word: parts})) == [((word, 0), parts[0]), ((word, 1), True), ((word, 2), parts[2])]
    places = {place for place, _ in every({"not": {word: parts}})}
    assert places == {(), ("not",), ("not", word, 0), ("not", word, 2), ("not", word, 2, "items")}
    assert list(inner({word: {"a": {}}})) == []


@pytest.mark.parametrize("word", NAMED)
def test_schema_inside_is_met_below_a_keyword_of_names(word: str) -> None:
    parts = {"a": {"title": "first"}, "b": False}
    assert list(inner({word: parts})) == [((word, "a"), parts["a"]), ((word, "b"), False)]
    assert list(inner({word: [{}]})) == []


ROOT: dict[str, Any] = {
    "$defs": {
        "a": {"title": "a"},
        "b/c~d": {"title": "b"},
        "~1": {"title": "escaped twice"},
        "": {"title": "no name"},
        "50% x": {"title": "percent"},
    },
    "anyOf": [{"title": "first"}, True],
    "default": "text",
    "list": [1],
}


@pytest.mark.parametrize(
    ("reference", "target"),
    [
        ("#", ROOT),
        ("#/$defs/a", {"title": "a"}),
        ("#/$defs/b~1c~0d", {"title": "b"}),
        ("#/$defs/~01", {"title": "escaped twice"}),
        ("#/$defs/", {"title": "no name"}),
        ("#/$defs/50%25%20x", {"title": "percent"}),
        ("#/$defs/b%2Fc~0d", {"title": "b"}),
        ("#/anyOf/0", {"title": "first"}),
        ("#/anyOf/1", True),
        ("#/anyOf/2", None),
        ("#/anyOf/-1", None),
        ("#/anyOf/x", None),
        ("#/$defs/none", None),
        ("#/$defs/a/title", None),
        ("#/$defs/a/title/0", None),
        ("#/default", None),
        ("#/list/0", None),
        ("#/list", None),
        ("#a", None),
        ("a", None),
        ("", None),
        ("x#/$defs/a", None),
        ("https://example.com/schema#/$defs/a", None),
        (None, None),
        (7, None),
    ],
)
def test_reference_is_followed_within_the_document(reference: Any, target: Any) -> None:
    assert follow(ROOT, reference) == target


NORMALISED: dict[str, tuple[Any, Any]] = {
    "required is a set": ({"required": ["b", "a", "b"]}, {"required": ["a", "b"]}),
    "required that is not a list stays": ({"required": True}, {"required": True}),
    "no names are required": ({"required": []}, {}),
    "no properties": ({"properties": {}, "title": "t"}, {"title": "t"}),
    "additional properties of any kind": ({"additionalProperties": True}, {}),
    "additional properties that are empty": ({"additionalProperties": {}}, {}),
    "no additional properties": ({"additionalProperties": False}, {"additionalProperties": False}),
    "items of any kind": ({"items": True}, {}),
    "items that are empty": ({"items": {}}, {}),
    "no items": ({"items": False}, {"items": False}),
    "bare types": ({"anyOf": [{"type": "string"}, {"type": "null"}]}, {"type": ["string", "null"]}),
    "bare types beside a type": (
        {"anyOf": [{"type": "string"}], "type": "string"}, {"anyOf": [{"type": "string"}], "type": "string"},
    ),
    "types that say more": (
        {"anyOf": [{"type": "string", "title": "t"}, {"type": "null"}]},
        {"anyOf": [{"type": "string", "title": "t"}, {"type": "null"}]},
    ),
    "a branch that is not an object": ({"anyOf": [True, {"type": "null"}]}, {"anyOf": [True, {"type": "null"}]}),
    "lists of types": ({"anyOf": [{"type": ["string", "null"]}]}, {"anyOf": [{"type": ["string", "null"]}]}),
    "a type twice": (
        {"anyOf": [{"type": "string"}, {"type": "string"}]}, {"anyOf": [{"type": "string"}, {"type": "string"}]},
    ),
    "branches that are not a list": ({"anyOf": {"type": "string"}}, {"anyOf": {"type": "string"}}),
    "a part of one": ({"not": {"items": {}}}, {"not": {}}),
    "a part of a list": ({"allOf": [{"items": {}}, True]}, {"allOf": [{}, True]}),
    "a part of names": ({"properties": {"a": {"items": {}}}}, {"properties": {"a": {}}}),
    "a list that is none": ({"allOf": {"items": {}}}, {"allOf": {"items": {}}}),
    "names that are none": ({"properties": [{"items": {}}]}, {"properties": [{"items": {}}]}),
    "a value that looks like a schema": ({"default": {"items": {}}}, {"default": {"items": {}}}),
    "no schema": (True, True),
}  # fmt: skip


@pytest.mark.parametrize("name", NORMALISED)
def test_schema_is_normalised_without_change_of_meaning(name: str) -> None:
    schema, normalised = NORMALISED[name]
    before = repr(schema)
    assert normalise(schema) == normalised
    assert repr(schema) == before


def test_titles_go_at_every_depth_where_they_are_made_up() -> None:
    schema = {
        "title": "A",
        "not": {"title": "B"},
        "allOf": [{"title": "C"}],
        "properties": {"title": {"title": "D", "type": "string"}},
    }
    assert normalise(schema, titles=False) == {
        "not": {},
        "allOf": [{}],
        "properties": {"title": {"type": "string"}},
    }
    assert normalise(schema) == schema
    assert normalise({"title": {"type": "string"}}, titles=False) == {"title": {"type": "string"}}
