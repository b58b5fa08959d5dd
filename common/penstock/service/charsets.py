"""The text of a body that came over HTTP, by the charset that its sender names."""

from __future__ import annotations

import codecs

_NOT_CHARSETS = frozenset({"idna", "punycode", "raw-unicode-escape", "undefined", "unicode-escape", "utf-7"})
"""Python's codecs of text that no HTTP client or browser decodes. They raise errors also when they are to replace, or
give surrogates, which no JSON holds."""
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


def charset_of(options: str) -> str | None:
    """Return the name of the charset among the parameters of a content type, or None."""
    for option in options.split(";"):
        name, _, value = option.partition("=")
        if name.strip().lower() == "charset":
            return value.strip().strip("\"'")
    return None


def known_charset(charset: str | None) -> str | None:
    """Return a charset by the name of its codec, or None if it is not one that bodies are decoded with."""
    try:
        codec = codecs.lookup(charset or "")
    except (LookupError, ValueError):
        return None
    is_text = codec._is_text_encoding
    return codec.name if is_text and codec.name not in _NOT_CHARSETS else None


def decoded(content: bytes, charset: str | None) -> str:
    """Return the text of a body. As in browsers, a byte order mark decides before the charset, UTF-8 counts for an unknown one,
    and what cannot be decoded becomes U+FFFD. Never raises an error."""
    for mark, marked in _MARKS:
        if content.startswith(mark):
            return content[len(mark) :].decode(marked, "replace")
    return content.decode(known_charset(charset) or "utf-8", "replace")
