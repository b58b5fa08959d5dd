"""References to stored results."""

from __future__ import annotations

from uuid import UUID

from penstock.language.terms import stored_references

RUN = UUID(int=7)


def test_a_place_within_a_reference_is_not_looked_at() -> None:
    reference = {"$stored": f"2026-01-01/{RUN}-{'0' * 64}.json", "bytes": 1}
    given = {"rows": reference, "other": [{"rows": reference}]}
    assert stored_references.is_within(given, ["rows"])
    assert stored_references.is_within(given, ["rows", "bytes"])
    assert stored_references.is_within(given, ["other", 0, "rows"])
    assert not stored_references.is_within(given, ["other", 0])
    assert not stored_references.is_within(given, [])
