"""The reaction of a worker to a heartbeat that is answered, refused, or does not get through."""

from __future__ import annotations

from penstock.store.processes.heartbeats import Pulse
from penstock_worker.attempts.runner import Runner


def answered(runner: Runner, pulse: Pulse) -> None:
    """End the attempts that are not this worker's any more, and those that are to be cancelled. Take work again, or no more."""
    if not pulse.known:
        # The database took this worker for dead. What was claimed since then still counts as ours there.
        runner.lose(list(runner.slots.held()), known=False)
        return
    runner.lose(pulse.lost, known=True)
    runner.cancel(pulse.canceling)
    if pulse.cordoned != runner.slots.cordoned:
        runner.slots.cordon(pulse.cordoned)


def silent(runner: Runner, seconds: float) -> None:
    """End everything before other workers take over: no heartbeat got through for long. If the silence was of all processes,
    no worker has taken over. Then the work is handed back, which is no loss."""
    runner.give_up(f"its worker could not reach the database for {seconds:.0f} s")
