"""The dotted paths of the modules of a source, compared with the paths that import statements name."""

from __future__ import annotations

from collections.abc import Iterable


class ModulePaths:
    """A set of paths of modules. A path in a statement may begin at a package further in than that of the module, or
    further out."""

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
        """Return whether `path` is the end of a module's path."""
        return path in self._ends

    def fits(self, path: str) -> bool:
        """Return whether `path` is the end of a module's path, or ends with one."""
        return self.ends(path) or self._ends_with_module(path)

    def contains(self, path: str) -> bool:
        """Return whether `path` is a part of a module's path, or ends with one."""
        return path in self._parts or self._ends_with_module(path)

    def _ends_with_module(self, path: str) -> bool:
        words = path.split(".")
        return any(".".join(words[first:]) in self._paths for first in range(len(words)))
