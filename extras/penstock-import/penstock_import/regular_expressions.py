"""The translation of regular expressions to conditions. Penstock has no regular expressions, so only those are translated
that a few searches for plain texts decide: texts, alternatives, groups, classes, optional parts, `.*`, `.+` and the two
ends. Where the place is certain, a run of a class (`[0-9]+`, `\\d+`, `\\w*`) and a look ahead are translated as well."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product

from penstock_import.wanted_text import NotMapped, literal

_MAX_BRANCHES = 64
_MAX_CLASS = 128
_MAX_ALTERNATIVES = 8
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


@dataclass(frozen=True, slots=True)
class _Run:
    """Characters of one class: a single one, or as many as there are, and at least `minimum`. `kind` is `d` or `w` for
    the classes of `re` with these letters; otherwise `characters` are all members."""

    kind: str
    characters: str = ""
    is_repeated: bool = False
    minimum: int = 1

    def holds(self, text: str) -> str:
        """Return a condition that the text `text` is not empty and has characters of the class only."""
        if self.kind == "d":
            return f"{text}.isdecimal()"
        if self.kind == "w":
            return f'{text}.replace("_", "a").isalnum()'
        return f'({text} != "" and {text}.strip({literal(self.characters).text}) == "")'

    def may_be(self, character: str) -> bool:
        """Return whether a character belongs to the class."""
        if self.kind == "d":
            return character.isdecimal()
        if self.kind == "w":
            return character.isalnum() or character == "_"
        return character in self.characters


@dataclass(frozen=True, slots=True)
class _Look:
    """A look ahead: a pattern that follows, or with `is_negative` does not."""

    branches: tuple[tuple[_Token, ...], ...]
    is_negative: bool


_Token = str | _Gap | _Anchor | _Run | _Look
_Branch = tuple[_Token, ...]


def regular_expression(value: str, pattern: str, *, at_start: bool, dots_match_newlines: bool) -> str:
    """Return a condition for a text `value` that holds where Python's `re` finds the pattern in it. `at_start` demands
    that it begins there. Raises NotMapped for a part without an equivalent in Penstock."""
    try:
        re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        raise NotMapped(f"a regular expression with a fault: {error}") from None
    try:
        return _translated(value, pattern, _MAX_ALTERNATIVES, at_start, dots_match_newlines)
    except NotMapped:
        return _translated(value, pattern, _MAX_BRANCHES, at_start, dots_match_newlines)


def _translated(
    value: str, pattern: str, max_alternatives: int, at_start: bool, dots_match_newlines: bool
) -> str:
    """Return the condition. A class of up to `max_alternatives` characters is so many texts, which may stand anywhere."""
    branches = _Parser(pattern, max_alternatives).branches()
    conditions = [_condition(value, _anchored(branch, at_start), dots_match_newlines) for branch in branches]
    return " or ".join(dict.fromkeys(conditions))


def _anchored(branch: _Branch, at_start: bool) -> _Branch:
    if at_start and branch[:1] != (_Anchor(_START),):
        return (_Anchor(_START), *branch)
    return branch


def _condition(value: str, branch: _Branch, dots_match_newlines: bool) -> str:
    is_fixed = branch[:1] == (_Anchor(_START),)
    is_certain = is_fixed
    """True while the place in the text is known. After a search for a text, `re` may go on from another hit."""
    tokens = list(_joined(branch[is_fixed:]))
    is_ended = bool(tokens) and tokens[-1] == _Anchor(_END)
    tokens = tokens[: len(tokens) - is_ended]
    if any(isinstance(token, _Anchor) for token in tokens):
        raise NotMapped("a regular expression with an end in its middle")
    ends_anywhere = not is_ended or (not is_fixed and tokens in ([], [_Gap(0)]))
    if not is_fixed and tokens and tokens[0] == _Gap(0):
        tokens = tokens[1:]
    if not is_ended and tokens and tokens[-1] == _Gap(0):
        tokens = tokens[:-1]
    if not is_fixed and not is_ended and len(tokens) == 1 and isinstance(tokens[0], _Run):
        return _anywhere(value, tokens[0])
    has_gap = any(isinstance(token, _Gap) for token in tokens)
    conditions: list[str] = []
    remainder = value
    is_at_start = True
    while tokens:
        token = tokens.pop(0)
        is_last = not tokens
        if isinstance(token, _Gap):
            is_fixed = is_certain = False
            ends_anywhere = ends_anywhere or is_last
            if token.minimum:
                conditions.append(f"{remainder} | length >= {token.minimum}")
                remainder = f"{remainder}[{token.minimum}:]"
        elif isinstance(token, _Run | _Look) and not is_certain:
            raise NotMapped("a regular expression with a class or a look ahead whose place is not certain")
        elif isinstance(token, _Look):
            conditions.append(_looked(remainder, token, is_at_start, dots_match_newlines))
            continue
        elif isinstance(token, _Run) and not (token.is_repeated and tokens):
            last, remainder = _last_run(remainder, token, ends_anywhere)
            conditions += last
            ends_anywhere = ends_anywhere or token.is_repeated
        elif isinstance(token, _Run):
            following = tokens.pop(0)
            if isinstance(following, _Gap):  # the gap also matches the rest of the run
                tokens = [*([replace(token, is_repeated=False)] if token.minimum else []), following, *tokens]
                continue
            if not isinstance(following, str) or token.may_be(following[0]):
                raise NotMapped("a regular expression with a run that may end at several places")
            text = literal(following).text
            run = f"{remainder}.split({text}, 1)[0]"
            is_none = "" if token.minimum else f' or {run} == ""'
            conditions += [f"{text} in {remainder}", f"({token.holds(run)}{is_none})"]
            remainder = f"{remainder}.split({text}, 1)[1]"
        else:
            assert isinstance(token, str)
            text, with_newline = literal(token).text, literal(token + "\n").text
            if is_last and is_ended:
                ends_anywhere = True
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
        is_at_start = False
    if not ends_anywhere:
        conditions.append(f'{remainder} in ["", "\\n"]')
    written = " and ".join(conditions) or "true"
    if has_gap and not dots_match_newlines:
        return f'(({written}) if "\\n" not in {value} else {_SEVERAL_LINES})'
    return f"({written})"


def _anywhere(value: str, run: _Run) -> str:
    """Return a condition that a text has a character of the class. Raises NotMapped for a class with too many members to
    name."""
    if not run.minimum:
        return "(true)"
    if not run.characters:
        raise NotMapped("a regular expression with a class or a look ahead whose place is not certain")
    return f'({value} | select("in", {literal(run.characters).text}) | list | length > 0)'


def _looked(remainder: str, look: _Look, is_at_start: bool, dots_match_newlines: bool) -> str:
    """Return a condition for a look ahead at the beginning of `remainder`."""
    conditions = []
    for branch in look.branches:
        if branch[:1] == (_Anchor(_START),) and not is_at_start:
            raise NotMapped("a regular expression with an end in its middle")
        conditions.append(_condition(remainder, _anchored(branch, True), dots_match_newlines))
    follows = " or ".join(dict.fromkeys(conditions))
    return f"not ({follows})" if look.is_negative else f"({follows})"


def _last_run(remainder: str, run: _Run, ends_anywhere: bool) -> tuple[list[str], str]:
    """Return the conditions for one character, or for a run that nothing comes after, and the text after them."""
    first = run.holds(f"{remainder}[:1]")
    if not run.is_repeated:
        return [first], f"{remainder}[1:]"
    if ends_anywhere:
        return [first] if run.minimum else [], remainder
    to_end = f'{run.holds(remainder)} or {remainder}.endswith("\\n") and {run.holds(f"{remainder}[:-1]")}'
    is_none = "" if run.minimum else f' or {remainder} in ["", "\\n"]'
    return [f"({to_end}{is_none})"], remainder


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
    def __init__(self, pattern: str, max_alternatives: int) -> None:
        self._pattern, self._at, self._depth = pattern, 0, 0
        self._max_alternatives = max_alternatives

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
        elif mark == "(" and (self._takes("?!") or self._takes("?=")):
            is_negative = self._pattern[self._at - 1] == "!"
            atoms = [(_Look(tuple(self._group()), is_negative),)]
            self._refuse_quantifier()
            return atoms
        elif mark == "(":
            atoms = self._group()
        elif mark == "[":
            return self._several(self._class())
        elif mark == "\\" and self._peek() in ("d", "w"):
            return self._several(_Run(self._next()))
        elif mark == "\\":
            atoms = [(self._escaped(),)]
        elif mark in _SPECIAL and mark not in "{}":  # where a part may begin, a brace is plain
            raise self._refusal()
        else:
            atoms = [(mark,)]
        if self._peek() == "?" and mark not in "^$":
            self._at += 1
            self._refuse_quantifier()
            return [*atoms, ()]
        self._refuse_quantifier()
        return atoms

    def _several(self, run: _Run) -> list[_Branch]:
        """Return a class of characters with its quantifier."""
        if self._peek() in ("+", "*"):
            atoms: list[_Branch] = [(replace(run, is_repeated=True, minimum=int(self._next() == "+")),)]
            self._takes("?")  # a lazy `?` changes the match, but not whether there is one
        elif run.kind or len(run.characters) > self._max_alternatives:
            atoms = [(run,), ()] if self._takes("?") else [(run,)]
        else:
            atoms = [(character,) for character in run.characters]
            atoms += [()] if self._takes("?") else []
        self._refuse_quantifier()
        return atoms

    def _takes(self, text: str) -> bool:
        is_there = self._pattern.startswith(text, self._at)
        self._at += len(text) * is_there
        return is_there

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

    def _class(self) -> _Run:
        characters = ""
        if self._peek() == "^":
            raise self._refusal()
        while not characters or self._peek() != "]":
            mark = self._next()
            first = last = self._escaped() if mark == "\\" else mark
            if mark == "[" or first in "&~|" or (mark == "-" and characters and self._peek() != "]"):
                raise self._refusal()
            if self._peek() == "-" and self._pattern[self._at + 1 : self._at + 2] not in ("", "]"):
                self._at += 1
                mark = self._next()
                last = self._escaped() if mark == "\\" else mark
                if mark in "[-" or last in "&~|":
                    raise self._refusal()
            if ord(last) - ord(first) >= _MAX_CLASS:
                raise self._refusal()
            characters += "".join(map(chr, range(ord(first), ord(last) + 1)))
        self._at += 1
        return _Run("", characters)

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
        return NotMapped("a regular expression of more than plain texts, alternatives, classes and `.*`")
