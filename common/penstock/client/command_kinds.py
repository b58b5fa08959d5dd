"""The kinds of commands that a running workflow or a durable function follows."""

from __future__ import annotations

from penstock.errors import InvalidInput
from penstock.run.cut_texts import cut_end

COMMANDS = ("pause", "resume", "skip", "set_result")


def check_command(kind: str) -> None:
    """Raise InvalidInput for an unknown kind of command."""
    if kind not in COMMANDS:
        raise InvalidInput(
            f"{cut_end(kind, 60)!r} is not a command to a workflow", hint=f"Available: {', '.join(COMMANDS)}."
        )
