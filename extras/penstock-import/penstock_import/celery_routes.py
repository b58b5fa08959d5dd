"""The route of each task in `task_routes`, by the rules of Celery's router: the first map with a key that fits decides.
In a map, exact names come first, and then patterns in order."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import translate

from penstock_import.celery_calls import called

_FLAGS = frozenset(
    {"I", "IGNORECASE", "A", "ASCII", "S", "DOTALL", "X", "VERBOSE", "M", "MULTILINE", "U", "UNICODE"}
)


@dataclass(frozen=True, slots=True)
class RouteKey:
    """A key of a map of routes: the name of a task or, with a pattern, all names that the pattern matches."""

    name: str
    pattern: re.Pattern[str] | None = None
    text: str = field(default="", compare=False)

    def __str__(self) -> str:
        return self.text or self.name


RouteMap = Mapping[RouteKey, ast.expr]
"""The nodes of the routes in a map, by key. The later of two equal keys counts, in the place of the first."""


def route_key(name: str) -> RouteKey:
    """Return the key for a text. Only a text with a star is a pattern."""
    return RouteKey("", re.compile(translate(name)), name) if "*" in name else RouteKey(name)


def deciding_key(maps: Sequence[Collection[RouteKey]], task: str) -> tuple[int, RouteKey] | None:
    """Return the key of the route that Celery takes for a task, after the number of the key's map; None if no key
    fits."""
    for number, keys in enumerate(maps):
        if (exact := RouteKey(task)) in keys:
            return number, exact
        for key in keys:
            if key.pattern is not None and key.pattern.match(task):
                return number, key
    return None


def has_compiled_key(node: ast.expr) -> bool:
    """Return whether a dict has a key that is a regular expression."""
    return isinstance(node, ast.Dict) and any(key is not None and _compiled(key) for key in node.keys)


def route_maps(node: ast.expr, named: Callable[[str], ast.expr | None]) -> list[RouteMap] | None:
    """Return the maps in a value of `task_routes`, which is a dict, or a list of dicts and of lists of pairs. `named`
    returns the value of a name. Return None if a part is a function, or if only running the code would tell."""
    parts = node.elts if isinstance(node, ast.List | ast.Tuple) else [node]
    maps: list[RouteMap] = []
    for part in parts:
        value = named(part.id) if isinstance(part, ast.Name) else part
        pairs = _pairs(value) if value is not None else None
        if pairs is None:
            return None
        routes: dict[RouteKey, ast.expr] = {}
        for key_node, route in pairs:
            key = _key(key_node)
            if key is None:
                return None
            routes[key] = route
        maps.append(routes)
    return maps


def is_list_of_pairs(node: ast.expr) -> bool:
    """Return whether a value is a list of pairs of texts and routes. Celery accepts such a list only inside another
    list."""
    return (
        isinstance(node, ast.List | ast.Tuple)
        and bool(node.elts)
        and all(
            isinstance(part, ast.List | ast.Tuple) and len(part.elts) == 2 and _key(part.elts[0]) is not None
            for part in node.elts
        )
    )


def _pairs(node: ast.expr) -> list[tuple[ast.expr, ast.expr]] | None:
    if isinstance(node, ast.Dict):
        pairs = zip(node.keys, node.values, strict=True)
        return None if None in node.keys else [(key, value) for key, value in pairs if key is not None]
    if not isinstance(node, ast.List | ast.Tuple):
        return None
    if not all(isinstance(part, ast.List | ast.Tuple) and len(part.elts) == 2 for part in node.elts):
        return None
    return [(part.elts[0], part.elts[1]) for part in node.elts if isinstance(part, ast.List | ast.Tuple)]


def _key(node: ast.expr) -> RouteKey | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return route_key(node.value)
    pattern = _compiled(node)
    return RouteKey("", pattern, ast.unparse(node)) if pattern is not None else None


def _compiled(node: ast.expr) -> re.Pattern[str] | None:
    """Return the regular expression of a call of `re.compile` with a literal text; None for anything else."""
    if not isinstance(node, ast.Call) or called(node) != "compile" or len(node.args) not in (1, 2):
        return None
    words = {word.arg: word.value for word in node.keywords}
    text = node.args[0]
    flags = node.args[1] if len(node.args) == 2 else words.pop("flags", None)
    if words or not isinstance(text, ast.Constant) or not isinstance(text.value, str):
        return None
    value = 0
    for part in _flag_parts(flags):
        name = part.attr if isinstance(part, ast.Attribute) else ""
        if name not in _FLAGS:
            return None
        value |= getattr(re, name)
    try:
        return re.compile(text.value, value)
    except re.error:
        return None


def _flag_parts(node: ast.expr | None) -> list[ast.expr]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return [*_flag_parts(node.left), *_flag_parts(node.right)]
    return [] if node is None else [node]
