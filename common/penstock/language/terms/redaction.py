"""The removal of known secrets from a text before it is shown: a password from an error, secret parameters from a log.

A text may have been cut where its secrets are not known, as in the process of an attempt. So the piece of a secret beside the
mark of a cut (`penstock.run.cut_texts`) is masked, as a whole one is.
"""

from __future__ import annotations

import base64
import html
import json
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote, quote_plus

from penstock.run.cut_texts import marks, storable

MASK = "***"
"""The text that replaces a secret."""
SHORTEST = 4
"""The length of the shortest secret that is masked, in characters. Masking a secret such as `1` would mask everything.
"""
SHORTEST_BASE64 = 6
"""The length of the shortest piece of base64 that is masked as a part of a secret, in characters."""


def worth_hiding(values: Iterable[str]) -> tuple[str, ...]:
    """Return the values that are long enough to mask, longest first, so that no part of a longer one is left."""
    return tuple(sorted({v for v in values if len(v) >= SHORTEST}, key=len, reverse=True))


def hidden_forms(values: Iterable[str]) -> tuple[str, ...]:
    """Return all forms in which these secrets may occur in a text, longest first."""
    return worth_hiding(form for value in set(values) if len(value) >= SHORTEST for form in _forms(value))


def concealed(text: str, secrets: Sequence[str]) -> str:
    """Return the text with MASK in place of each of `secrets`, which come from `hidden_forms`. The piece of a secret beside the
    mark of a cut is masked, too, if it is as long as the shortest secret that is."""
    present = [value for value in secrets if value in text]
    if pieces := list(_pieces(text, secrets)):
        return _masked(text, [*_spans(text, present), *pieces])
    for value in present:
        text = text.replace(value, MASK)
    return text


def _spans(text: str, values: Iterable[str]) -> Iterator[tuple[int, int]]:
    """Yield the begin and the end of each occurrence of the values."""
    for value in values:
        begin = text.find(value)
        while begin >= 0:
            yield begin, begin + len(value)
            begin = text.find(value, begin + 1)


def _pieces(text: str, secrets: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield the begin and the end of each piece of a secret that ends at the mark of a cut, or begins behind one."""
    for begin, end in marks(text):
        for value in secrets:
            if (length := _longest(value, text[max(0, begin - len(value)) : begin])) >= SHORTEST:
                yield begin - length, begin
            if (length := _longest(value[::-1], text[end : end + len(value)][::-1])) >= SHORTEST:
                yield end, end + length


def _longest(value: str, text: str) -> int:
    """Return the length of the longest beginning of `value` that is the end of `text`."""
    begin = text.find(value[0])
    while begin >= 0:
        if value.startswith(text[begin:]):
            return len(text) - begin
        begin = text.find(value[0], begin + 1)
    return 0


def _masked(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """Return the text with MASK in place of each span. Spans that overlap have one."""
    parts: list[str] = []
    masked_to = -1
    for begin, end in sorted(spans):
        if begin >= masked_to:
            parts += [text[max(0, masked_to) : begin], MASK]
        masked_to = max(end, masked_to)
    return "".join([*parts, text[max(0, masked_to) :]])


def cleaned(value: Any, secrets: Sequence[str]) -> Any:
    """Return a value with `secrets` masked in its texts and names."""
    if isinstance(value, str):
        return concealed(value, secrets)
    if isinstance(value, Mapping):
        return {concealed(name, secrets): cleaned(item, secrets) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [cleaned(item, secrets) for item in value]
    return value


def _forms(value: str) -> Iterator[str]:
    """Yield a secret, and each of its lines, in the forms of logs, tracebacks, JSON, URLs and headers."""
    lines = [line.strip() for line in value.splitlines()] if "\n" in value or "\r" in value else []
    for text in (value, *(line for line in lines if len(line) >= SHORTEST)):
        yield text
        yield from (text.strip(), " ".join(text.split()), storable(text))
        yield from _escaped(text)
        yield from (html.escape(text), html.escape(text, quote=False))
        for encoded in (quote(text, safe=""), quote(text), quote_plus(text)):
            yield encoded
            yield encoded.replace("%", "%25")
        yield from _base64(text)


def _escaped(text: str) -> Iterator[str]:
    """Yield the forms of a text in Python's and JSON's quotes, also if it is quoted twice or contains quotes."""
    for quoted in (
        text,
        json.dumps(text)[1:-1],
        json.dumps(text, ensure_ascii=False)[1:-1],
        repr(text)[1:-1],
    ):
        yield quoted
        yield json.dumps(quoted)[1:-1]
        yield json.dumps(quoted, ensure_ascii=False)[1:-1]
        for literal in (repr, ascii):
            yield literal(quoted + '"')[1:-1].removesuffix('"')
            yield literal(quoted + "'")[1:-1].removesuffix("'").removesuffix("\\")
    yield repr(text.encode("utf-8", "surrogatepass") + b'"')[2:-1].removesuffix('"')


def _base64(text: str) -> Iterator[str]:
    """Yield the base64 characters that a text always has inside a longer encoded text, for each of the three possible
    offsets."""
    raw = text.encode("utf-8", "surrogatepass")
    for offset, skipped in enumerate((0, 2, 3)):
        encoded = base64.b64encode(bytes(offset) + raw).decode()
        piece = encoded[skipped : (offset + len(raw)) * 8 // 6]
        if len(piece) >= SHORTEST_BASE64:
            yield piece
            yield piece.replace("+", "-").replace("/", "_")


class LiveSecrets:
    """The secrets that a process has seen, which are masked in output outside of runs: its own log, and output of
    threads of an unknown run. Only the latest MOST are masked. A program with more secrets has to mask its own log."""

    MOST = 1000

    def __init__(self) -> None:
        self._known: OrderedDict[str, tuple[str, ...]] = OrderedDict()
        self._all: tuple[str, ...] | None = ()
        self._lock = threading.Lock()

    def hide(self, values: Iterable[str]) -> None:
        """Mask these values from now on."""
        with self._lock:
            for value in values:
                if value in self._known:
                    self._known.move_to_end(value)
                elif len(value) >= SHORTEST:
                    self._known[value] = hidden_forms([value])
                    self._all = None
            while len(self._known) > self.MOST:
                self._known.popitem(last=False)

    def mask(self, text: str) -> str:
        """Return the text with all known secrets masked."""
        forms = self._all
        if forms is None:
            with self._lock:
                forms = self._all = worth_hiding(
                    form for forms_of_text in self._known.values() for form in forms_of_text
                )
        return concealed(text, forms)


LIVE = LiveSecrets()
"""The secrets of this process."""
