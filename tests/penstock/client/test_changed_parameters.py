"""The edit of parameters by names and paths."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.client.changed_parameters import edited
from penstock.errors import InvalidInput

OLD = {"customer": {"id": 1}, "rows": [1, {"x": 2}], "a.b": 1, "empty": None}
DEFAULTS = {"options": {"a": 1}}


def edit(changed: dict[str, Any], unset: tuple[str, ...] = ()) -> dict[str, Any]:
    return edited(OLD, DEFAULTS, ["customer", "options", "c.d"], changed, unset)


@pytest.mark.parametrize(
    ("changed", "unset", "new"),
    [
        ({"customer": 7}, (), {"customer": 7}),
        ({"customer.name": "Ada"}, (), {"customer": {"id": 1, "name": "Ada"}}),
        ({"customer.home.city": "Ulm"}, (), {"customer": {"id": 1, "home": {"city": "Ulm"}}}),
        ({"rows.1.x": 3}, (), {"rows": [1, {"x": 3}]}),
        ({"rows[1].x": 3}, (), {"rows": [1, {"x": 3}]}),
        ({"rows[0]": 5}, (), {"rows": [5, {"x": 2}]}),
        ({"unknown[0]": 2}, (), {"unknown[0]": 2}),
        ({"rows.0": 5}, (), {"rows": [5, {"x": 2}]}),
        ({"options.b": 2}, (), {"options": {"a": 1, "b": 2}}),
        ({"a.b": 2}, (), {"a.b": 2}),
        ({"c.d": 2}, (), {"c.d": 2}),
        ({"unknown.x": 2}, (), {"unknown.x": 2}),
        ({"customer": {}, "customer.name": "Ada"}, (), {"customer": {"name": "Ada"}}),
        ({}, ("customer.id",), {"customer": {}}),
        ({"customer.name": "Ada"}, ("customer.id",), {"customer": {"name": "Ada"}}),
    ],
)
def test_edited_parameters(changed: dict[str, Any], unset: tuple[str, ...], new: dict[str, Any]) -> None:
    assert edit(changed, unset) == {**OLD, **new}
    assert OLD["customer"] == {"id": 1}
    assert DEFAULTS == {"options": {"a": 1}}


@pytest.mark.parametrize(
    "name",
    [
        *("rows[-1].x", "rows[0", "rows[ 0 ]", "rows[0]x", "rows[x]", "rows[]", "rows]", "rows[٠]"),
        *("customer..id", "customer.", "customer.home[0", "customer.id.", "customer[.id]", "rows[0]]"),
        "rows[" + "9" * 5000 + "]",
    ],
)
def test_malformed_path_is_refused(name: str) -> None:
    for changed, unset in (({name: 2}, ()), ({}, (name,))):
        with pytest.raises(InvalidInput, match=r"is not a path|no parameter") as refused:
            edit(changed, unset)
        assert refused.value.hint


@pytest.mark.parametrize("step", ["-1", "٠", "9" * 5000])
def test_element_has_a_plain_number(step: str) -> None:
    with pytest.raises(InvalidInput, match="has no element"):
        edit({f"rows.{step}": 2}, ())


def test_unset_parameter_is_left_out() -> None:
    assert "customer" not in edit({}, ("customer",))
    assert "empty" not in edit({}, ("empty",))


@pytest.mark.parametrize(
    ("changed", "unset", "message"),
    [
        ({"rows.5": 1}, (), "the list rows has no element 5"),
        ({"rows.x": 1}, (), "the list rows has no element x"),
        ({"customer.id.x": 1}, (), r"customer\.id is neither an object nor a list"),
        ({"empty.x": 1}, (), "empty is neither an object nor a list"),
        ({}, ("customer.nme",), r"no parameter customer\.nme to unset"),
        ({}, ("customer.home.city",), r"no parameter customer\.home\.city to unset"),
        ({}, ("nope",), "no parameter nope to unset"),
        ({}, ("rows.0",), "an element of a list"),
        ({"customer": 1}, ("customer",), "customer is set and unset"),
    ],
)
def test_impossible_edit_is_refused(changed: dict[str, Any], unset: tuple[str, ...], message: str) -> None:
    with pytest.raises(InvalidInput, match=message) as refused:
        edit(changed, unset)
    assert refused.value.hint
