"""The bound on the computing of one check of a value against a schema. The author of a schema and the sender of a value
do not know each other. So a bound on the size of each does not bound the cost of the check, which depends on both."""

from __future__ import annotations

import time

from penstock.bounds import CHECK_STEPS
from penstock.errors import CheckTooCostly

STEPS = CHECK_STEPS
STEPS_PER_SECOND = 4_000_000
"""The steps that one second of a pattern search costs."""
PATTERN_STEPS = 4
"""The minimum cost of a pattern search in steps: a call of the pattern engine, and two reads of the clock."""
FORMAT_STEPS = 20
"""The minimum cost in steps of parsing a text as a date, an address or the like."""
BYTES_PER_STEP = 40
"""The bytes of text or of JSON that one step reads."""


class Budget:
    """The remaining steps of one check, and the results of its parts that are known already."""

    __slots__ = ("left", "verdicts")

    def __init__(self, steps: int = STEPS) -> None:
        self.left = steps
        self.verdicts: dict[tuple[int, int], bool] = {}
        """By the part of the schema and the value, each by its identity: both live as long as the check."""

    def spend(self, steps: int) -> None:
        """Take `steps` from the budget. Raise CheckTooCostly when none are left."""
        self.left -= steps
        if self.left < 0:
            raise too_costly()

    @property
    def seconds(self) -> float:
        """Return the steps that remain, as seconds of searching patterns."""
        return self.left / STEPS_PER_SECOND

    def spend_time_since(self, began: float) -> None:
        """Take the processor time that this thread has used since `began`. The next step raises when none is left."""
        self.left -= int((time.thread_time() - began) * STEPS_PER_SECOND) + PATTERN_STEPS


def too_costly() -> CheckTooCostly:
    return CheckTooCostly(
        f"checking it against its schema takes more than {STEPS:,} steps",
        hint="Send a smaller value, or simplify the schema: fewer alternatives for each value, fewer names in patterns.",
    )
