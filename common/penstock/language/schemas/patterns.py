"""Patterns of schemas. The author of a definition writes them, and processes that have other work run them on what any sender
sends. A pattern that backtracks without end (`^(a|aa)+$`) would hold up such a process. So a search takes its time from the
budget of the check, and a value that takes longer does not fit.

The engine is `regex` instead of `re`, which cannot be stopped; what `re` takes means the same there."""

from __future__ import annotations

import time
from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING

from penstock.bounds import GROUPS_CAP
from penstock.errors import CheckTooCostly
from penstock.language.schemas.budget import Budget

if TYPE_CHECKING:
    import regex

_EACH = 64


@lru_cache(1024)
def compiled(pattern: str) -> regex.Pattern[str]:
    """Compile a pattern. Raises ValueError for an invalid pattern."""
    if pattern.count("(") > GROUPS_CAP:
        raise ValueError(f"it has more than {GROUPS_CAP:,} groups")
    import regex  # imported late, for commands that check no schema

    try:
        return regex.compile(pattern)
    except (regex.error, RecursionError, OverflowError) as error:
        raise ValueError(str(error)) from None


def length(patterns: Iterable[str]) -> int:
    """Return the length of the patterns that counts towards PATTERNS_CAP."""
    return sum(len(pattern) + _EACH for pattern in patterns)


def search(pattern: regex.Pattern[str], text: str, budget: Budget) -> bool:
    """Return whether the pattern matches a part of the text. Raises CheckTooCostly if the budget is used up."""
    began = time.thread_time()
    try:
        if budget.left > 0:
            return pattern.search(text, timeout=budget.seconds) is not None
    except TimeoutError:
        pass
    finally:
        budget.spend_time_since(began)
    raise CheckTooCostly(
        f"a text of {len(text):,} characters takes too long to be matched with the pattern {pattern.pattern!r}",
        hint="Send shorter and fewer texts, or repeat only a part that can match in one way: a+ instead of (a|aa)+.",
    )
