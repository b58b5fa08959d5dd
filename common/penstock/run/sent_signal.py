"""The answer to a signal that was sent to a durable function."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated
from uuid import UUID

from pydantic import Field


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
    execution_id: Annotated[
        UUID | None,
        Field(description="The execution that receives the signal. null: an older API has answered."),
    ] = None
