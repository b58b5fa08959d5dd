"""The progress of a run. A report of progress is a log line on its own stream, so it is stored, and shown while the run
goes on."""

from __future__ import annotations

import math
from typing import NamedTuple

STREAM = "progress"


class Progress(NamedTuple):
    """A progress report. `done` is from 0 to 1, and `text` describes the current work."""

    done: float
    text: str = ""

    def line(self) -> str:
        """Return the report as a log line. Raises ValueError if `done` is not from 0 to 1."""
        if not (math.isfinite(self.done) and 0 <= self.done <= 1):
            raise ValueError(f"progress is a number from 0 to 1, such as 0.4, not {self.done!r}")
        return f"{self.done:.4g} {' '.join(self.text.split())}".rstrip()

    @classmethod
    def read(cls, line: str) -> Progress:
        done, _, text = line.partition(" ")
        return cls(float(done), text)
