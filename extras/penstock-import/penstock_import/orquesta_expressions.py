"""The translation of texts with StackStorm expressions, YAQL in `<% %>` and Jinja in `{{ }}`, to our templates and
conditions."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from penstock.errors import DefinitionError
from penstock.language.expressions import compile_template
from penstock.language.expressions import condition as compile_condition
from penstock_import import jinja_expressions, yaql_expressions
from penstock_import.wanted_text import NotMapped, Ours, literal
from penstock_import.yaql_expressions import Names

_BLOCK = re.compile(r"<%(.*?)%>|\{\{(.*?)\}\}", re.DOTALL)
_KEY_OF_STORE = re.compile(r"\bsecrets\.")
_BLOCK_OF_LINE = re.compile(r"\{%(?!-?\s*raw\b).*?%\}")
_SPECIAL = re.compile(r"\{\{|\{%|\{#")


def condition(text: Any, names: Names) -> str:
    """Translate an Orquesta `when` to a condition. Raises NotMapped for a part without an equivalent in Penstock."""
    if not isinstance(text, str):
        return "true" if text else "false"
    if "{%" in text:
        raise NotMapped("a condition with a block of Jinja")
    blocks = _blocks(text)
    if not blocks:
        return "true" if text else "false"
    if len(blocks) != 1 or blocks[0].span() != (0, len(text)):
        raise NotMapped("a condition with text beside its expression")
    ours = _translated(blocks[0], names)
    written = ours.text if ours.kind == "bool" else f"(true if {ours.text} else false)"
    return _checked(compile_condition, _bare(written))


def template(value: Any, names: Names) -> Any:
    """Translate the expressions in the texts of a value. Raises NotMapped for a part without an equivalent in
    Penstock."""
    if isinstance(value, dict):
        if any(isinstance(name, str) and (_blocks(name) or "{%" in name) for name in value):
            raise NotMapped("a key that is computed")
        for name in value:
            _refuse_comment(name, names)
        return {_plain(str(name)): template(item, names) for name, item in value.items()}
    if isinstance(value, list):
        return [template(item, names) for item in value]
    if not isinstance(value, str):
        return value
    if "{%" in value:
        return jinja_text(value, names)
    _refuse_comment(value, names)
    blocks = _blocks(value)
    if not blocks:
        return _plain(value)
    if len({block[1] is None for block in blocks}) > 1:
        raise NotMapped("YAQL and Jinja in one text")
    text, at = "", 0
    for block in blocks:
        ours = _translated(block, names)
        if ours.kind == "lazy" and block.span() != (0, len(value)):
            raise NotMapped("a lazy list within a text")
        text += _plain(value[at : block.start()]) + "{{ " + _bare(ours.text) + " }}"
        at = block.end()
    tail = _plain(value[at:])
    if tail == "\n" and blocks[0].end() == at and not getattr(names, "takes_several_lines", False):
        # A text that ends with an expression and a line break would get the type of the expression.
        tail = '{{ "\\n" }}'
    return _checked(compile_template, text + tail)


def jinja_text(value: str, names: Names) -> str:
    """Translate a text with Jinja blocks. StackStorm renders such a text in one piece. Raises NotMapped for a part
    without an equivalent in Penstock."""
    if "<%" in value or "{%" in _BLOCK_OF_LINE.sub("", value):
        raise NotMapped("YAQL beside a block of Jinja, or a block over several lines")
    ours = jinja_expressions.translate_text(value, names)
    if _KEY_OF_STORE.search(ours):
        raise NotMapped("a key of the store beside a block of Jinja")
    return _checked(compile_template, ours)


def block_text(value: str, names: Any, kind: Any) -> str:
    """Return a template for a text with Jinja blocks, for a parameter that is text. Raises NotMapped for a parameter of
    another type."""
    if kind is not None and "string" not in (kind if isinstance(kind, list) else [kind]):
        raise NotMapped("a block of Jinja for a parameter that is not text")
    return jinja_text(value, names)


def as_expression(value: Any, names: Names) -> Ours:
    """Translate a value with expressions in its texts to one expression. Raises NotMapped for a part without an
    equivalent in Penstock."""
    if isinstance(value, dict):
        template(value, names)
        pairs = ", ".join(
            f"{literal(str(name)).text}: {as_expression(item, names).text}" for name, item in value.items()
        )
        return Ours(f"{{{pairs}}}", "dict")
    if isinstance(value, list):
        return Ours(f"[{', '.join(as_expression(item, names).text for item in value)}]", "list")
    if isinstance(value, str) and "{%" in value:
        jinja_text(value, names)
        return jinja_expressions.translate_to_text(value, names)
    if not isinstance(value, str) or not _blocks(value):
        template(value, names)
        return literal(value)
    template(value, names)
    blocks = _blocks(value)
    if len(blocks) == 1 and blocks[0].span() == (0, len(value)):
        return _translated(blocks[0], names)
    parts, at = [], 0
    for block in blocks:
        parts += [literal(value[at : block.start()]).text, _translated(block, names).text]
        at = block.end()
    return Ours(f"({' ~ '.join([*parts, literal(value[at:]).text])})", "str")


def _refuse_comment(text: Any, names: Names) -> None:
    """Raise NotMapped for a comment of Jinja in a text that StackStorm renders in one piece, and so drops from it."""
    if isinstance(text, str) and "{#" in text and getattr(names, "drops_comments", False):
        raise NotMapped("a comment of Jinja, which StackStorm drops: remove it")


def is_whole(value: Any) -> bool:
    """Return whether a value is a single expression, so that its result keeps its type."""
    blocks = _blocks(value) if isinstance(value, str) else []
    return len(blocks) == 1 and blocks[0].span() == (0, len(value))


def has_expressions(text: str) -> bool:
    """Return whether a text has an expression of YAQL or Jinja in it."""
    return bool(_blocks(text)) or "{%" in text


def _blocks(text: str) -> list[re.Match[str]]:
    return list(_BLOCK.finditer(text))


def _translated(block: re.Match[str], names: Names) -> Ours:
    if "\n" in block[0] and not getattr(names, "takes_several_lines", False):
        raise NotMapped("an expression over several lines, which StackStorm takes as plain text")
    jinja = block[2]
    if jinja is not None and getattr(names, "takes_several_lines", False):
        bare = re.sub(r"^[-+]|-$", "", jinja)
        if bare != jinja and block.span() != (0, len(block.string)):
            raise NotMapped("an expression that removes the spaces around it, as in `{{-`")
        jinja = bare
    translate, text = (
        (jinja_expressions.translate, jinja) if block[1] is None else (yaql_expressions.translate, block[1])
    )
    ours = translate(text, names)
    if ours.kind != "secret" and _KEY_OF_STORE.search(ours.text):
        raise NotMapped("a key of the store within an expression, which cannot compute with a secret")
    return ours


def _plain(text: str) -> str:
    """Escape a text, so that a template returns it unchanged."""
    return "{{ " + literal(text).text + " }}" if _SPECIAL.search(text) else text


def _bare(text: str) -> str:
    """Return the text without a pair of parentheses around all of it."""
    if not (text.startswith("(") and text.endswith(")")):
        return text
    depth, quote, at = 0, "", 0
    while at < len(text):
        mark = text[at]
        if quote:
            at += mark == "\\"
            quote = "" if mark == quote else quote
        elif mark in "\"'":
            quote = mark
        elif mark in "([{":
            depth += 1
        elif mark in ")]}":
            depth -= 1
            if depth == 0 and at < len(text) - 1:
                return text
        at += 1
    return text[1:-1]


def _checked(compiled: Callable[[str], object], ours: str) -> str:
    try:
        compiled(ours)
    except DefinitionError as error:
        raise NotMapped(f"Penstock refuses it: {error}") from None
    return ours
