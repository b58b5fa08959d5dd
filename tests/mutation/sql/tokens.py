"""The words of a function's body, and where its conditions and statements begin and end."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

TOKEN = re.compile(
    r"(?P<space>\s+|--[^\n]*)|(?P<word>[A-Za-z_#]\w*)|(?P<other>'(?:[^']|'')*'|\d[\d.]*|\$\$"
    r"|:=|=>|<=|>=|<>|::|\|\||->>|->|#>>|@>|&&|<<|>>|.)",
    re.DOTALL,
)
BODY = re.compile(r"\bas\s+\$\$", re.IGNORECASE)
OPEN, CLOSE = {"(", "[", "case"}, {")", "]", "end"}


@dataclass(frozen=True)
class Token:
    """`depth`: how many parentheses, brackets and `case` it stands in; they themselves stand outside."""

    text: str
    start: int
    end: int
    depth: int


def tokens(source: str) -> list[Token]:
    """Return the tokens of the body between its dollar signs, without comments."""
    begin = BODY.search(source)
    if begin is None:
        raise ValueError("this is not a function with a body in dollar signs")
    all_tokens: list[Token] = []
    opened: list[str] = []
    for match in TOKEN.finditer(source, begin.end(), source.rindex("$$")):
        if match["space"]:
            continue
        text = match[0].lower() if match["word"] else match[0]
        if text in CLOSE and opened and (text != "end" or opened[-1] == "case"):
            opened.pop()
        all_tokens.append(Token(text, *match.span(), len(opened)))
        if text in OPEN:
            opened.append(text)
    return all_tokens


def scan(words: list[Token], begin: int, stops: frozenset[str]) -> int:
    """The index of the first word from `begin` on that ends what begins there: one of `stops` at its depth, or what closes
    the parenthesis around it."""
    depth = words[begin].depth if begin < len(words) else 0
    for index in range(begin, len(words)):
        word = words[index]
        if word.depth < depth:
            return index
        if word.depth == depth and word.text in stops and not _is_part(words, index):
            return index
    return len(words)


def _is_part(words: list[Token], index: int) -> bool:
    """Return true if a word that could end a condition belongs to it."""
    if words[index].text == "from":
        return words[index - 1].text == "distinct"
    return words[index].text == "left" and words[index + 1].text == "("


def split(words: list[Token], begin: int, end: int, at: str) -> list[tuple[int, int]]:
    """The ranges between the words `at` of the depth at which the first stands; `between` has an `and` of its own."""
    depth, parts, start, between = words[begin].depth, [], begin, False
    for index in range(begin, end):
        word = words[index]
        if word.depth != depth:
            continue
        if word.text == "between":
            between = True
        elif word.text == at:
            if at == "and" and between:
                between = False
                continue
            parts.append((start, index))
            start = index + 1
    return [*parts, (start, end)]


def statements(words: list[Token]) -> Iterator[list[tuple[int, int]]]:
    """Runs of simple statements that follow each other in one block, as ranges that hold the semicolon."""
    run: list[tuple[int, int]] = []
    index = next((n for n, word in enumerate(words) if word.text == "begin"), len(words)) + 1
    while index < len(words):
        text = words[index].text
        if words[index].depth == 0 and (text in SIMPLE or _is_assigned(words, index)):
            end = scan(words, index, frozenset({";"}))
            run.append((index, end + 1))
            index = end + 1
            continue
        if run:
            yield run
            run = []
        index += 1
        if text in {"if", "elsif", "for", "while", "exit", "return", "continue", "raise", "end"}:
            stop = {"if": "then", "elsif": "then", "for": "loop", "while": "loop"}.get(text, ";")
            index = scan(words, index, frozenset({stop})) + 1
    if run:
        yield run


def _is_assigned(words: list[Token], index: int) -> bool:
    return index + 1 < len(words) and words[index + 1].text == ":="


SIMPLE = {"perform", "insert", "update", "delete", "select", "with"}
