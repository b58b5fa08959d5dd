"""The charsets of bodies: each name that Python knows gives a storable text, whatever the bytes are."""

from __future__ import annotations

import encodings
import encodings.aliases
import pkgutil
import random
import warnings

import pytest

from penstock.service.charsets import charset_of, decoded, known_charset


@pytest.mark.parametrize(
    ("content", "charset", "expected"),
    [
        (b"caf\xe9", "iso-8859-1", "café"),
        (b"caf\xe9", "Latin-1", "café"),
        ("café".encode(), None, "café"),
        ("café".encode(), "klingon", "café"),
        ("café".encode(), "", "café"),
        (b"caf\xe9", "idna", "caf�"),
        (b"caf\xe9", "undefined", "caf�"),
        (b"caf\xe9", "punycode", "caf�"),
        (b"\\ud800", "unicode_escape", "\\ud800"),
        (b"+2AA-", "utf-7", "+2AA-"),
        (b"+2AA-", "UTF7", "+2AA-"),
        (b"YQ==", "base64", "YQ=="),
        ("é".encode("utf-16"), "utf-16", "é"),
        ("é".encode("utf-16-be"), "utf-16be", "é"),
        (b"\xfe\xff\x00\xe9", "utf-8", "é"),
        (b"\xef\xbb\xbfabc", "utf-8", "abc"),
        (b"\xef\xbb\xbfabc", "latin-1", "abc"),
        (b"a", "utf\x00-8", "a"),
        (b"a", "x" * 10_000, "a"),
        (b"a", "é", "a"),
    ],
)
def test_text_of_body(content: bytes, charset: str | None, expected: str) -> None:
    assert decoded(content, charset) == expected


def test_every_known_codec_gives_storable_text() -> None:
    chance = random.Random(12)
    names = {module.name for module in pkgutil.iter_modules(encodings.__path__)} | set(
        encodings.aliases.aliases
    )
    assert len(names) > 300
    bodies = [chance.randbytes(chance.randrange(40)) for _ in range(60)]
    bodies += [b"+2AA-", b"\\ud800", b"\\x", b"a" * 70, b"xn--" + b"z" * 60, b"\xd8\x00", b"\x00\xd8"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name in sorted(names):
            for body in bodies:
                decoded(body, name).encode()


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("charset=utf-8", "utf-8"),
        (' boundary=x; CHARSET = "iso-8859-1" ', "iso-8859-1"),
        ("charset='latin-1'", "latin-1"),
        ("", None),
        ("charsets=1", None),
    ],
)
def test_charset_of_content_type(options: str, expected: str | None) -> None:
    assert charset_of(options) == expected


def test_known_charset_has_the_name_of_its_codec() -> None:
    assert (known_charset("UTF8"), known_charset("idna"), known_charset(None)) == ("utf-8", None, None)
