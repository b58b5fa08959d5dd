"""The worker's reaction to a heartbeat that was answered or refused, or that got no answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import UUID

from penstock.store.processes.heartbeats import Pulse
from penstock_worker.attempts.runner import Runner


def answered(runner: Runner, pulse: Pulse) -> None:
    """End the attempts that the worker no longer owns, and those that are to be cancelled. Cordon or uncordon the
    worker as the answer says."""
    if not pulse.is_registered:
        # The database has declared this worker dead. It still has the claims that the worker made afterwards, so the
        # loss is not confirmed.
        runner.lose(runner.slots.held(), confirmed=False)
        return
    runner.end_clean_up(pulse.ending)
    follow(runner, pulse.lost_attempts, pulse.canceling, cordoned=pulse.cordoned)


def follow(
    runner: Runner, lost_attempts: Mapping[UUID, int], cancel: Sequence[UUID], *, cordoned: bool
) -> None:
    """End `lost_attempts` (execution to number), and the attempts of the executions to `cancel`. Cordon or uncordon the
    worker."""
    runner.lose(lost_attempts, confirmed=True)
    runner.cancel(cancel)
    if cordoned != runner.slots.cordoned:
        runner.slots.cordon(cordoned)


def silent(runner: Runner, seconds: float) -> None:
    """End all attempts before other workers take over, because no heartbeat was answered for long.

    If no process of the installation got an answer, no worker has taken over. Then the work is handed back, which does
    not count as a loss.
    """
    runner.give_up(f"its worker could not reach the installation for {seconds:.0f} s")
