"""Ids."""

from __future__ import annotations

import uuid

from penstock.language.terms.ids import made_at, new_id


def test_ids_are_uuid7_that_only_grow() -> None:
    ids = [new_id() for _ in range(10_000)]
    assert ids == sorted(ids)
    assert len(set(ids)) == len(ids)
    assert {(id.version, id.variant) for id in ids} == {(7, uuid.RFC_4122)}
    assert abs((made_at(ids[0]) - made_at(ids[-1])).total_seconds()) < 60
