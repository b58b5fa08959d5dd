"""A mapping of a source file that is taken apart key by key. What is not taken at its end is a gap."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock_import.marked_yaml import Marked
from penstock_import.report import Report

DESCRIPTIVE = frozenset(
    {
        "label",
        "tags",
        "version",
        "author",
        "email",
        "examples",
        "meta",
        "metadata",
        "pack_ref",
        "system",
        "keywords",
        "__chart_meta__",
    }
)
"""Keys that say nothing of what is run."""
DESCRIBES = "Nothing runs by them: keep in a description what people read."
RENAMED = "Use the new name in what calls it from outside: programs, bots, dashboards."
UNKNOWN = "Nothing here is known to have its meaning: see what it should do."


def open_gaps(report: Report) -> int:
    """Return the number of gaps, without those of keys that say nothing of what is run, and of changed names."""
    return sum(gap.by_hand not in (DESCRIBES, RENAMED) for gap in report.gaps)


class TakenKeys:
    """The keys of one mapping, each taken at most once. `subject` names the mapping in gaps."""

    def __init__(self, report: Report, file: str, source: Any, subject: str) -> None:
        self.report = report
        self.file = file
        self.source = (
            source if isinstance(source, Marked) else Marked(source if isinstance(source, Mapping) else {})
        )
        self.subject = subject
        self._left = dict.fromkeys(self.source)
        self._descriptive = DESCRIPTIVE
        if source is not None and not isinstance(source, Mapping):
            self.report.gap(
                file, 1, f"{subject} is {type(source).__name__} and not a mapping", "Write it anew."
            )

    def take(self, key: str, default: Any = None) -> Any:
        """Return the value of a key, which counts as read from now on; `default` where it is missing or null."""
        self._left.pop(key, None)
        value = self.source.get(key)
        return default if value is None else value

    def take_text(self, key: str) -> str:
        """Return a text; empty where it is missing. Another value is a gap."""
        value = self.take(key)
        if value is None or isinstance(value, str):
            return value or ""
        self.gap(key, f"{key} of {self.subject} is not text", "Write it anew.")
        return ""

    def gap(self, key: str, subject: str, by_hand: str) -> None:
        """Name a gap at the line of a key."""
        self.report.gap(self.file, self.source.line(key), subject, by_hand)

    def refuse(self, key: str, by_hand: str) -> None:
        """Name a key as a gap, unless it is missing or says nothing."""
        value = self.take(key)
        if value not in (None, "", [], {}):
            self.gap(key, f"{key} of {self.subject}", by_hand)

    def describe(self, *keys: str) -> None:
        """Count keys of this mapping as descriptive."""
        self._descriptive = self._descriptive | set(keys)

    def close(self) -> None:
        """Name all keys that are left: those that describe in one gap, each other by itself."""
        keys_left = [key for key in self._left if self.source.get(key) not in (None, "", [], {})]
        descriptive_keys = [str(key) for key in keys_left if key in self._descriptive]
        if descriptive_keys:
            self.gap(
                descriptive_keys[0],
                f"{', '.join(descriptive_keys)} of {self.subject}",
                DESCRIBES,
            )
        for key in keys_left:
            if str(key) not in self._descriptive:
                self.gap(key, f"{key} of {self.subject}", UNKNOWN)
