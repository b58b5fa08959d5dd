"""The context that tasks pass on to each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from copy import deepcopy
from typing import Any


class Context(MutableMapping[str, Any]):
    """The context that tasks pass on to each other: JSON values by name. A name cannot be deleted, but its value can be
    set to None."""

    def __init__(self, values: Mapping[str, Any] | None = None) -> None:
        self._before = dict(values or {})
        self._values = deepcopy(self._before)

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __setitem__(self, name: str, value: Any) -> None:
        if not isinstance(name, str):
            raise TypeError(f"a name in the context is text, not {name!r}")
        self._values[name] = value

    def __delitem__(self, name: str) -> None:
        raise TypeError(f"{name!r} cannot be taken out of the context; set it to None")

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def set(self, name: str, value: Any) -> None:
        """Set a value, new or not: `context.set("day", 7)` is `context["day"] = 7`."""
        self[name] = value

    def insert(self, name: str, value: Any) -> None:
        """Insert a new name. Raises KeyError if it exists already."""
        if name in self._values:
            raise KeyError(f"{name!r} is in the context already; set it with context[{name!r}] = ...")
        self[name] = value

    @property
    def changes(self) -> dict[str, Any]:
        """Return the new values and the changed ones."""
        unset = object()
        return {
            name: value
            for name, value in self._values.items()
            if (old := self._before.get(name, unset)) != value or type(old) is not type(value)
        }
