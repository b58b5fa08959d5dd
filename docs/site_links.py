"""A hook of mkdocs. Links that lead out of docs/ (to the sources, the changelog) lead to no page of the site: there, their text
stands alone. That they lead somewhere in the repository is what tests/test_readme.py sees to."""

from __future__ import annotations

import posixpath
import re
from typing import Any

_LINK = re.compile(r"\[((?:[^\[\]]|\[[^\]]*\])*)\]\((?!https?:|#|mailto:)([^)#\s]+)(#[^)\s]*)?\)")


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Return the page with such links replaced by their text."""
    folder = posixpath.dirname(page.file.src_uri)

    def kept(link: re.Match[str]) -> str:
        outside = posixpath.normpath(posixpath.join(folder, link[2])).startswith("..")
        return link[1] if outside else link[0]

    return _LINK.sub(kept, markdown)
