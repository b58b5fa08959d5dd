"""YAML mappings with the line of each key."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from penstock.errors import InvalidInput


class Marked(dict[Any, Any]):
    """A mapping, with the line of each key in `lines`."""

    lines: Mapping[Any, int] = {}

    def line(self, key: Any) -> int:
        return self.lines.get(key, 1)


class _Loader(yaml.SafeLoader):
    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> Marked:
        mapping = Marked(super().construct_mapping(node, deep=True))
        mapping.lines = {key.value: key.start_mark.line + 1 for key, _ in node.value}
        return mapping

    def marked(self, node: yaml.MappingNode) -> Marked:
        self.flatten_mapping(node)
        return self.construct_mapping(node)


_Loader.add_constructor("tag:yaml.org,2002:map", _Loader.marked)


def read(file: Path) -> Marked:
    """Return the mapping in a file; an empty one if the file contains none. Raises InvalidInput for invalid YAML."""
    try:
        document = yaml.load(file.read_text(), Loader=_Loader)
    except (yaml.YAMLError, ValueError, RecursionError, OSError) as error:
        raise InvalidInput(f"{file}: {error}", hint="Correct the file, and import again.") from None
    if isinstance(document, Marked):
        return document
    return Marked()
