"""The route (work queue) of an execution: ordered glob rules over its namespace.

A namespace is `tenant::pack::workflow::task`, or `tenant::pack::action`. In a pattern

- `*` stands for any number of characters, or none, inside one segment: `heavy_*`, `*_gpu`, `a*b*c`;
- `**`, a segment of its own, stands for any number of segments, or none: `**::batch::*`;
- everything else stands for itself.

A pattern is anchored at both ends. A pattern without `**` may have fewer segments than the namespace. Then it is
matched against the last segments, so that `ml::*` and `heavy_*` work for every tenant. The first rule that matches
wins; if none does, the default route is taken.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache

from penstock.errors import DefinitionError

SEPARATOR = "::"
DEFAULT_ROUTE = "default"
MAX_PATTERN = 512
"""The maximum length of a pattern, in characters."""

_ROUTE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
_FOREIGN = re.compile(r"[\s?\[\]{}!\x00-\x1f]")

Segment = tuple[str, ...]
"""A segment of a pattern, split at its stars: `a*b` is `("a", "b")`, `a` is `("a",)`."""


@dataclass(frozen=True, slots=True)
class RoutingRule:
    """A rule that sends executions to `route` if their namespace matches `pattern`. Raises DefinitionError if either
    is malformed."""

    pattern: str
    route: str

    def __post_init__(self) -> None:
        _validate_pattern(self.pattern)
        _validate_route(self.route)


@dataclass(frozen=True, slots=True)
class PassedOver:
    """An earlier rule that did not match, and the reason."""

    rule: RoutingRule
    reason: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """The route of a namespace. `rule` is the rule that matched, or None for the default route. `passed_over` are the
    rules before it."""

    namespace: str
    route: str
    rule: RoutingRule | None
    passed_over: tuple[PassedOver, ...]

    def __str__(self) -> str:
        because = f"pattern {self.rule.pattern!r} matches" if self.rule else "no rule matches: the default"
        lines = [f"{self.namespace} -> {self.route} ({because})"]
        lines += [f"  not {p.rule.pattern!r} -> {p.rule.route}: {p.reason}" for p in self.passed_over]
        return "\n".join(lines)


class Router:
    """Ordered routing rules and a default route. A router is immutable, and caches its latest answers."""

    def __init__(self, rules: Sequence[RoutingRule], default: str) -> None:
        _validate_route(default)
        self.rules = tuple(rules)
        self.default = default
        self._patterns = tuple((rule, _blocks(rule.pattern)) for rule in self.rules)
        self._remembered = lru_cache(maxsize=4096)(self._first_match)

    def route(self, namespace: str) -> str:
        """Return the route of the first rule that matches `namespace`, else the default route."""
        return self._remembered(namespace)

    def _first_match(self, namespace: str) -> str:
        segments = namespace.split(SEPARATOR)
        for rule, blocks in self._patterns:
            if _mismatch(blocks, segments) is None:
                return rule.route
        return self.default

    def explain(self, namespace: str) -> Explanation:
        """Return the answer of `route`, with the rule that matched, and the reasons why earlier rules did not."""
        segments = namespace.split(SEPARATOR)
        passed_over: list[PassedOver] = []
        for rule, blocks in self._patterns:
            reason = _mismatch(blocks, segments)
            if reason is None:
                return Explanation(namespace, rule.route, rule, tuple(passed_over))
            passed_over.append(PassedOver(rule, reason))
        return Explanation(namespace, self.default, None, tuple(passed_over))


def refuse_unknown(named: Iterable[tuple[str, str]], route_names: Collection[str]) -> None:
    """Raise DefinitionError if a route in `named` is not among `route_names`. `named` has pairs of a route and what
    names it."""
    unknown = [(route, by) for route, by in named if route not in route_names]
    if not unknown:
        return
    near = get_close_matches(unknown[0][0], list(route_names), n=1)
    meant = f"Did you mean {near[0]!r}? " if near else ""
    raise DefinitionError(
        f"unknown route {', '.join(f'{route!r} ({by})' for route, by in unknown)}",
        hint=f"{meant}PENSTOCK_KNOWN_ROUTES names {', '.join(sorted(route_names))}.",
    )


def _mismatch(blocks: tuple[tuple[Segment, ...], ...], segments: list[str]) -> str | None:
    """Return the reason why the pattern does not match, or None if it does.

    `blocks` are the runs of segments between the `**`. Each block is placed at the leftmost position that matches.
    This never prevents a match of a later block, so each pair of pattern and text segment is compared at most once.
    """
    if len(blocks) == 1:
        (only,) = blocks
        if len(only) > len(segments):
            return f"it has {len(only)} segments, but the namespace has only {len(segments)}"
        return _differs(only, segments, len(segments) - len(only))

    head, *middle, tail = blocks
    end = len(segments) - len(tail)
    if end < len(head):
        return f"it needs {len(head) + len(tail)} segments, but the namespace has {len(segments)}"
    if reason := _differs(head, segments, 0) or _differs(tail, segments, end):
        return reason
    at = len(head)
    for block in middle:
        while at + len(block) <= end and not all(map(_fits, block, segments[at : at + len(block)])):
            at += 1
        at += len(block)
        if at > end:
            return f"{_written(block)!r} does not occur between its neighbours"
    return None


def _differs(block: tuple[Segment, ...], segments: list[str], at: int) -> str | None:
    """Return the reason why `block` does not match the segments from index `at` on, or None if it does."""
    for n, segment in enumerate(block, at):
        if not _fits(segment, segments[n]):
            return f"{_written((segment,))!r} does not match segment {n + 1}, {segments[n]!r}"
    return None


def _fits(pieces: Segment, text: str) -> bool:
    """Return whether the pieces are in `text` in order, without overlap, the first at its start and the last at its
    end."""
    if len(pieces) == 1:
        return text == pieces[0]
    first, *middle, last = pieces
    at, end = len(first), len(text) - len(last)
    if end < at or not text.startswith(first) or not text.endswith(last):
        return False
    for piece in middle:
        at = text.find(piece, at, end)
        if at < 0:
            return False
        at += len(piece)
    return True


def _blocks(pattern: str) -> tuple[tuple[Segment, ...], ...]:
    """Return the pattern as runs of segments between its `**`: one more run than it has `**`."""
    blocks: list[list[Segment]] = [[]]
    for segment in pattern.split(SEPARATOR):
        if segment == "**":
            blocks.append([])
        else:
            blocks[-1].append(tuple(segment.split("*")))
    return tuple(map(tuple, blocks))


def _written(block: tuple[Segment, ...]) -> str:
    return SEPARATOR.join("*".join(pieces) for pieces in block)


def _validate_pattern(pattern: str) -> None:
    def wrong(position: int, fault: str, hint: str) -> DefinitionError:
        return DefinitionError(
            f"Routing pattern {pattern!r} is wrong at character {position + 1}: {fault}.", hint=hint
        )

    if len(pattern) > MAX_PATTERN:
        raise wrong(
            MAX_PATTERN, f"it is longer than {MAX_PATTERN} characters", "Use `*` and `**` to shorten it."
        )
    if match := _FOREIGN.search(pattern):
        raise wrong(
            match.start(), f"{match.group()!r} is not allowed", "The only wildcards are `*` and `**`."
        )
    position = 0
    for segment in pattern.split(SEPARATOR):
        if not segment:
            raise wrong(
                position, "a segment is empty", "Write `*` for any one segment, `**` for any number of them."
            )
        if ":" in segment:
            raise wrong(
                position + segment.index(":"), "a single ':'", f"Segments are separated by {SEPARATOR!r}."
            )
        if "**" in segment and segment != "**":
            hint = "`**` must be a segment of its own, as in `a::**::b`; inside a segment write `*`."
            raise wrong(position + segment.index("**"), "`**` is glued to other characters", hint)
        position += len(segment) + len(SEPARATOR)


def _validate_route(route: str) -> None:
    if not _ROUTE.fullmatch(route):
        raise DefinitionError(
            f"Route {route!r} is not a name.",
            hint="Use at most 128 letters, digits, '_', '-' and '.': it becomes the queue work.<route>.",
        )
