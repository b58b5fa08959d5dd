"""The header `Link`: the examples of RFC 8288, headers that public servers send, and headers built from their parts."""

from __future__ import annotations

import random
import time

import httpx
import pytest

from penstock.attempts.http.link_header import links_of

URL = httpx.URL("https://example.com/list?page=1")
NEXT = "https://example.com/list?page=2"


def links(*headers: str) -> dict[str, str]:
    return links_of(httpx.Headers([("Link", header) for header in headers]), URL)


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        # RFC 8288, 3.5
        (
            '<http://example.com/TheBook/chapter2>; rel="previous"; title="previous chapter"',
            {"previous": "http://example.com/TheBook/chapter2"},
        ),
        ('</>; rel="http://example.net/foo"', {"http://example.net/foo": "/"}),
        ('</terms>; rel="copyright"; anchor="#foo"', {}),
        (
            "</TheBook/chapter2>; rel=\"previous\"; title*=UTF-8'de'letztes%20Kapitel, "
            "</TheBook/chapter4>; rel=\"next\"; title*=UTF-8'de'n%c3%a4chstes%20Kapitel",
            {"previous": "/TheBook/chapter2", "next": "/TheBook/chapter4"},
        ),
        (
            '<http://example.org/>; rel="start http://example.net/relation/other"',
            {"start": "http://example.org/", "http://example.net/relation/other": "http://example.org/"},
        ),
        (
            '<https://example.org/>; rel="start", <https://example.org/index>; rel="index"',
            {"start": "https://example.org/", "index": "https://example.org/index"},
        ),
        # Parameters
        (f'<{NEXT}>; title="a=b"; rel="next"', {"next": NEXT}),
        (f'<{NEXT}>; title="a;b"; rel="next"', {"next": NEXT}),
        (f'<{NEXT}>; title="a, <b>; rel=\\"up\\""; rel="next"', {"next": NEXT}),
        (f'<{NEXT}>; rel="next last"', {"next": NEXT, "last": NEXT}),
        (f'<{NEXT}>; REL="next"', {"next": NEXT}),
        (f'<{NEXT}>; rel="Next"', {"next": NEXT}),
        (f"<{NEXT}>;rel=next", {"next": NEXT}),
        (f'<{NEXT}> ; rel = "next" ; type="x"', {"next": NEXT}),
        (f'<{NEXT}>; crossorigin; rel="next"', {"next": NEXT}),
        (f'<{NEXT}>; rel="next"; rel="prev"', {"next": NEXT}),
        (f'<{NEXT}>; rel="next", </other>; rel="next"', {"next": NEXT}),
        # Targets
        (
            '<https://example.com/list?x=1;page=2>; rel="next"',
            {"next": "https://example.com/list?x=1;page=2"},
        ),
        ('<https://example.com/list?f=a,b>; rel="next"', {"next": "https://example.com/list?f=a,b"}),
        # Contexts
        (f'<{NEXT}>; rel="next"; anchor="https://example.com/another"', {}),
        (f'<{NEXT}>; rel="next"; anchor="?page=1"', {"next": NEXT}),
        # Malformed ones
        ("", {}),
        (f"<{NEXT}>", {}),
        ('<https://example.com; rel="next"', {}),
        (f',, <{NEXT}>;; rel="next",', {"next": NEXT}),
        (f'nonsense, <{NEXT}>; rel="next"', {"next": NEXT}),
        (f'<{NEXT}>; title="a" b; rel="next"', {"next": NEXT}),
        (f'<{NEXT}>; rel="next', {"next": NEXT}),
        (f'</up>; title="never closed, <{NEXT}>; rel="next"', {}),
    ],
)
def test_links_by_relation(header: str, expected: dict[str, str]) -> None:
    assert links(header) == expected


def test_several_headers_are_one_list() -> None:
    assert links('</1>; rel="prev"', f'<{NEXT}>; rel="next"') == {"prev": "/1", "next": NEXT}


def test_headers_built_from_parts_give_their_parts() -> None:
    chance = random.Random(8288)
    text = "aZ09 ,;=<>'\\\"-._~:/?#[]@!$&()*+%é"

    def quoted(value: str) -> str:
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'

    def space() -> str:
        return chance.choice(["", " ", "\t", "  "])

    for _ in range(3_000):
        expected: dict[str, str] = {}
        entries = []
        for _ in range(chance.randrange(1, 5)):
            target = "".join(
                chance.choices(text.replace(">", "").replace(" ", ""), k=chance.randrange(1, 12))
            )
            relations = chance.sample(["next", "Last", "PREV", "x-1", "urn:a:b"], chance.randrange(1, 3))
            is_token = len(relations) == 1 and ":" not in relations[0] and chance.random() < 0.5
            parameters = [(chance.choice(["rel", "REL", "Rel"]), " ".join(relations), is_token)]
            for name in chance.sample(
                ["title", "type", "crossorigin", "title*", "hreflang"], chance.randrange(4)
            ):
                value = "".join(chance.choices(text, k=chance.randrange(8)))
                at = chance.randrange(len(parameters) + 1)
                parameters.insert(at, (name, value if name != "crossorigin" else "", False))
            entry = f"<{target}>"
            for name, value, is_token in parameters:
                entry += f"{space()};{space()}{name}"
                if name != "crossorigin":
                    entry += f"{space()}={space()}{value if is_token else quoted(value)}"
            entries.append(entry + space())
            for relation in relations:
                expected.setdefault(relation.lower(), target)
        header = f"{space()},{space()}".join(entries)
        assert links_of(httpx.Headers([(b"Link", header.encode())]), URL) == expected, header


@pytest.mark.parametrize("part", ["<", '"', ";", "\\", "<>", ';"', ';a="', "=", " ", '<>;"\\', "<>; a", ",<"])
def test_time_grows_with_length_alone(part: str) -> None:
    began = time.process_time()
    links(part * (100_000 // len(part)))
    links(part * (100_000 // len(part)) + ">")
    assert time.process_time() - began < 2
