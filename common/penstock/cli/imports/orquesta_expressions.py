"""Expressions of Orquesta, YAQL in `<% %>` and Jinja in `{{ }}`, as ours: the part that has the same meaning here."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from penstock.errors import DefinitionError
from penstock.language import expressions

_BLOCK = re.compile(r"<%\s*(.*?)\s*%>|\{\{\s*(.*?)\s*\}\}", re.DOTALL)
_QUOTED = re.compile(r"'[^'\\]*'|\"[^\"\\]*\"")
_NAME = r"[A-Za-z_]\w*"
_KNOWN_CALLS = {"succeeded", "failed", "timed_out", "cancelled"}
_WORDS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), ours)
    for pattern, ours in (
        (rf"\bctx\(\)\.get\(({_NAME})\)", r"context.\1"),
        (rf"\bctx\(\s*({_NAME})\s*\)", r"context.\1"),
        (r"\bctx\(\)", "context"),
        (rf"\btask\(\s*({_NAME})\s*\)", r"tasks.\1"),
        (rf"\bitem\(\s*{_NAME}\s*\)", "item"),
        (r"\bitem\(\)", "item"),
        (r"\bresult\(\)", "result"),
        (r"\bcompleted\(\)", "true"),
        (r"\bnull\b", "none"),
        (r"\b(len|str|int)\(([\w.\[\]]+)\)", r"(\2 | \1)"),
        (r"([\w.\[\]]+)\.(len|toLower|toUpper|trim|keys|values|first|last)\(\)", r"(\1 | \2)"),
    )
)
_FILTERS = {"len": "length", "str": "string", "toLower": "lower", "toUpper": "upper"}


class NotMapped(Exception):
    """An expression that has no equal here."""


def condition(text: Any) -> str:
    """A `when`. Raises NotMapped."""
    if not isinstance(text, str):
        return "true" if text else "false"
    blocks = _BLOCK.fullmatch(text.strip())
    if blocks is None or "%>" in (blocks[1] or "") or "}}" in (blocks[2] or ""):
        raise NotMapped(text)
    ours = _mapped(blocks)
    _check(expressions.condition, ours)
    return ours


def template(value: Any) -> Any:
    """A value with expressions in its texts. Raises NotMapped."""
    if isinstance(value, dict):
        return {name: template(item) for name, item in value.items()}
    if isinstance(value, list):
        return [template(item) for item in value]
    if not isinstance(value, str):
        return value
    ours = _BLOCK.sub(lambda match: "{{ " + _mapped(match) + " }}", value)
    if "{%" in ours or "<%" in ours:
        raise NotMapped(value)
    if ours != value or "{{" in ours:
        _check(expressions.compile_template, ours)
    return ours


def _check(compiled: Callable[[str], object], ours: str) -> None:
    try:
        compiled(ours)
    except DefinitionError:
        raise NotMapped(ours) from None


def _mapped(match: re.Match[str]) -> str:
    yaql = match[1] is not None
    source = match[1] if yaql else match[2]
    source = re.sub(rf"\b(ctx|task|item)\(\s*(['\"])({_NAME})\2\s*\)", r"\1(\3)", source)
    texts: list[str] = []

    def keep(text: re.Match[str]) -> str:
        texts.append(text[0])
        return f"\x00{len(texts) - 1}\x00"

    bare = _QUOTED.sub(keep, source)
    for pattern, ours in _WORDS:
        bare = pattern.sub(ours, bare)
    bare = re.sub(r"\| (\w+)\)", lambda word: f"| {_FILTERS.get(word[1], word[1])})", bare)
    if yaql:
        bare = re.sub(r"(?<![=!<>])=(?![=>])", "==", bare)
    calls = set(re.findall(rf"(?<!\| )\b({_NAME})\(", bare)) - _KNOWN_CALLS - {"and", "or", "not", "in"}
    if "$" in bare or "=>" in bare or (yaql and "{" in bare) or calls:
        raise NotMapped(match[0])
    if re.search(r"\btasks\.\w+(?!\w|\.(result|status|error)\b)", bare):
        raise NotMapped(match[0])
    if re.search(r"\bst2kv\b|\bconfig_context\b|\bst2\(\)", bare):
        raise NotMapped(match[0])
    return re.sub(r"\x00(\d+)\x00", lambda mark: texts[int(mark[1])], bare)
