"""The dotted paths of the modules of a source, asked for by a path that a statement imports from."""

from __future__ import annotations

from collections.abc import Iterable


class ModulePaths:
    """A set of paths. A path of a statement may be longer than that of its module, or shorter: a folder may lie within a
    package, or hold one."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._paths = frozenset(paths)
        self._parts: set[str] = set()
        self._ends: set[str] = set()
        for path in self._paths:
            words = path.split(".")
            for first in range(len(words)):
                self._ends.add(".".join(words[first:]))
                self._parts |= {".".join(words[first:last]) for last in range(first + 1, len(words) + 1)}

    def ends(self, path: str) -> bool:
        """Return whether a path is that of a module, from some package of it on."""
        return path in self._ends

    def fits(self, path: str) -> bool:
        """Return whether a path is that of a module, from some package of it on, or ends with one."""
        return self.ends(path) or self._ends_with_module(path)

    def contains(self, path: str) -> bool:
        """Return whether a path is a part of that of a module, or ends with one."""
        return path in self._parts or self._ends_with_module(path)

    def _ends_with_module(self, path: str) -> bool:
        words = path.split(".")
        return any(".".join(words[first:]) in self._paths for first in range(len(words)))
