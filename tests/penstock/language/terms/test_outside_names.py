"""The values that a public door takes as a tenant, a key or a source."""

from __future__ import annotations

import pytest

from penstock.errors import InvalidInput
from penstock.language.terms.outside_names import LONGEST, check_name, check_tenant


@pytest.mark.parametrize("tenant", ["public", "a", "0", "acme-eu_2", "a" * 63])
def test_a_tenant_is_one_segment_of_a_namespace(tenant: str) -> None:
    assert check_tenant(tenant) == tenant


@pytest.mark.parametrize(
    "tenant",
    [
        "",
        "a::b",
        ":",
        "*",
        "a.b",
        "A",
        "-a",
        "a b",
        "a\0",
        "a\n",
        "é",
        "a" * 64,
        "a" * 1000,
        None,
        7,
        "\ud800",
    ],
)
def test_a_text_that_is_not_a_tenant_is_refused_with_a_remedy(tenant: object) -> None:
    with pytest.raises(InvalidInput, match="not a valid tenant name") as caught:
        check_tenant(tenant)
    assert caught.value.hint
    assert len(caught.value.message) < 100


@pytest.mark.parametrize(
    "name", ["order-7", " ", "日本", "a::b", "\x7f", "x" * LONGEST, "é" * (LONGEST // 2)]
)
def test_a_key_may_be_any_text(name: str) -> None:
    assert check_name(name, "the key") == name


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("", "the key is empty"),
        ("a\0b", "NUL"),
        ("x" * (LONGEST + 1), "1,001 bytes"),
        ("é" * LONGEST, "2,000 bytes"),
        ("\ud800", "not valid Unicode"),
        (7, "not text"),
        (b"x", "not text"),
    ],
)
def test_a_name_that_cannot_be_stored_is_refused_with_a_remedy(name: object, why: str) -> None:
    with pytest.raises(InvalidInput, match=why) as caught:
        check_name(name, "the key")
    assert caught.value.hint
    assert "\0" not in caught.value.message
