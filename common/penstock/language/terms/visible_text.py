"""Text for a terminal or a page, in which control characters are shown as Python escapes, such as `\\x1b`.

A terminal obeys control characters (ESC and the C1 controls begin sequences that move the cursor, set the title or the
clipboard). Bidirectional controls show text in another order than it has ("Trojan Source", CVE-2021-42574).
"""

from __future__ import annotations

import re

BIDI = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
_BIDI = re.compile(f"[{BIDI}]")
_STEERING = re.compile(f"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029{BIDI}\ud800-\udfff]")
"""The characters to escape: control characters except newline and tab, line separators, bidirectional controls, lone
surrogates."""
_UNESCAPED = re.compile(f"[\x7f-\x9f\u2028\u2029{BIDI}]")
"""The characters that JSON may hold unescaped within a string, and that a terminal obeys."""


def visible(text: str) -> str:
    """Return a text for a terminal, with all control characters escaped except newlines and tabs."""
    return _STEERING.sub(_escape, text)


def visible_order(text: str) -> str:
    """Return a text for a page, with the bidirectional controls escaped."""
    return _BIDI.sub(_escape, text)


def visible_json(document: str) -> str:
    """Return the same JSON document without any character that controls a terminal."""
    return _UNESCAPED.sub(lambda match: f"\\u{ord(match[0]):04x}", document)


def json_escapes(error: UnicodeError) -> tuple[str, int]:
    """Return the escapes of the characters that an encoding does not have, so that JSON stays JSON. It is a handler for
    `codecs.register_error`."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    units = error.object[error.start : error.end].encode("utf-16-be", "surrogatepass")
    codes = (int.from_bytes(units[index : index + 2]) for index in range(0, len(units), 2))
    return "".join(f"\\u{code:04x}" for code in codes), error.end


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
