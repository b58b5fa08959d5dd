"""The names that a template uses, from which its dependencies are known before it runs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from jinja2 import nodes

Path = tuple[str | int, ...]
"""A path of names and indexes: `tasks.fetch.result[0].x` is `("tasks", "fetch", "result", 0, "x")`."""


@dataclass(frozen=True, slots=True)
class NamesUsed:
    """The names that templates read from their namespace.

    `paths` are as long as the text of the template shows. `computed` are the paths that are followed by a computed
    subscript. So `tasks[vars.which].result` has the computed path `("tasks",)`, and the path `("vars", "which")`.
    """

    paths: frozenset[Path] = frozenset()
    computed: frozenset[Path] = frozenset()

    @property
    def roots(self) -> frozenset[str]:
        """Return the first names of all paths: `{"tasks", "vars"}`."""
        return frozenset(str(path[0]) for path in self.paths)

    def under(self, *prefix: str | int) -> frozenset[str | int]:
        """Return the names used directly below `prefix`: `under("tasks")` are the named tasks."""
        n = len(prefix)
        return frozenset(path[n] for path in self.paths if len(path) > n and path[:n] == prefix)

    def whole(self, *prefix: str | int) -> bool:
        """Return whether `prefix` itself is used, as in `tasks | length` or `tasks[x]`. Then any name below it may be
        read."""
        return prefix in self.paths

    def __or__(self, other: NamesUsed) -> NamesUsed:
        return NamesUsed(self.paths | other.paths, self.computed | other.computed)


def names_in(tree: nodes.Template, functions: Iterable[str]) -> NamesUsed:
    """Return the names that `tree` reads and does not set itself, except calls of `functions`."""
    reader = _Reader(frozenset(functions))
    reader.block(tree.body, set())
    return NamesUsed(frozenset(reader.paths), frozenset(reader.computed))


class _Reader:
    def __init__(self, functions: frozenset[str]) -> None:
        self.functions = functions
        self.paths: set[Path] = set()
        self.computed: set[Path] = set()

    def block(self, body: Iterable[nodes.Node], bound: set[str]) -> None:
        """Read statements in order, and add the names that they set to `bound`."""
        for node in body:
            if isinstance(node, nodes.For):
                self.value(node.iter, bound)
                inside = bound | set(_targets(node.target)) | {"loop"}
                if node.test:
                    self.value(node.test, inside)
                self.block(node.body, inside)
                self.block(node.else_, set(bound))
            elif isinstance(node, nodes.If):
                self.value(node.test, bound)
                for elif_ in node.elif_:
                    self.value(elif_.test, bound)
                branches = [node.body, *(elif_.body for elif_ in node.elif_), node.else_]
                ends = [set(bound) for _ in branches]
                for branch, end in zip(branches, ends, strict=True):
                    self.block(branch, end)
                bound |= set.intersection(*ends)  # a name is set for certain only if every branch sets it
            elif isinstance(node, nodes.Assign):
                self.value(node.node, bound)
                bound |= set(_targets(node.target))
            else:
                self.value(node, bound)

    def value(self, node: nodes.Node, bound: set[str]) -> None:
        path = self._path(node, bound)
        if path is None:
            callee = node.node if isinstance(node, nodes.Call) else None
            for child in node.iter_child_nodes():
                if child is callee:
                    self._callee(callee, bound)
                else:
                    self.value(child, bound)
        elif path and path[0] not in bound:
            self.paths.add(path)

    def _callee(self, node: nodes.Node, bound: set[str]) -> None:
        """Read the callee of a call: in `a.b.get(...)` the path `a.b` is read, and `min(...)` reads nothing."""
        if isinstance(node, nodes.Getattr):
            self.value(node.node, bound)
        elif not (isinstance(node, nodes.Name) and node.name in self.functions):
            self.value(node, bound)

    def _path(self, node: nodes.Node, bound: set[str]) -> Path | None:
        """Return the path that `node` reads, or None for any other node. Computed subscripts on the way are read too."""
        steps: list[str | int] = []
        while isinstance(node, (nodes.Getattr, nodes.Getitem)):
            if isinstance(node, nodes.Getattr):
                steps.append(node.attr)
            elif isinstance(node.arg, nodes.Const) and isinstance(node.arg.value, (str, int)):
                steps.append(node.arg.value)
            else:
                self.value(node.arg, bound)
                steps.clear()
                if path := self._path(node.node, bound):
                    if path[0] not in bound:
                        self.computed.add(path)
                    return path
                self.value(node.node, bound)
                return ()
            node = node.node
        if isinstance(node, nodes.Name):
            return (node.name, *reversed(steps))
        if steps:
            self.value(node, bound)
            return ()
        return None


def _targets(node: nodes.Node) -> list[str]:
    return [name.name for name in node.find_all(nodes.Name)] + (
        [node.name] if isinstance(node, nodes.Name) else []
    )
