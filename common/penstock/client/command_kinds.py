"""The commands that a running workflow, or a durable function, obeys."""

from __future__ import annotations

from penstock.errors import InvalidInput

COMMANDS = ("pause", "resume", "skip", "set_result")


def check_command(kind: str) -> None:
    """Raise InvalidInput for a word that is no command."""
    if kind not in COMMANDS:
        raise InvalidInput(
            f"{kind[:60]!r} is not a command to a workflow", hint=f"There is: {', '.join(COMMANDS)}."
        )
