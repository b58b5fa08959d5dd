"""The YAML that packs and workflows are written in."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import DefinitionError
from penstock.language.workflows import safe_yaml

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"], include_characters="\n\t")),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text("ab: -'#", max_size=4), inner, max_size=3)
    ),
    max_leaves=10,
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("yes", "yes"), ("on", "on"), ("No", "No"), ("12:30", "12:30"), ("2026-01-01", "2026-01-01"), ("0123", "0123"),
        ("0x1f", "0x1f"), ("1_000", "1_000"), ("true", True), ("False", "False"), ("null", None), ("~", None), ("", None),
        ("-3", -3), ("1e3", 1000.0), (".5", 0.5), ("'3'", "3"), ("[a, 1]", ["a", 1]), ("{a: {b: c}}", {"a": {"b": "c"}}),
    ],
)  # fmt: skip
def test_values_are_those_of_json_and_everything_else_is_text(text: str, value: Any) -> None:
    assert safe_yaml.read(text)[0] == value


@given(JSON)
def test_written_yaml_is_read_back(value: Any) -> None:
    assert safe_yaml.read(safe_yaml.write(value))[0] == value


def test_every_value_has_its_place() -> None:
    _, marks = safe_yaml.read("a:\n  - b: 1\n    c: 2\n  - 3\n")
    assert marks["a",] == (1, 1)
    assert marks["a", 0, "c"] == (3, 5)
    assert marks["a", 1] == (4, 5)


def test_an_alias_is_a_copy() -> None:
    value, _ = safe_yaml.read("a: &x {n: 1}\nb: *x\n")
    assert value == {"a": {"n": 1}, "b": {"n": 1}}
    assert value["a"] is not value["b"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: 1\nb: 2\na: 3", "f:3:1: `a` is given twice"),
        ("a: [1", "f:1:6: expected"),
        ("a: !!python/object:os.system x", "f:1:4: the tag tag:yaml.org,2002:python/object:os.system is not supported"),
        ("a: !!int x", "f:1:4: this is not a valid int"),
        ("a: !!set {b}", "is not supported"),
        ("<<: {a: 1}", "f:1:1: merge keys"),
        ("? [a]\n: 1", "f:1:3: a key is a single word"),
        ("a: 1\n---\nb: 2", "f:2:1: but found another document"),
        ("[" * 200 + "]" * 200, "nests too deep"),
        ("[" * 9000, "nests too deep"),
        ("a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
            f"{n}: &{n} [{','.join([f'*{p}'] * 9)}]\n" for p, n in pairwise("abcdefgh")
        ), "too large"),
        ("a: &a [*a]", "too large or nests too deeply"),
        ("a: \x00", "f"),
        ("x" * 17_000_000, "f has more than"),
    ],
)  # fmt: skip
def test_unsafe_yaml_is_refused(text: str, said: str) -> None:
    with pytest.raises(DefinitionError) as refused:
        safe_yaml.read(text, "f")
    assert said in refused.value.message
