"""What every executor replica does again and again: one file a loop, all of them named here.

Each takes a bounded batch with SKIP LOCKED or a guarded UPDATE and acts only on the rows that it really moved, so any
number of replicas may run it at the same time.
"""

from __future__ import annotations

from penstock_executor.loops import (
    announce,
    archive,
    overdue,
    partitions,
    polls,
    relay,
    restage,
    retention,
    schedule_figures,
    schedules,
    sweep,
    timers,
    unclaimed,
)
from penstock_executor.loops.loop import Loop

LOOPS: tuple[Loop, ...] = (
    timers.LOOP,
    schedules.LOOP,
    schedule_figures.LOOP,
    polls.LOOP,
    relay.LOOP,
    announce.LOOP,
    sweep.LOOP,
    unclaimed.LOOP,
    overdue.LOOP,
    restage.LOOP,
    archive.LOOP,
    partitions.LOOP,
    retention.LOOP,
)
