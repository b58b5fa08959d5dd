"""The generated TypeScript module: the types of the parameters and the result of each action and workflow.

const client = new Client<Actions>();
const charged = await client.run("shop.charge", { order: 7 });
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any

from penstock.client.generated_types.python_types import Names, camel
from penstock.language.schemas.schema_tree import follow
from penstock.language.schemas.secrets import is_secret

UNKNOWN = "unknown"
SIMPLE = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"}
PLAIN_NAME = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*\Z")
OPENING = ("patternProperties", "dependentSchemas", "if", "unevaluatedProperties")
"""The keywords that may add fields to `properties`."""
HEAD = """// Actions and workflows of an installation of Penstock, typed. Written by `penstock types`: not to be edited.
// Digest: {digest}

"""


def module_of(definitions: Sequence[Mapping[str, Any]]) -> str:
    """Return the module for these definitions of actions and workflows, in the form of `penstock actions --json`:
    `ref`, `enabled` and `definition`. Retired ones are left out. Equal definitions give an equal text."""
    current = sorted(
        (entry for entry in definitions if entry["enabled"]), key=lambda entry: str(entry["ref"])
    )
    names = Names(["Actions"])
    aliases: list[str] = []
    members: list[str] = []
    for entry in current:
        ref, definition = str(entry["ref"]), entry["definition"]
        name = "".join(map(camel, re.split(r"[._]", ref)))
        parameters = _Types(definition.get("parameters") or {}, name, names, aliases)
        result = _Types(definition.get("result") or {}, f"{name}Result", names, aliases)
        members.append(_comment(definition.get("description"), "  "))
        members.append(
            f"  {_quoted(ref)}: {{ parameters: {parameters.whole('object')}; result: {result.whole()} }};\n"
        )
    body = "".join(
        [
            *(f"{alias}\n\n" for alias in aliases),
            "/** The parameters and the result of each action and workflow, by its ref. */\n",
            "export type Actions = {\n",
            *members,
            "};\n",
        ]
    )
    return HEAD.format(digest=sha256(body.encode()).hexdigest()[:32]) + body


class _Types:
    """The types of the parts of one schema. A part that is referred to has an alias, which may refer to itself."""

    def __init__(self, root: Mapping[str, Any], prefix: str, names: Names, aliases: list[str]) -> None:
        self._root, self._prefix, self._names, self._aliases = root, prefix, names, aliases
        self._referred: dict[str, str] = {}
        self._begun: dict[str, int] = {}
        """The depth at which each alias that is not complete was begun."""
        self._depth = 0
        """Objects and arrays around the part at hand."""

    def whole(self, kind: str | None = None) -> str:
        """Return the type of all values. `kind` is their type if the schema names none."""
        if kind is not None and "type" not in self._root and "$ref" not in self._root:
            return self.of({**self._root, "type": kind})
        return self.of(self._root)

    def of(self, schema: Any) -> str:
        """Return the type of a schema's values."""
        if not isinstance(schema, Mapping):
            return "never" if schema is False else UNKNOWN
        kinds = schema.get("type", ())
        kinds = [kinds] if isinstance(kinds, str) else list(kinds)
        if is_secret(schema):  # readers of definitions may not see the possible values of a secret
            return _union(SIMPLE.get(kind, UNKNOWN) for kind in kinds or ["string"])
        if "const" in schema or "enum" in schema:
            return _union(map(_literal, schema.get("enum", [schema.get("const")])))
        parts = [self._reference(schema["$ref"])] if "$ref" in schema else []
        parts += [_union(map(self.of, schema[word])) for word in ("anyOf", "oneOf") if word in schema]
        parts += map(self.of, schema.get("allOf", ()))
        if kinds:
            parts.append(_union(self._of_kind(schema, kind) for kind in kinds))
        return _intersection(parts)

    def _of_kind(self, schema: Mapping[str, Any], kind: str) -> str:
        if kind not in ("object", "array"):
            return SIMPLE.get(kind, UNKNOWN)
        self._depth += 1
        text = self._object(schema) if kind == "object" else self._array(schema)
        self._depth -= 1
        return text

    def _array(self, schema: Mapping[str, Any]) -> str:
        items = UNKNOWN if "prefixItems" in schema else self.of(schema.get("items"))
        return f"{items}[]" if re.fullmatch(r"[\w$]+", items) else f"({items})[]"

    def _object(self, schema: Mapping[str, Any]) -> str:
        declared: Mapping[str, Any] = schema.get("properties") or {}
        required = schema.get("required", ())
        additional = schema.get("additionalProperties", "unevaluatedProperties" not in schema)
        fields = [
            f"{_quoted(name)}{'' if name in required else '?'}: {self.of(part)}"
            for name, part in sorted(declared.items())
        ]
        if any(word in schema for word in OPENING):
            additional = True
        if not declared and isinstance(additional, Mapping):
            fields.append(f"[name: string]: {self.of(additional)}")
        elif additional is not False:
            fields.append(f"[name: string]: {UNKNOWN}")
        return f"{{ {'; '.join(fields)} }}" if fields else "Record<string, never>"

    def _reference(self, reference: str) -> str:
        """Return the alias of a referenced schema. One that is itself, and not only holds itself, has no type."""
        if reference not in self._referred:
            name = self._names.take(self._prefix + (camel(reference.rpartition("/")[2]) or "Whole"))
            self._referred[reference] = name
            self._begun[reference] = self._depth
            place = len(self._aliases)
            self._aliases.append("")
            self._aliases[place] = f"export type {name} = {self.of(follow(self._root, reference))};"
            del self._begun[reference]
        return UNKNOWN if self._begun.get(reference) == self._depth else self._referred[reference]


def _union(types: Iterable[str]) -> str:
    parts = list(dict.fromkeys(types))
    if UNKNOWN in parts or not parts:
        return UNKNOWN
    return " | ".join(f"({part})" if " & " in part else part for part in parts)


def _intersection(types: Iterable[str]) -> str:
    parts = [part for part in dict.fromkeys(types) if part != UNKNOWN]
    if len(parts) < 2:
        return parts[0] if parts else UNKNOWN
    return " & ".join(f"({part})" if " | " in part else part for part in parts)


def _literal(value: Any) -> str:
    return UNKNOWN if isinstance(value, list | Mapping) else json.dumps(value)


def _quoted(name: str) -> str:
    return name if PLAIN_NAME.match(name) else json.dumps(name)


def _comment(text: Any, indent: str) -> str:
    lines = str(text or "").strip().splitlines()
    return f"{indent}/** {lines[0].replace('*/', '* /')} */\n" if lines else ""
