"""The answer to a sent signal, which says whether the durable function waits for it."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from penstock.language.terms.options import did_you_mean
from penstock.run.sent_signal import SentSignal


def sent_signal(name: str, awaits: Sequence[str] | None, id: UUID | None) -> SentSignal:
    """Return the answer to a signal to the durable function `id`. `awaits` are the signals that the function waits for; None
    if it is not suspended."""
    names = sorted(set(awaits or ()))
    if name in names:
        return SentSignal(name, True, names, None, id)
    if names:
        signals = ", ".join(repr(awaited) for awaited in names)
        hint = did_you_mean(name, names)
        guess = f" {hint}" if hint.startswith("Did") else ""
        notice = f"The function waits for {signals}, and not for {name!r}.{guess}"
    elif awaits is None:
        notice = f"The function does not wait for {name!r} now."
    else:
        notice = "The function waits for no signal now."
    return SentSignal(
        name, False, names, f"{notice} The signal is stored until the function asks for it.", id
    )
