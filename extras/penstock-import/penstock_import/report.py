"""The report of an import: the number of parts of each kind that exist, are mapped and can be applied, and each gap
with the work by hand."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Gap:
    """A part that was not mapped, or not completely."""

    file: str
    line: int
    what: str
    by_hand: str


@dataclass(slots=True)
class Report:
    """The counts of an import by kind (actions, rules, workflows), and its gaps. `mapped` parts need no work by hand.
    `applied` parts are accepted by lint, but may have gaps. Until a gap is closed, its part only fails or waits."""

    found: Counter[str] = field(default_factory=Counter)
    mapped: Counter[str] = field(default_factory=Counter)
    gaps: list[Gap] = field(default_factory=list)
    applied: Counter[str] = field(default_factory=Counter)
    is_checked: bool = False
    """True once `applied` was counted."""
    names: dict[str, set[str]] = field(default_factory=dict)
    """The names of the mapped parts, by kind."""
    places: dict[tuple[str, str], tuple[str, int]] = field(default_factory=dict)
    """The file and the line from which a definition was made, by its section and name."""
    dependents: dict[tuple[str, str], list[tuple[str, str, Gap]]] = field(default_factory=dict)
    """The parts that are lost with a definition, by its section and name: the kind, the name and the gap of each part."""
    _known_gaps: set[Gap] = field(default_factory=set, repr=False)
    """The gaps again, since a search of the list for each new gap grows with the square of their number."""
    recorded: int = 0
    """The number of gaps that were recorded, each repetition included. Two definitions can have the same gap, in a file
    that both read."""

    def gap(self, file: str, line: int, subject: str, by_hand: str, *, counts: bool = True) -> bool:
        """Add a gap, once. Return whether it is new. `counts` is False for a line that leaves its definition mapped."""
        self.recorded += counts
        entry = Gap(file, line, subject, by_hand)
        if is_new := entry not in self._known_gaps:
            self._known_gaps.add(entry)
            self.gaps.append(entry)
        return is_new

    def place(self, section: str, name: str, file: str, line: int) -> None:
        """Note the file and the line from which a definition was made."""
        self.places[section, name] = file, line

    def map(self, kind: str, name: str) -> None:
        """Count a part of this kind as mapped."""
        self.mapped[kind] += 1
        self.names.setdefault(kind, set()).add(name)

    def unmap(self, kind: str, name: str) -> None:
        """Count a part of this kind as not mapped, if it was mapped."""
        if name in self.names.get(kind, ()):
            self.names[kind].remove(name)
            self.mapped[kind] -= 1

    def page(self, source: str) -> str:
        """Return the report as Markdown."""
        head, line = ("| | found | mapped | applies |", "|---|---|---|---|")
        if not self.is_checked:
            head, line = ("| | found | mapped |", "|---|---|---|")
        lines = [f"# What was imported from {source}", "", head, line]
        for kind, number in self.found.items():
            applied = f" {self.applied.get(kind, '')} |" if self.is_checked else ""
            lines.append(f"| {kind} | {number} | {self.mapped[kind]} |{applied}")
        lines += ["", f"Gaps to close by hand: {len(self.gaps)}.", ""]
        if self.gaps:
            lines += ["| where | what | by hand |", "|---|---|---|"]
        for entry in sorted(self.gaps, key=lambda gap: (gap.file, gap.line)):
            cells = (f"{entry.file}:{entry.line}", entry.what, entry.by_hand)
            lines.append(f"| {' | '.join(_cell(text) for text in cells)} |")
        return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
