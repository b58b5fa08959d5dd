"""The operators on a function of the database: each gives faults that a developer could make in it."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from tests.mutation.sql.tokens import Token, scan, split, statements, tokens

CONDITIONS = {"where", "on", "having", "if", "elsif", "when", "while", "return"}
ENDS = frozenset(
    (
        *(
            "then",
            "group",
            "order",
            "limit",
            "returning",
            "for",
            "union",
            "except",
            "loop",
            ";",
            "window",
            "offset",
        ),
        *(
            "having",
            "where",
            "join",
            "left",
            "cross",
            "inner",
            "else",
            "when",
            "on",
            "into",
            "from",
            "as",
            ",",
            "fetch",
        ),
        "end",
    )
)
BEGINS = (";", "begin", "then", "else", "loop")
NO_CONDITION = {",", "select", "update", "insert", "delete", "values", "where"}
SHIFTED = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}
REVERSED = {"<": ">", "<=": ">", ">": "<", ">=": "<"}
INSTANTS = {"clock_timestamp", "v_now", "witness", "made_at", "created_at"}
"""What is read from a clock, by its names in the functions. (When something is due is no such instant: that is said.)"""
TURNED = {"least": "greatest", "greatest": "least", "true": "false", "false": "true"}


@dataclass(frozen=True)
class Mutant:
    """`function` with what stands from `start` to `end` replaced. `what` tells it from the function's others for as long as
    that place says the same."""

    function: str
    kind: str
    what: str
    start: int
    end: int
    new: str

    @property
    def name(self) -> str:
        return f"{self.function}: {self.what}"

    def applied(self, source: str) -> str:
        return source[: self.start] + self.new + source[self.end :]


class Body:
    """The source of one function, and its words."""

    def __init__(self, function: str, source: str) -> None:
        self.function, self.source, self.words = function, source, tokens(source)

    def text(self, begin: int, end: int) -> str:
        return self.source[self.words[begin].start : self.words[end - 1].end]

    def short(self, begin: int, end: int) -> str:
        text = " ".join(word for word in self.text(begin, end).split())
        return text if len(text) <= 100 else f"{text[:70]} ... {text[-25:]}"

    def replaced(self, kind: str, what: str, begin: int, end: int, new: str) -> Mutant:
        return Mutant(self.function, kind, what, self.words[begin].start, self.words[end - 1].end, new)

    def dropped(self, kind: str, begin: int, end: int, new: str = "") -> Mutant:
        return self.replaced(kind, f"without `{self.short(begin, end)}`", begin, end, new)

    def conditions(self) -> Iterator[tuple[int, int, str]]:
        """Return each condition: its start and end, and the word before it."""
        for index, word in enumerate(self.words):
            previous, following = self._around(index)
            if word.text in CONDITIONS:
                if previous == "end" or following == "conflict" or following in ("query", ";", "next"):
                    continue
                end = scan(self.words, index + 1, ENDS)
            elif word.text == "(":
                end = scan(self.words, index + 1, frozenset())
                inner = {w.text for w in self.words[index + 1 : end] if w.depth == word.depth + 1}
                if {"and", "or"}.isdisjoint(inner) or not NO_CONDITION.isdisjoint(inner):
                    continue
            else:
                continue
            if end > index + 1:
                yield index + 1, end, word.text

    def _around(self, index: int) -> tuple[str, str]:
        previous = self.words[index - 1].text if index else ""
        following = self.words[index + 1].text if index + 1 < len(self.words) else ""
        return previous, following


def clauses(body: Body) -> Iterator[Mutant]:
    """A condition without one of its clauses, or not asked at all."""
    for begin, end, word in body.conditions():
        groups = split(body.words, begin, end, "or")
        for n, (first, last) in enumerate(groups):
            if len(groups) > 1:
                yield _without(body, "or", groups, n)
            parts = split(body.words, first, last, "and")
            if len(parts) > 1:
                texts = [body.short(first, last) for first, last in parts]
                for m in range(len(parts)):
                    if not _said_twice(body, texts, m):
                        yield _without(body, "and", parts, m)
        if (
            len(groups) == 1
            and len(split(body.words, begin, end, "and")) == 1
            and word in ("where", "having")
        ):
            yield body.dropped("clause", begin, end, "true")


TWICE = re.compile(r"([\w.]+) = any \((\w+)\)")


def _said_twice(body: Body, clauses: Sequence[str], n: int) -> bool:
    """Return true if this clause repeats a join for the planner: it looks rows up by an array (`e.id = any (p_ids)`), and
    another clause joins them with its elements (`e.id = d.id`, of `unnest(p_ids) as d (id)`)."""
    match = TWICE.fullmatch(clauses[n])
    if match is None or f"unnest({match[2]}" not in body.source:
        return False
    joined = re.compile(rf"{re.escape(match[1])} = \w+\.\w+|\w+\.\w+ = {re.escape(match[1])}")
    return any(joined.fullmatch(other) for other in clauses)


def _without(body: Body, by: str, parts: list[tuple[int, int]], n: int) -> Mutant:
    begin, end = parts[n]
    change = f"without `{by} {body.short(begin, end)}`"
    if n:
        return body.replaced("clause", change, begin - 1, end, "")
    return body.replaced("clause", change, begin, end + 1, "")


def negations(body: Body) -> Iterator[Mutant]:
    done = set()
    for begin, end, word in body.conditions():
        if word in ("if", "elsif", "when", "while"):
            condition = body.text(begin, end)
            last = [word_before.text for word_before in body.words[end - 3 : end]]
            if last == ["is", "not", "null"] and end - begin < 7:
                done.add(end - 2)
            yield body.replaced(
                "negate", f"not `{word} {body.short(begin, end)}`", begin, end, f"not ({condition})"
            )
    for n, said in enumerate(body.words[:-1]):
        following = body.words[n + 1].text
        if (said.text == "not" and following in ("exists", "like")) or (
            said.text == "is" and following == "not"
        ):
            at = n if said.text == "not" else n + 1
            if at in done:
                continue
            place = body.short(max(at - 3, 0), min(at + 6, len(body.words)))
            yield body.replaced("negate", f"no `not` in `{place}`", at, at + 1, "")


def comparisons(body: Body) -> Iterator[Mutant]:
    """The bound itself on the other side; instants, of which no two are the same, the other way round."""
    for n, word in enumerate(body.words):
        if word.text in SHIFTED:
            place = body.short(max(n - 4, 0), min(n + 4, len(body.words)))
            near = {other.text for other in body.words[max(n - 3, 0) : n + 2]}
            if n + 2 < len(body.words) and body.words[n + 2].text == ".":
                near.add(body.words[n + 3].text)
            new = (SHIFTED if INSTANTS.isdisjoint(near) else REVERSED)[word.text]
            yield body.replaced("compare", f"`{new}` in `{place}`", n, n + 1, new)
        elif word.text in TURNED:
            place = body.short(max(n - 2, 0), min(n + 6, len(body.words)))
            yield body.replaced("turn", f"`{TURNED[word.text]}` in `{place}`", n, n + 1, TURNED[word.text])


def locks(body: Body) -> Iterator[Mutant]:
    """Yield reads of rows without their lock, and waits for locked rows."""
    for n, word in enumerate(body.words[:-2]):
        words = [later.text for later in body.words[n : n + 4]]
        if word.text == "for" and (words[1] in ("update", "share") or words[1:4] == ["no", "key", "update"]):
            yield body.dropped("lock", n, scan(body.words, n + 1, frozenset({";", "loop", "order"})))
        if words[:2] == ["skip", "locked"]:
            place = body.short(max(n - 6, 0), n + 2)
            yield body.replaced("lock", f"waits in `{place}`", n, n + 2, "")


def conflicts(body: Body) -> Iterator[Mutant]:
    """A second row is an error, or changes nothing where it should replace the first."""
    for n, word in enumerate(body.words[:-1]):
        if word.text == "on" and body.words[n + 1].text == "conflict":
            end = scan(body.words, n, frozenset({";", "returning"}))
            yield body.dropped("conflict", n, end)
            do = scan(body.words, n, frozenset({"do"}))
            if body.words[do + 1].text == "update":
                yield body.replaced("conflict", f"nothing in `{body.short(n, end)}`", do + 1, end, "nothing")


def orders(body: Body) -> Iterator[Mutant]:
    """Locks in any order, whatever comes first, and all instead of some. An order that decides nothing of that is
    left alone: of an array, or of rows without waiters; and so is the `limit 1` of a `select into`, which takes the
    first row anyway."""
    stops = frozenset(["limit", "for", ";", "loop", "offset", "rows", "range", "union", "on"])
    for n, word in enumerate(body.words[:-1]):
        if word.text == "order" and body.words[n + 1].text == "by":
            end = scan(body.words, n + 1, stops)
            words = [
                later.text for later in body.words[end : scan(body.words, end, frozenset({";", "loop"}))]
            ]
            if words and (words[0] == "limit" or (words[0] == "for" and "skip" not in words)):
                yield body.dropped("order", n, end)
        elif word.text == "limit" and body.words[n + 1].text != "(" and not _takes_one(body, n):
            yield body.dropped("order", n, scan(body.words, n + 1, stops | {"returning"}))


def _takes_one(body: Body, limit: int) -> bool:
    """Return true if this is the `limit 1` of a `select into`."""
    words = body.words
    begins = (n for n in range(1, limit) if words[n].text == "select" and words[n - 1].text in BEGINS)
    begin = max(begins, default=limit)
    own = [other.text for other in words[begin:limit] if other.depth == words[limit].depth]
    return words[limit + 1].text == "1" and "into" in own and ";" not in own


def elements(body: Body) -> Iterator[Mutant]:
    """A list without one of its words, a number that is another, a default that is forgotten."""
    for n, word in enumerate(body.words[:-1]):
        if body.words[n + 1].text in ("(", "[") and word.text in ("in", "array", "coalesce"):
            end = scan(body.words, n + 2, frozenset())
            parts = split(body.words, n + 2, end, ",") if end > n + 2 else []
            quoted = all(body.words[first].text.startswith("'") for first, _ in parts)
            for m, (first, last) in enumerate(parts):
                if (
                    len(parts) < 2
                    or (word.text != "coalesce" and not quoted)
                    or (word.text == "coalesce" and not m)
                ):
                    continue
                change = f"no {body.short(first, last)} in `{body.short(n, end + 1)}`"
                yield replace(_without(body, ",", parts, m), kind="element", what=change)
        elif word.text in ("filter",) and body.words[n + 1].text == "(":
            end = scan(body.words, n + 2, frozenset())
            yield body.dropped("element", n, end + 1)


def steps(body: Body) -> Iterator[Mutant]:
    """A statement that is left out, and two in the other order."""
    for run in statements(body.words):
        for begin, end in run:
            yield body.dropped("statement", begin, end, "null;")
        for (first, middle), (second, last) in itertools.pairwise(run):
            if _touches(body.words[first:middle]) and _touches(body.words[second:last]):
                change = f"`{body.short(second, last)}` before `{body.short(first, middle)}`"
                new = f"{body.text(second, last)} {body.text(first, middle)}"
                yield body.replaced("swap", change, first, last, new)


def _touches(words: list[Token]) -> bool:
    """Return true if a statement reads, writes or locks anything."""
    return words[0].text in ("perform", "insert", "update", "delete", "with", "select") or any(
        word.text in ("select", "||") for word in words
    )


OPERATORS = (clauses, negations, comparisons, locks, conflicts, orders, elements, steps)


def mutants(function: str, source: str) -> list[Mutant]:
    """All of them, in the order of the source. Two of the same words are told apart by a number."""
    body = Body(function, source)
    unique = {
        (mutant.start, mutant.end, mutant.new): mutant for operator in OPERATORS for mutant in operator(body)
    }
    counts: Counter[str] = Counter()
    all_mutants = []
    for mutant in sorted(unique.values(), key=lambda one: (one.start, one.end, one.what)):
        counts[mutant.what] += 1
        again = counts[mutant.what]
        all_mutants.append(mutant if again == 1 else replace(mutant, what=f"{mutant.what} ({again})"))
    return all_mutants
