"""The translation of regular expressions to conditions. Penstock has no regular expressions, so only those are translated
that a few searches for plain texts decide: texts, alternatives, groups, small classes, optional parts, `.*` and `.+`,
and the two ends."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from penstock_import.wanted_text import NotMapped, literal

_MAX_BRANCHES = 64
_MAX_NESTING = 20
_SPECIAL = frozenset(".^$*+?{}[]\\|()")
_SEVERAL_LINES = "none.dots_over_several_lines"


@dataclass(frozen=True, slots=True)
class _Gap:
    """Any characters, at least so many."""

    minimum: int


_START, _END = "start", "end"


@dataclass(frozen=True, slots=True)
class _Anchor:
    place: str


_Token = str | _Gap | _Anchor
_Branch = tuple[_Token, ...]


def regular_expression(value: str, pattern: str, *, at_start: bool, dots_match_newlines: bool) -> str:
    """Return a condition for a text `value` that holds where Python's `re` finds the pattern in it. `at_start` demands that
    it begins there. Raises NotMapped."""
    try:
        re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        raise NotMapped(f"a regular expression with a fault: {error}") from None
    branches = _Parser(pattern).branches()
    conditions = [_condition(value, _anchored(branch, at_start), dots_match_newlines) for branch in branches]
    return " or ".join(dict.fromkeys(conditions))


def _anchored(branch: _Branch, at_start: bool) -> _Branch:
    if at_start and branch[:1] != (_Anchor(_START),):
        return (_Anchor(_START), *branch)
    return branch


def _condition(value: str, branch: _Branch, dots_match_newlines: bool) -> str:
    is_fixed = branch[:1] == (_Anchor(_START),)
    tokens = list(_joined(branch[is_fixed:]))
    is_ended = bool(tokens) and tokens[-1] == _Anchor(_END)
    tokens = tokens[: len(tokens) - is_ended]
    if any(isinstance(token, _Anchor) for token in tokens):
        raise NotMapped("a regular expression with an end in its middle")
    if not is_fixed and tokens and tokens[0] == _Gap(0):
        tokens = tokens[1:]
        is_ended_by_gap = not tokens and is_ended
    else:
        is_ended_by_gap = False
    if not is_ended and tokens and tokens[-1] == _Gap(0):
        tokens = tokens[:-1]
    conditions: list[str] = []
    remainder = value
    for place, token in enumerate(tokens):
        is_last = place == len(tokens) - 1
        if isinstance(token, _Gap):
            is_fixed = False
            if token.minimum:
                conditions.append(f"{remainder} | length >= {token.minimum}")
                remainder = f"{remainder}[{token.minimum}:]"
        else:
            assert isinstance(token, str)
            text, with_newline = literal(token).text, literal(token + "\n").text
            if is_last and is_ended:
                conditions.append(
                    f"{remainder} in [{text}, {with_newline}]"
                    if is_fixed
                    else f"({remainder}.endswith({text}) or {remainder}.endswith({with_newline}))"
                )
            elif is_fixed:
                conditions.append(f"{remainder}.startswith({text})")
                remainder = f"{remainder}[{len(token)}:]"
            else:
                conditions.append(f"{text} in {remainder}")
                remainder = f"{remainder}.split({text}, 1)[1]"
            is_fixed = True
    if not tokens and is_ended and is_fixed and not is_ended_by_gap:
        conditions.append(f'{remainder} in ["", "\\n"]')
    written = " and ".join(conditions) or "true"
    if not dots_match_newlines and any(isinstance(token, _Gap) for token in tokens):
        return f'(({written}) if "\\n" not in {value} else {_SEVERAL_LINES})'
    return f"({written})"


def _joined(tokens: _Branch) -> Iterator[_Token]:
    """Yield the tokens with neighbouring texts as one text, and neighbouring gaps as one gap."""
    previous: _Token = ""
    for token in tokens:
        if isinstance(previous, str) and isinstance(token, str):
            previous += token
        elif isinstance(previous, _Gap) and isinstance(token, _Gap):
            previous = _Gap(previous.minimum + token.minimum)
        else:
            if previous:
                yield previous
            previous = token
    if previous:
        yield previous


class _Parser:
    def __init__(self, pattern: str) -> None:
        self._pattern, self._at, self._depth = pattern, 0, 0

    def branches(self) -> list[_Branch]:
        branches = self._alternatives()
        if self._at < len(self._pattern):
            raise self._refusal()
        return branches

    def _alternatives(self) -> list[_Branch]:
        branches = self._sequence()
        while self._peek() == "|":
            self._at += 1
            branches = [*branches, *self._sequence()]
        return self._bounded(branches)

    def _sequence(self) -> list[_Branch]:
        branches: list[_Branch] = [()]
        while self._peek() not in ("", "|", ")"):
            atoms = self._atom()
            branches = self._bounded([(*head, *tail) for head, tail in product(branches, atoms)])
        return branches

    def _atom(self) -> list[_Branch]:
        mark = self._next()
        if mark == ".":
            return [self._dots()]
        if mark in "^$":
            atoms: list[_Branch] = [(_Anchor(_START if mark == "^" else _END),)]
        elif mark == "(":
            atoms = self._group()
        elif mark == "[":
            atoms = [(text,) for text in self._class()]
        elif mark == "\\":
            atoms = [(self._escaped(),)]
        elif mark in _SPECIAL:
            raise self._refusal()
        else:
            atoms = [(mark,)]
        if self._peek() == "?" and mark not in "^$":
            self._at += 1
            self._refuse_quantifier()
            return [*atoms, ()]
        self._refuse_quantifier()
        return atoms

    def _dots(self) -> _Branch:
        if self._peek() not in ("*", "+"):
            raise self._refusal()
        gap = _Gap(1 if self._next() == "+" else 0)
        if self._peek() == "?":
            self._at += 1
        self._refuse_quantifier()
        return (gap,)

    def _group(self) -> list[_Branch]:
        if self._pattern.startswith("?:", self._at):
            self._at += 2
        elif self._peek() == "?":
            raise self._refusal()
        self._depth += 1
        if self._depth > _MAX_NESTING:
            raise self._refusal()
        atoms = self._alternatives()
        self._depth -= 1
        self._next()
        return atoms

    def _class(self) -> list[str]:
        texts: list[str] = []
        if self._peek() == "^":
            raise self._refusal()
        while not texts or self._peek() != "]":
            mark = self._next()
            text = self._escaped() if mark == "\\" else mark
            if mark == "[" or text in "&~|" or (text == "-" and texts and self._peek() != "]"):
                raise self._refusal()
            texts.append(text)
        self._at += 1
        return texts

    def _escaped(self) -> str:
        mark = self._next()
        if mark.isascii() and mark.isalnum():
            raise self._refusal()
        return mark

    def _refuse_quantifier(self) -> None:
        if self._peek() in ("*", "+", "?", "{"):
            raise self._refusal()

    def _bounded(self, branches: list[_Branch]) -> list[_Branch]:
        if len(branches) > _MAX_BRANCHES:
            raise self._refusal()
        return branches

    def _peek(self) -> str:
        return self._pattern[self._at : self._at + 1]

    def _next(self) -> str:
        mark = self._peek()
        if not mark:
            raise self._refusal()
        self._at += 1
        return mark

    def _refusal(self) -> NotMapped:
        return NotMapped("a regular expression of more than plain texts, alternatives and `.*`")
