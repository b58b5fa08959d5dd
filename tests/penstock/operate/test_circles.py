"""The circles among blocked executions: found once, and only where nothing lets one of them go on."""

from __future__ import annotations

from uuid import UUID

import pytest

from penstock.operate.why.circles import Block, closed_circles


def blocks(**waits: str) -> dict[UUID, Block]:
    """Return the blocks of executions that are named by a letter: `a="bc"` waits until b or c goes on."""
    return {
        _id(name): Block(_id(name), "ring.work", "limit", "ring.door", frozenset(map(_id, until)))
        for name, until in waits.items()
    }


def _id(letter: str) -> UUID:
    return UUID(int=ord(letter))


@pytest.mark.parametrize(
    ("waits", "circles"),
    [
        ({}, []),
        ({"a": "b"}, []),
        ({"a": "b", "b": "c"}, []),
        ({"a": "b", "b": "a"}, ["ab"]),
        ({"a": "a"}, ["a"]),
        ({"a": "b", "b": "c", "c": "a"}, ["abc"]),
        ({"a": "b", "b": "a", "c": "d", "d": "c"}, ["ab", "cd"]),
        ({"a": "bc", "b": "a"}, []),
        ({"a": "bc", "b": "a", "c": "a"}, ["ab"]),
        ({"a": "bc", "b": "a", "c": "d"}, []),
        ({"a": "b", "b": "c", "c": "b"}, ["bc"]),
        ({"c": "b", "b": "c", "d": "b", "e": "d"}, ["bc"]),
    ],
)
def test_circle_is_named_once_if_nothing_lets_it_go_on(waits: dict[str, str], circles: list[str]) -> None:
    named = ["".join(chr(block.id.int) for block in circle) for circle in closed_circles(blocks(**waits))]
    assert named == circles


def test_long_chain_into_a_circle_has_one_circle() -> None:
    ids = [UUID(int=n) for n in range(1, 501)]
    chain = {
        id: Block(id, "ring.work", "child", "", frozenset([after]))
        for id, after in zip(ids, [*ids[1:], ids[-2]], strict=True)
    }
    [circle] = closed_circles(chain)
    assert [block.id for block in circle] == ids[-2:]
