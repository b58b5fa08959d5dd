"""The inline parameters of Orquesta, such as `a=1 b=<% ctx(x) %>`, parsed with Orquesta's patterns. Values are JSON."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from typing import Any

_VALUES = (
    r"\[.*\]\s*",
    r"\"[^\"]*\"\s*",
    r"'[^']*'\s*",
    r"[-]?\d*\.\d+",
    r"[-]?\d+",
    r"(?i:true)",
    r"(?i:false)",
    r"null",
    r"{{.*?}}",
    r"<%.*?%>",
)
_PAIR = re.compile(rf"([\w]+)=({'|'.join(_VALUES)})")
_QUOTED = re.compile(r"\"[^\"]*\"\s*|'[^']*'\s*")


def ignored_text(text: str) -> str:
    """Return the rest of a text without its parameters. Orquesta ignores the rest."""
    return " ".join(_PAIR.sub(" ", text).split())


def inline_parameters(text: str) -> dict[str, Any]:
    """Return the parameters in a text, in order. Anything that is not a pair of name and value is ignored, as in
    Orquesta."""
    parameters: dict[str, Any] = {}
    for name, written in _PAIR.findall(text):
        value = written.strip()
        is_quoted = _QUOTED.search(value) is not None
        for quote in "\"'":
            value = value.removeprefix(quote).removesuffix(quote)
        parameters[name] = value
        if value and is_quoted and not (value[0] == "{" and value[-1] == "}"):
            continue
        with suppress(ValueError):
            parameters[name] = json.loads(value.lower() if value.lower() in ("true", "false") else value)
    return parameters
