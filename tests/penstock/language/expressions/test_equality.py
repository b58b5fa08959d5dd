"""The equalities that a condition implies."""

from __future__ import annotations

import pytest

from penstock.errors import ExpressionError
from penstock.language.expressions import equality, key_of, value_at

NAMES = {"parameters": {"order": 7, "who": "ada"}, "item": {"id": "x"}}


@pytest.mark.parametrize(
    ("source", "path", "key"),
    [
        ("event.payload.order == parameters.order", ("payload", "order"), "n7"),
        ("parameters.who == event.payload['who']", ("payload", "who"), "sada"),
        ("{{ event.payload.id == item.id and event.payload.n > 3 }}", ("payload", "id"), "sx"),
        ("event.payload.n > 3 and (event.payload.a[0] == 'b')", ("payload", "a", 0), "sb"),
        ("event.payload.n == parameters.order * 2 + 1", ("payload", "n"), "n15"),
        ("event.payload.n == parameters.missing", ("payload", "n"), None),
        ("event.payload.n == [1]", ("payload", "n"), None),
    ],
)
def test_an_equality_that_must_hold_is_found(source: str, path: tuple[object, ...], key: str | None) -> None:
    found = equality(source, "event")
    assert found is not None
    assert (found.path, found.key(NAMES)) == (path, key)


@pytest.mark.parametrize(
    "source",
    [
        "event.payload.order == 1 or event.payload.n == 2",
        "not event.payload.order == 1",
        "event.payload.order != 1",
        "event.payload.order == event.payload.other",
        "event.payload[parameters.who] == 1",
        "event.payload.a < 3 == parameters.b",
        "event.payload.name | lower == 'ada'",
        "parameters.order == 7",
    ],
)
def test_a_condition_without_a_certain_equality_gives_none(source: str) -> None:
    assert equality(source, "event") is None


def test_a_malformed_condition_says_so() -> None:
    with pytest.raises(ExpressionError):
        equality("event.payload ==", "event")


def test_equal_values_have_one_key_and_others_have_others() -> None:
    assert key_of(1) == key_of(1.0) == key_of(True)
    assert len({key_of(value) for value in (1, "1", 1.5, "1.5", 2**53, 2**53 + 1, "x" * 101, "x" * 102)}) == 8
    assert [key_of(value) for value in (None, [1], {"a": 1})] == [None] * 3


def test_a_value_is_found_by_its_path() -> None:
    assert value_at(("payload", "a", 1), {"payload": {"a": [1, 2]}}) == 2
    for path in (("payload", "b"), ("payload", "a", 5), ("payload", "a", "x"), ("payload", "a", 1, "x")):
        with pytest.raises(LookupError):
            value_at(path, {"payload": {"a": [1, 2]}})
