"""The outcome of an import: how much of each kind was there and was mapped, and each gap with what to do by hand."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Gap:
    """Something that was not mapped, or not wholly."""

    file: str
    line: int
    what: str
    by_hand: str


@dataclass(slots=True)
class Report:
    """`found` and `mapped` count by kind: actions, rules, workflows."""

    found: Counter[str] = field(default_factory=Counter)
    mapped: Counter[str] = field(default_factory=Counter)
    gaps: list[Gap] = field(default_factory=list)

    def gap(self, file: str, line: int, subject: str, by_hand: str) -> None:
        self.gaps.append(Gap(file, line, subject, by_hand))

    def page(self, source: str) -> str:
        """Return the report as Markdown."""
        lines = [f"# What was imported from {source}", "", "| | found | mapped |", "|---|---|---|"]
        lines += [f"| {kind} | {number} | {self.mapped[kind]} |" for kind, number in self.found.items()]
        lines += ["", f"{len(self.gaps)} gaps are left to close by hand.", ""]
        if self.gaps:
            lines += ["| where | what | by hand |", "|---|---|---|"]
        for entry in sorted(self.gaps, key=lambda gap: (gap.file, gap.line)):
            cells = (f"{entry.file}:{entry.line}", entry.what, entry.by_hand)
            lines.append(f"| {' | '.join(text.replace('|', chr(92) + '|') for text in cells)} |")
        return "\n".join(lines) + "\n"
