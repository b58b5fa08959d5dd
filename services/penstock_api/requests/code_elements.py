"""Code elements and links in texts of the pages."""

from __future__ import annotations

import re
from collections.abc import Mapping

from markupsafe import Markup, escape

_CODE = re.compile(r"(?:\bSee ([^`:.]+): )?`([^`]+)`")


def with_code(text: str) -> Markup:
    """Return a text of Penstock with a code element for each part in backticks."""
    return with_links(text, {})


def with_links(text: str, links: Mapping[str, tuple[str, str]]) -> Markup:
    """Return a text of Penstock with an element for each part in backticks: a link, if `links` has the address and the name
    of a page for it, or else a code element. In "See the list: `command`", the link is on "the list". Elsewhere it is on
    "the page Name"."""

    def element(match: re.Match[str]) -> str:
        # Both are parts of the escaped text.
        subject, part = match[1] and Markup(match[1]), Markup(match[2])
        if part not in links:
            code = Markup("<code>{}</code>").format(part)
            return Markup("See {}: {}").format(subject, code) if subject else code
        address, name = links[part]
        if subject:
            return Markup('See <a href="{}">{}</a>').format(address, subject)
        preceding = match.string[: match.start()].rstrip()
        article = "the" if preceding and not preceding.endswith((".", "!", "?")) else "The"
        return Markup('{} page <a href="{}">{}</a>').format(article, address, name)

    return Markup(_CODE.sub(element, str(escape(text))))
