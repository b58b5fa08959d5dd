"""The header `Link` of a response: RFC 8288, with the tolerant algorithm of its appendix B."""

from __future__ import annotations

import re

import httpx

_TARGET = re.compile(r"<([^>]*)>")
_PARAMETER = re.compile(
    r"""[ \t]*;[ \t]*([^\s=;,]*)[ \t]*(?:=[ \t]*(?:"((?:[^"\\]|\\.)*)(?:"|\\?\Z)|([^;,]*)))?""", re.DOTALL
)
_SURPLUS = re.compile(r"[^;,]+")
"""Characters between two parameters that no grammar allows."""
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


def links_of(headers: httpx.Headers, url: httpx.URL) -> dict[str, str]:
    """Return the targets of the links of a response from `url`, by relation in lower case. The first link of a relation
    counts. A link without a relation, or from another context than the response, has no entry."""
    result: dict[str, str] = {}
    for target, parameters in _parsed(headers.get("link", "")):
        anchor = parameters.get("anchor")
        if anchor is None or _is_context(anchor, url):
            for relation in parameters.get("rel", "").lower().split():
                result.setdefault(relation, target)
    return result


def _is_context(anchor: str, url: httpx.URL) -> bool:
    try:
        return url.join(anchor) == url
    except httpx.InvalidURL:
        return False


def _parsed(header: str) -> list[tuple[str, dict[str, str]]]:
    """Return the links of a header, each with its parameters. The first parameter of a name counts."""
    links, position, last = [], 0, header.rfind(">")
    while position <= last and (target := _TARGET.search(header, position)) is not None:
        position = target.end()
        parameters: dict[str, str] = {}
        while True:
            if (parameter := _PARAMETER.match(header, position)) is not None:
                name, quoted, plain = parameter.groups()
                value = _ESCAPED.sub(r"\1", quoted) if quoted is not None else (plain or "").strip()
                parameters.setdefault(name.lower(), value)
                position = parameter.end()
            elif (surplus := _SURPLUS.match(header, position)) is not None:
                position = surplus.end()
            else:
                break
        links.append((target[1].strip(), parameters))
    return links
