"""Code elements in texts of the pages."""

from __future__ import annotations

import re

from markupsafe import Markup, escape

_CODE = re.compile(r"`([^`]+)`")


def with_code(text: str) -> Markup:
    """Return a text of Penstock with a code element for each part in backticks."""
    return Markup(_CODE.sub(r"<code>\1</code>", str(escape(text))))
