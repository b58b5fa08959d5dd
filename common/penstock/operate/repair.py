"""`penstock repair`: repairs violations that `penstock check` finds, if there is a repair that can do no harm.

A repair is a function in the database (migrations/functions/upkeep). The function takes the ids of the violations,
checks again under the locks, and leaves alone rows that are right by then. A violation without a repair is evidence of
what happened, and stays.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from penstock.errors import InvalidInput
from penstock.language.terms.options import did_you_mean
from penstock.messaging.outbox import Publisher
from penstock.messaging.relay import relay
from penstock.operate.check import violated
from penstock.store.session.committed_once import committed_once
from penstock.store.session.database import Session
from penstock.store.upkeep import repairs
from penstock.store.upkeep.invariants import INVARIANTS, Invariant

BATCH = 500
"""Violations that one transaction repairs."""
ROUNDS = 1000
"""The maximum number of batches of one invariant."""
SHOWN = 20


MENDS: Mapping[str, str] = {
    "I2": "take back running executions that no worker has claimed, and remove the claims of executions that do not run",
    "I3s": "free slots that no execution needs, and start the next execution in line",
    "I5": "let an executor check the gates of these lanes again",
    "I5w": "put queued executions back into their lanes, at their old places, and take others out",
    "I7": "start the missing executions of enforcements",
    "I8": "publish staged messages (if PostgreSQL carries the messages, a running executor handles them)",
    "I10a": "add open executions to the table `live`",
    "I10b": "remove ended and queued executions from the table `live`",
    "I10c": "record that the outcome was lost, so that waiting callers get an answer",
    "I10d": "take back running executions if their worker is no longer registered",
    "I10e": "run these executions again, because nothing can end their wait",
    "I10f": "send ended executions to the archive",
    "I10g": "continue durable functions after the end of their wait",
    "I11": "delete the recorded steps of runs that do not exist",
}
"""The repairs, by invariant. Those that `store/upkeep/repairs.py` does not list publish messages from here."""
EVIDENCE = (
    "no repair: these rows record past events, and a change would only hide the fault. Keep a dump of the "
    "database, and report the fault."
)

State = Literal["proposed", "mended", "left", "no mend"]


@dataclass(frozen=True, slots=True)
class Repair:
    """The violations of one invariant, their repair, and its outcome. `violations` are the remaining ones, at most
    SHOWN; `mended` is the number of repaired ones."""

    name: str
    says: str
    does: str
    state: State
    violations: Sequence[str]
    mended: int = 0


async def repair(
    session: Session, publisher: Publisher, *, apply: bool, only: Collection[str] = ()
) -> list[Repair]:
    """Check every invariant (or those in `only`). With `apply`, repair the violations and publish the staged
    messages. Return the violated invariants.

    It is safe on a live system, and again after a crash. Raises InvalidInput for an unknown name.
    """
    names = [invariant.name for invariant in INVARIANTS]
    for name in only:
        if name not in names:
            raise InvalidInput(f"no invariant {name!r}", hint=did_you_mean(name, names))
    selected = [invariant for invariant in INVARIANTS if not only or invariant.name in only]
    done = [await _one(session, publisher, invariant, apply=apply) for invariant in selected]
    await publisher.flush()
    return [outcome for outcome in done if outcome is not None]


async def _one(session: Session, publisher: Publisher, invariant: Invariant, *, apply: bool) -> Repair | None:
    current = await violated(session, invariant, BATCH)
    if not current.violations:
        return None
    does = MENDS.get(invariant.name)
    if does is None:
        return Repair(invariant.name, invariant.says, EVIDENCE, "no mend", current.violations[:SHOWN])
    if not apply:
        return Repair(invariant.name, invariant.says, does, "proposed", current.violations[:SHOWN])
    mended = 0
    for _ in range(ROUNDS):
        await _mend(session, publisher, invariant.name, current.violations)
        remaining = await violated(session, invariant, BATCH)
        gone = len(set(current.violations) - set(remaining.violations))
        mended += gone
        current = remaining
        if not gone or not remaining.violations:
            break
    state: State = "left" if current.violations else "mended"
    return Repair(invariant.name, invariant.says, does, state, current.violations[:SHOWN], mended)


async def _mend(session: Session, publisher: Publisher, invariant: str, ids: Sequence[str]) -> None:
    if invariant not in repairs.REPAIRS:
        while await relay(publisher.transport, session, 0.0):
            pass
        return
    tx, _ = await committed_once(session, lambda tx: repairs.repair(tx, invariant, ids))
    publisher.publish(tx.staged)
