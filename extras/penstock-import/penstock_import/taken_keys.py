"""A mapping of a source file that is taken apart key by key. A key that was not taken becomes a gap."""

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
"""The keys that do not affect what is run."""
DESCRIBES = "They do not affect a run: keep texts for people in a description."
RENAMED = "Use the new name in outside callers: programs, bots, dashboards."
AS_THERE = "Penstock does the same: check that this is intended."
NULL_HERE = "In Penstock it is null then: if a task reads it, let each branch publish it."
UNDECLARED = "In Penstock it gets only declared parameters: declare each parameter that its program reads, and pass it."
UNKNOWN = "The import knows no equivalent: see what it should do."


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
        """Take a key, and return its value; `default` if the key is missing or null."""
        self._left.pop(key, None)
        value = self.source.get(key)
        return default if value is None else value

    def take_text(self, key: str) -> str:
        """Take a key, and return its text; an empty text if it is missing. A value that is not a text becomes a gap."""
        value = self.take(key)
        if value is None or isinstance(value, str):
            return value or ""
        self.gap(key, f"{key} of {self.subject} is not text", "Write it anew.")
        return ""

    def gap(self, key: str, subject: str, by_hand: str) -> None:
        """Record a gap at the line of a key."""
        counts = by_hand not in (DESCRIBES, RENAMED, AS_THERE, NULL_HERE, UNDECLARED)
        self.report.gap(self.file, self.source.line(key), subject, by_hand, counts=counts)

    def take_enabled(self) -> bool:
        """Take `enabled`, and return whether the part is in force. Attune reads a value that is neither true nor false as
        true, and such a value is a gap."""
        enabled = self.take("enabled", True)
        if not isinstance(enabled, bool):
            self.gap("enabled", f"enabled of {self.subject}, {enabled!r}, which Attune reads as true",
                     "Write true or false, as intended. Until then it is not in force.")  # fmt: skip
        return enabled is True

    def refuse(self, key: str, by_hand: str) -> None:
        """Record a gap for a key, unless it is missing or empty."""
        value = self.take(key)
        if value not in (None, "", [], {}):
            self.gap(key, f"{key} of {self.subject}", by_hand)

    def describe(self, *keys: str) -> None:
        """Mark keys of this mapping as descriptive: they do not affect what is run."""
        self._descriptive = self._descriptive | set(keys)

    def close(self) -> None:
        """Record a gap for all descriptive keys that are left, and one for each other key."""
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
