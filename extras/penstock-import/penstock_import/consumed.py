"""A YAML tree that an importer consumes. A part that is not consumed remains with its line, and becomes a gap."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from penstock.errors import InvalidInput

_MAX_NODES = 500_000
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(slots=True, eq=False)
class Node:
    """A mapping, a list or a single value of a file, with the line of its key. `value` and `drop` consume a leaf;
    `peek` does not."""

    line: int
    children: dict[str, Node] | list[Node] | None = None
    scalar: Any = None
    is_taken: bool = False
    repeated: list[tuple[str, int]] = field(default_factory=list)
    """The keys that occur twice in the mapping. YAML keeps the last one."""

    def get(self, key: str) -> Node | None:
        """Return the child with this key; None if the node is not a mapping, or lacks the key."""
        return self.children.get(key) if isinstance(self.children, dict) else None

    def has(self, key: str) -> bool:
        return isinstance(self.children, dict) and key in self.children

    def items(self) -> list[tuple[str, Node]]:
        """Return the children of a mapping; an empty list for any other node."""
        return list(self.children.items()) if isinstance(self.children, dict) else []

    def parts(self) -> list[Node]:
        """Return the children of a list; an empty list for any other node."""
        return list(self.children) if isinstance(self.children, list) else []

    @property
    def is_mapping(self) -> bool:
        return isinstance(self.children, dict)

    @property
    def is_list(self) -> bool:
        return isinstance(self.children, list)

    def peek(self) -> Any:
        """Return the plain value, without consuming it."""
        if isinstance(self.children, dict):
            return {key: child.peek() for key, child in self.children.items()}
        if isinstance(self.children, list):
            return [child.peek() for child in self.children]
        return self.scalar

    def value(self) -> Any:
        """Return the plain value, and consume all of it."""
        self.drop()
        return self.peek()

    def drop(self) -> None:
        """Consume all of it, because it needs no mapping, or a gap names it."""
        self.is_taken = True
        for child in self._all():
            child.drop()

    def text(self, key: str, default: str = "") -> str:
        """Consume the child with this key, and return it as text."""
        child = self.get(key)
        value = child.value() if child is not None else None
        return default if value is None else str(value)

    def line_of(self, key: str) -> int:
        child = self.get(key)
        return self.line if child is None else child.line

    def left(self, path: str = "") -> Iterator[tuple[str, Node]]:
        """Yield the largest parts in which nothing was consumed."""
        if not self._has_taken():
            yield path, self
            return
        if isinstance(self.children, dict):
            for key, child in self.children.items():
                yield from child.left(f"{path}.{key}" if path else key)
        elif isinstance(self.children, list):
            for number, child in enumerate(self.children):
                yield from child.left(f"{path}[{number}]")

    def repetitions(self) -> Iterator[tuple[str, int]]:
        yield from self.repeated
        for child in self._all():
            yield from child.repetitions()

    def _all(self) -> list[Node]:
        if self.children is None:
            return []
        return list(self.children.values() if isinstance(self.children, dict) else self.children)

    def _has_taken(self) -> bool:
        return self.is_taken or any(child._has_taken() for child in self._all())


def read_tree(file: Path) -> Node:
    """Return the tree of a file; an empty mapping if the file contains none. Raises InvalidInput for invalid YAML."""
    try:
        root = yaml.compose(file.read_text(), Loader=_LOADER)
        node = _Reader().node(root, 1) if root is not None else Node(1, {})
    except (yaml.YAMLError, ValueError, RecursionError, OSError) as error:
        raise InvalidInput(f"{file}: {error}", hint="Correct the file, and import again.") from None
    return node


class _Reader:
    def __init__(self) -> None:
        self._loader = _LOADER("")
        self._count = 0

    def node(self, source: yaml.Node, line: int) -> Node:
        self._count += 1
        if self._count > _MAX_NODES:
            raise yaml.YAMLError("it has too many values")
        if isinstance(source, yaml.MappingNode):
            return self._mapping(source, line)
        if isinstance(source, yaml.SequenceNode):
            return Node(line, [self.node(part, part.start_mark.line + 1) for part in source.value])
        return Node(line, None, self._loader.construct_object(source, deep=True))

    def _mapping(self, source: yaml.MappingNode, line: int) -> Node:
        node = Node(line, {})
        assert isinstance(node.children, dict)
        written = [key.value for key, _ in source.value if isinstance(key, yaml.ScalarNode)]
        own = {
            key.value: key.start_mark.line + 1 for key, _ in source.value if isinstance(key, yaml.ScalarNode)
        }
        node.repeated = [(name, own[name]) for name in dict.fromkeys(written) if written.count(name) > 1]
        self._loader.flatten_mapping(source)
        for key, child in source.value:
            if not isinstance(key, yaml.ScalarNode):
                hint = ", so a text with {{ }} needs quotes" if isinstance(key, yaml.MappingNode) else ""
                raise yaml.YAMLError(f"line {key.start_mark.line + 1}: a key of a pack is a text{hint}")
            node.children[str(key.value)] = self.node(child, key.start_mark.line + 1)
        return node
