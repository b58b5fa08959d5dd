"""The one list of queues: all code that handles all of them derives it from there."""

from __future__ import annotations

from penstock.store.outbox import queues
from penstock_executor.handlers import ROUTES


def test_the_executor_handles_every_queue() -> None:
    assert {route.queue for route in ROUTES} == set(queues.QUEUES), (
        "each of QUEUES has a line in ROUTES (services/penstock_executor/handlers/__init__.py), and no other"
    )


def test_a_queue_is_consumed_or_announced_and_never_both() -> None:
    for name in (*queues.QUEUES, f"{queues.WORK}default"):
        assert queues.is_consumed(name)
        assert not queues.is_announcement(name)
    for name in (f"{queues.STATUS_MOVED}completed", queues.INQUIRY_CREATED, queues.INQUIRY_RESPONDED):
        assert queues.is_announcement(name)
        assert not queues.is_consumed(name)
    assert not queues.is_consumed("nobody.knows")
    assert not queues.is_announcement("nobody.knows")
