"""The loops of every executor replica, one file each. LOOPS names all of them.

Each takes a bounded batch with SKIP LOCKED or a guarded UPDATE. A loop acts only on the rows that it really moved, so
any number of replicas may run it at the same time.
"""

from __future__ import annotations

from penstock_executor.loop_runner import Loop
from penstock_executor.loops import (
    announce_moves,
    apply_holds,
    archive_finished,
    call_subscribers,
    close_bursts,
    drop_expired,
    end_overdue,
    end_unclaimed,
    fire_schedules,
    fire_timers,
    make_partitions,
    measure_schedules,
    measure_work,
    reap_workers,
    recover_messages,
    relay_outbox,
    report_rule_failures,
    report_stuck,
    return_unclaimed,
    run_polls,
    seal_audit,
    send_spans,
    tidy_backlog,
)

LOOPS: tuple[Loop, ...] = (
    fire_timers.LOOP,
    fire_schedules.LOOP,
    measure_schedules.LOOP,
    measure_work.LOOP,
    run_polls.LOOP,
    close_bursts.LOOP,
    relay_outbox.LOOP,
    announce_moves.LOOP,
    call_subscribers.LOOP,
    report_rule_failures.LOOP,
    send_spans.LOOP,
    seal_audit.LOOP,
    reap_workers.LOOP,
    return_unclaimed.LOOP,
    end_overdue.LOOP,
    end_unclaimed.LOOP,
    report_stuck.LOOP,
    recover_messages.LOOP,
    archive_finished.LOOP,
    make_partitions.LOOP,
    drop_expired.LOOP,
    tidy_backlog.LOOP,
    apply_holds.LOOP,
)
