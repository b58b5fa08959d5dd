"""The comparisons that a condition requires. With the keys of equalities, matching rows are looked up instead of tried one by
one. Comparisons with their values also tell people what a wait is for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from typing import Any

from jinja2 import nodes

from penstock.errors import ExpressionError
from penstock.language.expressions.budget import budget
from penstock.language.expressions.expression import _compile, _condition_of, _parse
from penstock.language.expressions.names import Path


@dataclass(frozen=True, slots=True)
class Equality:
    """An equality that a condition requires: the value at `path` below its root equals the value of `other`."""

    path: Path
    other: Callable[[Mapping[str, Any]], Any]

    def key(self, namespace: Mapping[str, Any]) -> str | None:
        """Return the key of the other side's value. Equal values have equal keys. None if it has no key, or cannot be
        evaluated."""
        try:
            with budget():
                return key_of(self.other(namespace))
        except Exception:  # evaluating the condition itself will raise the error
            return None


SHOWN_OPERATORS = {
    "eq": "=",
    "ne": "!=",
    "gt": ">",
    "gteq": ">=",
    "lt": "<",
    "lteq": "<=",
    "in": "in",
    "notin": "not in",
}
"""The operators of comparisons, as people read them."""
SWAPPED = {"eq": "eq", "ne": "ne", "gt": "lt", "gteq": "lteq", "lt": "gt", "lteq": "gteq"}
"""The operators that mean the same with both sides swapped."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """A comparison that a condition requires: of the value at `path` below its root, by the `operator` for people, with the
    value of `other`."""

    path: Path
    operator: str
    other: Callable[[Mapping[str, Any]], Any]

    def value(self, namespace: Mapping[str, Any]) -> Any:
        """Return the value of the other side. Raises ExpressionError if it cannot be evaluated."""
        try:
            with budget():
                return self.other(namespace)
        except ExpressionError:
            raise
        except Exception as error:
            raise ExpressionError(f"a side of a comparison fails with {type(error).__name__}") from None


@lru_cache(maxsize=2048)
def equality(source: str, root: str) -> Equality | None:
    """Return the first equality that `source` requires between a value below `root` and a value that does not depend
    on `root`.

    For example `event.payload.order == parameters.order and ...`. Returns None if there is none. Raises
    ExpressionError if `source` is malformed.
    """
    for part in _parts(source):
        comparison = _comparison(source, part, root)
        if comparison is not None and comparison.operator == SHOWN_OPERATORS["eq"]:
            return Equality(comparison.path, comparison.other)
    return None


@lru_cache(maxsize=2048)
def comparisons(source: str, root: str) -> tuple[Comparison, ...] | None:
    """Return the comparisons of which `source` consists, joined by `and`. Each compares a value below `root` with a value
    that does not depend on `root`. Returns None if `source` has any other part. Raises ExpressionError if `source` is
    malformed."""
    parts = [_comparison(source, part, root) for part in _parts(source)]
    listed = tuple(comparison for comparison in parts if comparison is not None)
    return listed if len(listed) == len(parts) else None


def _parts(source: str) -> list[nodes.Node]:
    """Return the parts that a condition joins by `and`."""
    whole = _parse(source, _condition_of).body[0]
    assert isinstance(whole, nodes.Output)
    return list(_conjuncts(whole.nodes[0]))


def _comparison(source: str, part: nodes.Node, root: str) -> Comparison | None:
    """Return the comparison of a part of the condition `source`; None if the part is none."""
    if not isinstance(part, nodes.Compare) or len(part.ops) != 1:
        return None
    [operand] = part.ops
    sides = [(part.expr, operand.op, operand.expr)]
    if operand.op in SWAPPED:
        sides.append((operand.expr, SWAPPED[operand.op], part.expr))
    for side, operator, other in sides:
        path = _path(side, root)
        if path and not _mentions(other, root):
            tree = nodes.Template([nodes.Output([other], lineno=1)], lineno=1)
            return Comparison(path, SHOWN_OPERATORS[operator], _compile(source, tree)[0])
    return None


def value_at(path: Sequence[str | int], value: Any) -> Any:
    """Return the value at a path. Raises LookupError if there is none."""
    for step in path:
        if isinstance(value, Mapping) or (isinstance(value, list) and isinstance(step, int)):
            value = value[step]  # type: ignore[index]
        else:
            raise LookupError(step)
    return value


def key_of(value: Any) -> str | None:
    """Return a key that is equal for equal texts and for equal numbers. Return None for any other value."""
    if isinstance(value, str):
        return f"s{value}" if len(value) <= 100 else f"h{sha256(value.encode()).hexdigest()}"
    if isinstance(value, bool | int):
        return f"n{int(value)}"
    if isinstance(value, float):
        return f"n{int(value) if value.is_integer() else value!r}"
    return None


def _conjuncts(node: nodes.Node) -> Iterator[nodes.Node]:
    if isinstance(node, nodes.And):
        yield from _conjuncts(node.left)
        yield from _conjuncts(node.right)
    else:
        yield node


def _path(node: nodes.Node, root: str) -> Path:
    """Return the path below `root` that a node reads, or an empty path for any other node."""
    steps: list[str | int] = []
    while isinstance(node, nodes.Getattr | nodes.Getitem):
        if isinstance(node, nodes.Getattr):
            steps.append(node.attr)
        elif isinstance(node.arg, nodes.Const) and type(node.arg.value) in (str, int):
            steps.append(node.arg.value)
        else:
            return ()
        node = node.node
    return tuple(reversed(steps)) if isinstance(node, nodes.Name) and node.name == root else ()


def _mentions(node: nodes.Node, root: str) -> bool:
    return any(
        name.name == root for name in (node, *node.find_all(nodes.Name)) if isinstance(name, nodes.Name)
    )
