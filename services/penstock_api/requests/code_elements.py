"""Code elements and links in texts of the pages."""

from __future__ import annotations

import re
from collections.abc import Mapping

from markupsafe import Markup, escape

_CODE = re.compile(r"`([^`]+)`")


def with_code(text: str) -> Markup:
    """Return a text of Penstock with a code element for each part in backticks."""
    return with_links(text, {})


def with_links(text: str, links: Mapping[str, tuple[str, str]]) -> Markup:
    """Return a text of Penstock with an element for each part in backticks: a link, if `links` has the address and the name
    of a page for it, or else a code element."""

    def element(match: re.Match[str]) -> str:
        part = Markup(match[1])  # it is a part of the escaped text
        if part not in links:
            return Markup("<code>{}</code>").format(part)
        address, name = links[part]
        return Markup('<a href="{}">{}</a>').format(address, name)

    return Markup(_CODE.sub(element, str(escape(text))))
