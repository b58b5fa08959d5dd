from __future__ import annotations

import pytest

from penstock.language.terms.debounce import key_of


@pytest.mark.parametrize(("value", "other"), [(7, 7.0), (0, -0.0), (10**15, 1e15)])
def test_equal_numbers_have_one_key(value: float, other: float) -> None:
    assert key_of(["payload.order"], {"payload": {"order": value}}) == key_of(
        ["payload.order"], {"payload": {"order": other}}
    )


@pytest.mark.parametrize(("value", "other"), [(7, "7"), (1, True), (7, 7.5), (0, None), (0.1, 0.2)])
def test_other_values_have_other_keys(value: object, other: object) -> None:
    assert key_of(["payload.order"], {"payload": {"order": value}}) != key_of(
        ["payload.order"], {"payload": {"order": other}}
    )
