"""The acks that are sent settle exactly what was meant."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from penstock.messaging.transports.rabbitmq.acks import acks


def test_a_batch_settled_whole_takes_one_ack() -> None:
    assert acks([4, 5, 6], {4, 5, 6}) == [(6, True)]


def test_nothing_older_is_settled_along_with_a_later_one() -> None:
    assert acks([1, 2, 3], {2}) == [(2, False)]
    assert acks([1, 2, 3, 4], {1, 3, 4}) == [(1, True), (3, False), (4, False)]


@given(st.sets(st.integers(1, 40)), st.data())
def test_the_broker_is_left_with_exactly_the_rest(opened: set[int], data: st.DataObject) -> None:
    settled = data.draw(st.sets(st.sampled_from(sorted(opened)))) if opened else set()
    held = set(opened)
    for tag, multiple in acks(sorted(opened), settled):
        assert tag in held  # the broker closes a channel that acks what it does not hold
        held -= {t for t in held if t <= tag} if multiple else {tag}
    assert held == opened - settled
