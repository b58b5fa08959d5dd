"""The answer to a sent signal, which says whether the durable function waits for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from penstock.language.terms.options import did_you_mean


@dataclass(frozen=True, slots=True)
class SentSignal:
    """A signal that is stored. If the function does not wait for it now, `notice` says so, and names the signals that the
    function waits for."""

    name: Annotated[str, Field(description="The name of the signal.")]
    is_awaited: Annotated[
        bool, Field(description="True if the suspended function waits for a signal of this name.")
    ]
    awaits: Annotated[
        list[str], Field(description="The names of the signals that the suspended function waits for.")
    ]
    notice: Annotated[
        str | None,
        Field(
            description="Sentences for people if the function does not wait for the signal. null: it waits for it."
        ),
    ]


def sent_signal(name: str, awaits: Sequence[str] | None) -> SentSignal:
    """Return the answer to a signal. `awaits` are the signals that the function waits for; None if it is not suspended."""
    names = sorted(set(awaits or ()))
    if name in names:
        return SentSignal(name, True, names, None)
    if names:
        signals = ", ".join(repr(awaited) for awaited in names)
        hint = did_you_mean(name, names)
        guess = f" {hint}" if hint.startswith("Did") else ""
        notice = f"The function waits for {signals}, and not for {name!r}.{guess}"
    elif awaits is None:
        notice = f"The function does not wait for {name!r} now."
    else:
        notice = "The function waits for no signal now."
    return SentSignal(name, False, names, f"{notice} The signal is stored until it is asked for.")
