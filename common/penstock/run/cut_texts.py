"""The cuts of texts that are too long to store or to show.

A text is often cut where its secrets are not known, as in the process of an attempt. So each cut leaves a mark. The masking of
secrets (`penstock.language.terms.redaction`) finds the marks, and masks the piece of a secret beside one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

ELLIPSIS = "…"
"""The mark instead of the end, or the beginning, of a text that was cut."""
_LEFT_OUT = "characters left out"
_MARK = re.compile(rf"\s\.\.\. [\d,]+ {_LEFT_OUT} \.\.\.\s|{ELLIPSIS}")
_MARKS = 8
"""The number of marks, at each end of a text, beside which secrets are masked. A text with more has them from its author."""


def shortened(text: str, limit: int) -> str:
    """Return a text with at most `limit` characters, with a mark instead of the middle of a longer one."""
    if len(text) <= limit:
        return text
    half = max(0, limit - len(_left_out(len(text)))) // 2
    return text[:half] + _left_out(len(text) - 2 * half) + text[len(text) - half :]


def cut_end(text: str, limit: int) -> str:
    """Return a text with at most `limit` characters, with a mark instead of the end of a longer one."""
    return text if len(text) <= limit else text[: limit - 1] + ELLIPSIS


def marks(text: str) -> Iterator[tuple[int, int]]:
    """Yield the begin and the end of each mark of a cut in a text, of at most `_MARKS` at each of its ends."""
    if ELLIPSIS in text or _LEFT_OUT in text:
        spans = [mark.span() for mark in _MARK.finditer(text)]
        yield from spans[:_MARKS]
        yield from spans[max(_MARKS, len(spans) - _MARKS) :]


def storable(text: str) -> str:
    """Return a text in a form that PostgreSQL stores: no NUL, no lone surrogates."""
    return text.replace("\0", "\ufffd").encode("utf-8", "replace").decode()


def _left_out(count: int) -> str:
    return f"\n... {count:,} {_LEFT_OUT} ...\n"
