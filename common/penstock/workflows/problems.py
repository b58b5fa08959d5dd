"""One thing that is wrong with a workflow."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from difflib import get_close_matches

Path = tuple[str | int, ...]
"""Where in the document: `("tasks", 3, "needs", 0)`."""


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong, where in the document, what to do, and (once it is known) in which file and line."""

    path: Path
    message: str
    hint: str | None = None
    where: str | None = None

    def at(self, where: str | None) -> Problem:
        return replace(self, where=where)

    def __str__(self) -> str:
        place = self.where or ".".join(str(part) for part in self.path) or "workflow"
        return f"{place}: {self.message}" + (f". {self.hint}" if self.hint else "")


def suggestion(name: str, names: Iterable[str]) -> str:
    """A hint for a name that is not there: the one that is meant, or those that there are."""
    names = list(names)
    if near := get_close_matches(name, names, n=1):
        return f"Did you mean `{near[0]}`?"
    shown = ", ".join(names[:12]) + (f" and {len(names) - 12} more" if len(names) > 12 else "")
    return f"There is: {shown or 'nothing'}."
