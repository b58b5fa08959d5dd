"""The search for a secret in a text, in every form that code may have given it. It shares nothing with the code that masks."""

from __future__ import annotations

import base64
import html
import re
import urllib.parse
from collections.abc import Iterator
from typing import Any

LINES = ("Zürich \"gate' of", "back\\slash <vault> & co", "third line of 7+1/2")
SECRET = "\n".join(LINES)


def readings(text: str) -> Iterator[str]:
    """A text as it stands, and what it says once JSON, Python, HTML, addresses and quotes are undone."""
    yield text
    yield urllib.parse.unquote_plus(text)
    yield urllib.parse.unquote(urllib.parse.unquote(text))
    yield from _unescaped(text)


def _unescaped(text: str) -> Iterator[str]:
    for _ in range(4):
        text = html.unescape(text)
        text = re.sub(r"\\u([0-9a-fA-F]{4})", lambda found: chr(int(found[1], 16)), text)
        text = re.sub(r"((?:\\x[0-9a-fA-F]{2})+)", _bytes, text)
        text = text.replace("\\n", "\n").replace('\\"', '"').replace("\\'", "'").replace("\\\\", "\\")
        yield text


def _bytes(found: Any) -> str:
    raw = bytes.fromhex(found[1].replace("\\x", ""))
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw.decode("latin-1")


def decoded(text: str) -> Iterator[str]:
    """Return the decoded base64 of a text."""
    for word in re.findall(r"[A-Za-z0-9+/_-]{16,}", text):
        plain = word.replace("-", "+").replace("_", "/")
        for start in range(4):
            part = plain[start:]
            part = part[: len(part) // 4 * 4]
            yield base64.b64decode(part).decode("utf-8", "replace")


def shows(text: str) -> str | None:
    """The line of the secret that a text shows in any form, and where."""
    for reading in (*readings(text), *decoded(text)):
        for line in LINES:
            for piece in (line, line.replace("\\", "\\\\")):
                if (at := reading.find(piece)) >= 0:
                    return reading[max(0, at - 60) : at + 60]
    return None
