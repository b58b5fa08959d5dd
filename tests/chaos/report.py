"""The ledger, printed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from tests.chaos.ledger import Ledger
from tests.chaos.load import Intent
from tests.chaos.nemesis import Happened


def lines(
    ledger: Ledger, faults: Sequence[Happened], *, fallen: Sequence[str], intent: Intent
) -> Iterator[str]:
    kinds = Counter(fault.name for fault in faults)
    if faults:
        yield f"{'faults':<28}{len(faults):>9}   " + ", ".join(
            f"{n} {name}" for name, n in kinds.most_common()
        )
    yield from _counts(
        ("submitted", ledger.submitted),
        ("final", ledger.final),
        ("completed, result right", ledger.right),
        ("lost", ledger.lost),
        ("wrong result", len(ledger.wrong)),
        ("doubly finished", ledger.finished_twice),
        ("attempts run", ledger.attempts),
        ("attempts unaccounted for", ledger.unaccounted),
        ("recoveries", ledger.recovered),
        ("most of one execution", ledger.most_recoveries),
        ("begun again", len(ledger.begun_again)),
        ("unknown to their worker", ledger.unknown),
        ("replicas not ready", len(ledger.unready)),
        ("deadlocks", ledger.deadlocks),
        ("locks out of order", len(ledger.out_of_order)),
        ("over-limit instants", ledger.violations.get("I3 limit", 0)),
        ("FIFO violations", ledger.violations.get("I4 order", 0)),
        ("overtaken", len(ledger.overtaken)),
        ("steps called again", len(ledger.called_again)),
        ("duplicate children", ledger.duplicate_children),
        ("duplicate reactions", ledger.duplicate_reactions),
        ("fires", ledger.fires),
        ("duplicate fires", ledger.duplicate_fires),
        ("submits sent again", intent.troubles),
    )
    yield f"{'errors of the driver':<28}{intent.foreign.total():>9}   {dict(intent.foreign) or ''}"
    yield f"{'attempts by outcome':<28}" + ", ".join(f"{n} {name}" for name, n in ledger.outcomes.items())
    yield f"{'invariants violated':<28}" + (
        ", ".join(f"{name}: {n}" for name, n in ledger.violations.items() if n) or "none"
    )
    yield _times("taken back after a kill", ledger.losses)
    yield _times("running again after a kill", ledger.recoveries)
    yield _times("work again after a fault", ledger.resumptions)
    yield f"{'ended by itself':<28}{len(fallen):>9}   {', '.join(fallen[:20])}"
    yield f"{'given up with a worker':<28}{len(ledger.given_up):>9}"
    found = {
        "wrong": ledger.wrong,
        "begun again": [f"{n}: {count} times" for n, count in ledger.begun_again.items()],
        "given up": ledger.given_up if ledger.for_nothing else [],
        "overtaken": ledger.overtaken,
        "called again": ledger.called_again,
        "not ready": ledger.unready,
        "locks out of order": ledger.out_of_order,
    }
    yield from (f"  {kind}: {one}" for kind, some in found.items() for one in some[:20])


def _counts(*rows: tuple[str, int]) -> Iterator[str]:
    yield from (f"{name:<28}{count:>9,}" for name, count in rows)


def _times(name: str, seconds: Sequence[float]) -> str:
    if not seconds:
        return f"{name:<28}{'none':>9}"
    ordered = sorted(seconds)
    p50, p99 = (ordered[int(part * (len(ordered) - 1))] for part in (0.5, 0.99))
    return f"{name:<28}{len(seconds):>9,}   p50 {p50:.2f} s, p99 {p99:.2f} s, max {ordered[-1]:.2f} s"
