"""A parser for YAQL, the expression language of StackStorm's workflows.

The operators and their precedence are those of the library `yaql` by default. Tests compare this parser with it.
Delegates and keyword arguments are parsed only in the forms that StackStorm's expressions use.
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass


class YaqlSyntaxError(Exception):
    """A text that is not an expression of YAQL."""


@dataclass(frozen=True, slots=True)
class Const:
    """A literal: a number, a quoted text, true, false or null."""

    value: object


@dataclass(frozen=True, slots=True)
class Word:
    """A bare word: the name of a member, or a text."""

    name: str


@dataclass(frozen=True, slots=True)
class Variable:
    """`$`, or `$name`."""

    name: str


@dataclass(frozen=True, slots=True)
class Call:
    """`name(arguments, key => value)`. As the right side of a dot it is a method."""

    name: str
    arguments: tuple[Expr, ...] = ()
    pairs: tuple[tuple[Expr, Expr], ...] = ()


@dataclass(frozen=True, slots=True)
class Unary:
    operator: str
    operand: Expr


@dataclass(frozen=True, slots=True)
class Binary:
    """`first operator second`; the operator `.` is a member or a call of a method."""

    operator: str
    first: Expr
    second: Expr


@dataclass(frozen=True, slots=True)
class Index:
    value: Expr
    arguments: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class ListOf:
    items: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class MapOf:
    pairs: tuple[tuple[Expr, Expr], ...]


Expr = Const | Word | Variable | Call | Unary | Binary | Index | ListOf | MapOf

_TOKEN = re.compile(
    r"""\s*(?:
    (?P<number>\b\d+(\.?\d+)?\b)
    | (?P<call>\b[^\W\d]\w*\()
    | (?P<word>(?!__)\b[^\W\d]\w*\b)
    | (?P<quoted>'([^'\\]|\\.)*'|"([^"\\]|\\.)*")
    | (?P<verbatim>`([^`\\]|\\.)*`)
    | (?P<variable>\$\w*)
    | (?P<mark>=>|->|=~|!~|>=|<=|!=|\?\.|[-+*/<>=.()\[\]{},])
    )""",
    re.VERBOSE,
)
_SPACE = re.compile(r"[ \t\r\n]*")
_ESCAPE = re.compile(
    r"""\\U........|\\u....|\\x..|\\[0-7]{1,3}|\\N\{[^}]+\}|\\[\\'"abfnrtv]""",
)
_BINARY = {
    **dict.fromkeys(("=~", "!~"), 7),
    **dict.fromkeys(("*", "/", "mod"), 6),
    **dict.fromkeys(("+", "-"), 5),
    **dict.fromkeys((">", "<", ">=", "<=", "!=", "=", "in"), 4),
    "and": 2,
    "or": 1,
    "->": 0,
}
"""The precedence of each operator. `not` is between the comparisons and `and`; signs bind more tightly than `=~`."""
_SIGN, _NOT = 8, 3
_CONSTANTS = {"true": True, "false": False, "null": None}
_MAX_DEPTH = 60


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str


def parse(text: str) -> Expr:
    """Return the tree of an expression, without its `<% %>`. Raises YaqlSyntaxError if the text is not an expression of
    YAQL."""
    parser = _Parser(_tokens(text))
    tree = parser.expression(0)
    parser.expect_end()
    return tree


def _tokens(text: str) -> list[_Token]:
    tokens: list[_Token] = []
    position = 0
    while position < len(text):
        space = _SPACE.match(text, position)
        if space is not None and space.end() == len(text):
            break
        match = _TOKEN.match(text, position)
        if match is None or match.lastgroup is None:
            raise YaqlSyntaxError(f"{text[position : position + 12]!r} is not part of YAQL")
        kind = next(
            name
            for name in ("number", "call", "word", "quoted", "verbatim", "variable", "mark")
            if match[name]
        )
        tokens.append(_Token(kind, match[kind]))
        position = match.end()
    return tokens


class _Parser:
    def __init__(self, tokens: list[_Token]) -> None:
        self._tokens = tokens
        self._at = 0
        self._depth = 0

    def _peek(self) -> str:
        return self._tokens[self._at].text if self._at < len(self._tokens) else ""

    def _is_mark(self, text: str) -> bool:
        if self._at >= len(self._tokens):
            return False
        token = self._tokens[self._at]
        return token.text == text and token.kind in ("mark", "word")

    def _next(self) -> _Token:
        if self._at >= len(self._tokens):
            raise YaqlSyntaxError("the expression ends too early")
        self._at += 1
        return self._tokens[self._at - 1]

    def _expect(self, text: str) -> None:
        token = self._next()
        if token.text != text or token.kind != "mark":
            raise YaqlSyntaxError(f"{token.text!r} stands in the place of {text!r}")

    def expect_end(self) -> None:
        if self._at < len(self._tokens):
            raise YaqlSyntaxError(f"{self._peek()!r} is one too many")

    def expression(self, least: int) -> Expr:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise YaqlSyntaxError("it nests too deeply")
        value = self._prefixed(least)
        while self._at < len(self._tokens):
            token = self._tokens[self._at]
            binds = _BINARY.get(token.text) if token.kind in ("mark", "word") else None
            if binds is None or binds < least:
                break
            self._at += 1
            right = self.expression(binds if token.text == "->" else binds + 1)
            value = Binary(token.text, value, right)
        self._depth -= 1
        return value

    def _prefixed(self, least: int) -> Expr:
        for sign in ("-", "+"):
            if self._is_mark(sign):
                self._next()
                return Unary(sign, self.expression(_SIGN))
        if self._is_mark("not"):
            self._next()
            return Unary("not", self.expression(_NOT))
        return self._postfixed(self._primary())

    def _postfixed(self, value: Expr) -> Expr:
        while True:
            if self._is_mark(".") or self._is_mark("?."):
                operator = self._next().text
                value = Binary(operator, value, self._primary())
            elif self._is_mark("["):
                self._next()
                arguments, pairs = self._arguments("]")
                if pairs:
                    raise YaqlSyntaxError("an index has no pairs")
                value = Index(value, arguments)
            elif self._is_mark("{"):
                raise YaqlSyntaxError("a mapping stands behind a value")
            else:
                return value

    def _primary(self) -> Expr:
        token = self._next()
        if token.kind == "number":
            return Const(float(token.text) if "." in token.text else int(token.text))
        if token.kind == "quoted":
            return Const(_unescaped(token.text[1:-1]))
        if token.kind == "verbatim":
            return Const(token.text[1:-1].replace("\\`", "`"))
        if token.kind == "variable":
            return Variable(token.text)
        if token.kind == "call":
            return Call(token.text[:-1], *self._arguments(")"))
        if token.kind == "word" and token.text not in _BINARY and token.text != "not":
            return Const(_CONSTANTS[token.text]) if token.text in _CONSTANTS else Word(token.text)
        if token.text == "(" and token.kind == "mark":
            value = self.expression(0)
            self._expect(")")
            return value
        if token.text == "[":
            items, pairs = self._arguments("]")
            if pairs:
                raise YaqlSyntaxError("a list has no pairs")
            return ListOf(items)
        if token.text == "{":
            items, pairs = self._arguments("}")
            if items:
                raise YaqlSyntaxError("a mapping has pairs only")
            return MapOf(pairs)
        raise YaqlSyntaxError(f"{token.text!r} stands in the place of a value")

    def _arguments(self, close: str) -> tuple[tuple[Expr, ...], tuple[tuple[Expr, Expr], ...]]:
        arguments: list[Expr] = []
        pairs: list[tuple[Expr, Expr]] = []
        while not self._is_mark(close):
            value = self.expression(0)
            if self._is_mark("=>"):
                self._next()
                pairs.append((value, self.expression(0)))
            elif pairs:
                raise YaqlSyntaxError("a value stands behind pairs")
            else:
                arguments.append(value)
            if not self._is_mark(close):
                self._expect(",")
                if self._is_mark(close):
                    raise YaqlSyntaxError("a value is missing behind a comma")
        self._next()
        return tuple(arguments), tuple(pairs)


def _unescaped(text: str) -> str:
    try:
        return _ESCAPE.sub(lambda escape: codecs.decode(escape[0], "unicode-escape"), text)
    except UnicodeDecodeError as error:
        raise YaqlSyntaxError(str(error)) from None
