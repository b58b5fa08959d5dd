"""The place of a definition in its source: the file and line to which errors point."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType

from penstock.errors import DefinitionError

Location = tuple[str | int, ...]
"""A path into a nested value: `("retry", "max_attempts")`, `("limits", 0, "by")`."""


@dataclass(frozen=True, slots=True)
class Source:
    """A place in a file. `lines` has the lines of nested values, if the file format has them. `file` is empty for a
    definition that comes from a request."""

    file: str
    line: int
    lines: Mapping[Location, int] = field(default_factory=dict, compare=False, repr=False)
    within: Location = ()
    """The path of this place in `lines`."""

    def at(self, location: Location) -> Source:
        """Return the place of a nested value, or of the nearest value around it that has a line."""
        whole = (*self.within, *location)
        for length in range(len(whole), len(self.within), -1):
            if line := self.lines.get(whole[:length]):
                return Source(self.file, line, self.lines, whole)
        return Source(self.file, self.line, self.lines, whole)

    def wrong(self, message: str, hint: str | None = None) -> DefinitionError:
        """Return the error for a fault at this place."""
        return DefinitionError(self.before(message), hint=hint)

    def before(self, message: str) -> str:
        """Return a message with this place before it, if there is a file."""
        return f"{self}: {message}" if self.file else message

    def __str__(self) -> str:
        return f"{shown(self.file)}:{self.line}" if self.line else shown(self.file)


def shown(path: str | Path) -> str:
    """Return a path for display: relative to the current folder if it is inside that."""
    inside = os.path.relpath(path) if os.path.isabs(path) else str(path)
    return str(path) if inside.startswith("..") else inside


def of_frame(frame: FrameType) -> Source:
    return Source(frame.f_code.co_filename, frame.f_lineno)


def of_code(code: CodeType) -> Source:
    """Return the place where a function begins, including its decorators."""
    return Source(code.co_filename, code.co_firstlineno)


def caller() -> FrameType:
    """Return the innermost frame outside Penstock and pydantic, which is that of the code that declares something."""
    frame: FrameType | None = sys._getframe(1)
    outermost = sys._getframe(1)
    while frame is not None:
        if str(frame.f_globals.get("__name__")).partition(".")[0] not in ("penstock", "pydantic"):
            return frame
        outermost, frame = frame, frame.f_back
    return outermost
