"""The reading and writing of YAML as plain JSON values, with the line and column of each value.

As in YAML 1.2's JSON schema, `yes`, `on`, `12:30` and `2026-01-01` are texts. A duplicate key is refused, an alias is
a copy, and the size to which aliases expand is bounded.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import yaml

from penstock.errors import DefinitionError

MAX_BYTES = 16 * 1024 * 1024
"""The maximum size of a text or a file, in bytes: twice the 8 MiB of JSON of the largest workflow."""
MAX_VALUES = 500_000
MAX_DEPTH = 60

Path = tuple[str | int, ...]
Marks = dict[Path, tuple[int, int]]
"""The line and column, both from 1, of each value by its path."""


class _Loader(yaml.SafeLoader):
    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012


_SCALARS = (
    ("null", r"~|null|", "~n\0"),
    ("bool", r"true|false", "tf"),
    ("int", r"[-+]?(0|[1-9][0-9]*)", "-+0123456789"),
    ("float", r"[-+]?(\.[0-9]+|(0|[1-9][0-9]*)(\.[0-9]*)?)([eE][-+]?[0-9]+)?", "-+.0123456789"),
)
"""The scalars that are not text: tag, pattern, first characters."""
_NOT_TEXT = re.compile("|".join(pattern for _, pattern, _ in _SCALARS))
for _tag, _pattern, _first in _SCALARS:
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(rf"^(?:{_pattern})$"), list(_first))
_Loader.yaml_implicit_resolvers[""] = [("tag:yaml.org,2002:null", re.compile("^$"))]


def too_large(file: str) -> DefinitionError:
    return DefinitionError(
        f"{file} has more than {MAX_BYTES:,} bytes",
        hint="Move parts of the workflow into workflows in other files, and run them with `workflow: REF` in a task.",
    )


def _how_to_mend(error: yaml.MarkedYAMLError) -> str:
    """Return the usual cause of a parser's error, which may be some lines above it."""
    began = f"opened on line {error.context_mark.line + 1}" if error.context_mark else "opened above"
    complaint = f"{error.context} {error.problem}"
    for words, hint in (
        ("\\t", "Indent with spaces: YAML takes no tab there."),
        ("scanning an alias", "Put a value that begins with * in quotes: '*/5 * * * *'."),
        ("scanning a quoted scalar", f"The quote that is {began} is not closed."),
        ("parsing a flow", f"The bracket that is {began} is not closed, or a comma is missing."),
        (
            "mapping values are not allowed",
            "Put a value that contains a colon in quotes, or indent this line less.",
        ),
        ("expected <block end>", "Indent this line as far as the other lines of the same block."),
    ):
        if words in complaint:
            return hint
    return "It is not valid YAML."


def read(text: str, file: str = "<text>") -> tuple[Any, Marks]:
    """Return the value of a YAML document, and its marks. Raises DefinitionError with file, line and column."""
    if len(text) > MAX_BYTES or len(text.encode(errors="replace")) > MAX_BYTES:
        raise too_large(file)
    try:
        tree = yaml.compose(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"{file}:{mark.line + 1}:{mark.column + 1}" if mark else file
        raise DefinitionError(f"{place}: {error.problem or error}", hint=_how_to_mend(error)) from None
    except yaml.YAMLError as error:
        raise DefinitionError(f"{file}: {error}", hint="It is not valid YAML.") from None
    except RecursionError:
        raise DefinitionError(f"{file}: it nests too deeply", hint="Simplify the document.") from None
    reader = _Reader(file)
    value = None if tree is None else reader.value(tree, ())
    return value, reader.marks


_COLLECTIONS = ("tag:yaml.org,2002:map", "tag:yaml.org,2002:seq")


class _Reader:
    def __init__(self, file: str) -> None:
        self.file = file
        self.marks: Marks = {}
        self.left = MAX_VALUES

    def value(self, node: yaml.Node, path: Path) -> Any:
        self.left -= 1
        if self.left < 0 or len(path) > MAX_DEPTH:
            self.fail(node, "it is too large or nests too deeply (are there aliases of aliases?)")
        self.marks[path] = (node.start_mark.line + 1, node.start_mark.column + 1)
        if isinstance(node, yaml.CollectionNode) and node.tag not in _COLLECTIONS:
            self.fail(node, f"the tag {node.tag} is not supported; values are those of JSON")
        if isinstance(node, yaml.MappingNode):
            return self.mapping(node, path)
        if isinstance(node, yaml.SequenceNode):
            return [self.value(item, (*path, n)) for n, item in enumerate(node.value)]
        assert isinstance(node, yaml.ScalarNode)
        return self.scalar(node)

    def mapping(self, node: yaml.MappingNode, path: Path) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for key, item in node.value:
            if not isinstance(key, yaml.ScalarNode):
                self.fail(key, "a key is a single word or text")
            if key.tag == "tag:yaml.org,2002:merge" or key.value == "<<":
                self.fail(key, "merge keys (<<) are not supported; repeat the values or use an alias")
            if key.value in values:
                self.fail(key, f"`{key.value}` is given twice")
            values[key.value] = self.value(item, (*path, key.value))
            # The line of the key is the better place for an error, above all if its value is a block.
            self.marks[(*path, key.value)] = (key.start_mark.line + 1, key.start_mark.column + 1)
        return values

    def scalar(self, node: yaml.ScalarNode) -> Any:
        kind, text = node.tag.removeprefix("tag:yaml.org,2002:"), node.value
        try:
            if kind == "null":
                return None
            if kind == "bool":
                return {"true": True, "false": False}[text]
            if kind in ("int", "float"):
                return int(text) if kind == "int" else float(text)
        except (KeyError, ValueError):
            self.fail(node, f"this is not a valid {kind}")
        if kind != "str":
            self.fail(node, f"the tag {node.tag} is not supported; values are those of JSON")
        return text

    def fail(self, node: yaml.Node, why: str) -> None:
        place = f"{self.file}:{node.start_mark.line + 1}:{node.start_mark.column + 1}"
        raise DefinitionError(f"{place}: {why}", hint="See docs/workflows.md for the format.")


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    # The dumper quotes texts that YAML 1.1 would not read as text. This quotes those that `read` would not.
    style = "|" if "\n" in value else None
    if _NOT_TEXT.fullmatch(value):
        style = "'"
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


_Dumper.add_representer(str, _text)


def write(value: Any) -> str:
    """Return plain JSON values as YAML, with keys in their order, so that `read` returns equal values."""
    return yaml.dump(
        value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110, default_flow_style=False
    )


def place(file: str, marks: Mapping[Path, tuple[int, int]], path: Path) -> str:
    """Return `file:line:column` of a path, or of the nearest value above it that has a mark."""
    while path and path not in marks:
        path = path[:-1]
    line, column = marks.get(path, (1, 1))
    return f"{file}:{line}:{column}"
