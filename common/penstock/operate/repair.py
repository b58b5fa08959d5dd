"""`penstock repair`: repairs violations that `penstock check` finds, if there is a repair that can do no harm.

A repair is a function in the database (migrations/functions/upkeep). It takes the ids of the violations, checks again
under the locks, and leaves alone rows that are right by then. A violation without a repair is evidence of what
happened, and stays.
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


@dataclass(frozen=True, slots=True)
class Mend:
    """A repair: its description, and its statement. None: messages are published from here."""

    does: str
    repair: repairs.Repair | None


MENDS: Mapping[str, Mend] = {
    "I2": Mend(
        "take back what runs for nobody; it runs again as after a lost worker", repairs.take_back_unowned
    ),
    "I3s": Mend("free slots that nobody needs, and let the next in line start", repairs.free_slots),
    "I5": Mend("look again at gates that are open", repairs.look_at_gates),
    "I5w": Mend("put back into line who should stand there, at the old place", repairs.put_back_into_line),
    "I7": Mend("start executions of enforcements that never had one", repairs.start_enforced),
    "I8": Mend("publish what was staged (with PostgreSQL alone: an executor has to take it)", None),
    "I10a": Mend("show to recovery what is open", repairs.make_live),
    "I10b": Mend("hide from recovery what is not open", repairs.make_not_live),
    "I10c": Mend("write down that an outcome was lost, for whoever waits", repairs.note_lost_outcomes),
    "I10d": Mend("take back what runs on workers that are gone", repairs.take_back_orphans),
    "I10e": Mend("run again what waits for an answer to nothing", repairs.run_silent_again),
    "I10f": Mend("send what ended to the archive", repairs.send_to_archive),
    "I10g": Mend("wake functions for which what they wait for is there", repairs.wake_suspended),
    "I11": Mend("forget what was recorded of runs that are not there", repairs.forget_steps),
}
EVIDENCE = "no mend: this is what happened, and changing it would only hide it. Keep a dump of the database, and report it."

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
    mend = MENDS.get(invariant.name)
    if mend is None:
        return Repair(invariant.name, invariant.says, EVIDENCE, "no mend", current.violations[:SHOWN])
    if not apply:
        return Repair(invariant.name, invariant.says, mend.does, "proposed", current.violations[:SHOWN])
    mended = 0
    for _ in range(ROUNDS):
        await _mend(session, publisher, mend, current.violations)
        remaining = await violated(session, invariant, BATCH)
        gone = len(set(current.violations) - set(remaining.violations))
        mended += gone
        current = remaining
        if not gone or not remaining.violations:
            break
    state: State = "left" if current.violations else "mended"
    return Repair(invariant.name, invariant.says, mend.does, state, current.violations[:SHOWN], mended)


async def _mend(session: Session, publisher: Publisher, mend: Mend, ids: Sequence[str]) -> None:
    if mend.repair is None:
        while await relay(publisher.transport, session, 0.0):
            pass
        return
    repair = mend.repair
    tx, _ = await committed_once(session, lambda tx: repair(tx, list(ids)))
    publisher.publish(tx.staged)
