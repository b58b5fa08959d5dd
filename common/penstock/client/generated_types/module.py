"""The generated module. The module has a class for each pack, with an ActionRef and its signature for each action and
workflow.

    charged = await client.run(shop.charge.call(order=7))
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import groupby
from keyword import iskeyword
from typing import Any

from penstock.client.generated_types.python_types import (
    COMPOSING,
    IMPORTED,
    Names,
    Parts,
    TypedDicts,
    camel,
    fits,
    hides_a_type,
    is_field,
    literal,
    text_of,
)
from penstock.language.terms.redaction import MASK

WIDEST = 110
DIGEST = re.compile(r"^(?:// )?Digest: ([0-9a-f]{32})$", re.MULTILINE)
HEAD = '''"""Actions and workflows of an installation of Penstock, typed. Written by `penstock types`: not to be edited.

Digest: {digest}
"""
# fmt: off
# ruff: noqa
# pyright: reportUnusedImport=false

from __future__ import annotations

from typing import Any, Final, Literal, NotRequired

from penstock import ActionRef
from typing_extensions import TypedDict

_OMITTED: Any = ...  # of a parameter that is not given, the action has the default


'''


def module_of(definitions: Sequence[Mapping[str, Any]]) -> str:
    """Return the module for these definitions of actions and workflows, in the form of `penstock actions --json`:
    `ref`, `enabled` and `definition`. Retired ones are left out. Equal definitions give an equal text."""
    current = sorted(
        (entry for entry in definitions if entry["enabled"]), key=lambda entry: str(entry["ref"])
    )
    names = Names(IMPORTED)
    typed = TypedDicts(names)
    functions: list[str] = []
    packs: list[str] = []
    for pack, members in groupby(current, key=lambda entry: str(entry["ref"]).partition(".")[0]):
        members_of_pack = []
        for entry in members:
            ref, definition = str(entry["ref"]), entry["definition"]
            function = names.take("_" + ref.replace(".", "__"))
            functions.append(_function(function, *_signature(typed, ref, definition)))
            members_of_pack.append(_member(ref, function, definition))
        head = f'class {names.take(_plain(pack))}:\n    """The pack {pack}."""'
        packs.append("\n\n".join([head, *members_of_pack]))
    body = "\n\n\n".join([*typed.blocks, *functions, *packs, ""]).rstrip("\n") + "\n"
    return HEAD.format(digest=sha256(body.encode()).hexdigest()[:32]) + body


def digest_of(module: str) -> str | None:
    """Return the digest of the definitions from which a module was generated, however it was reformatted, or None."""
    match = DIGEST.search(module)
    return match[1] if match else None


def _signature(typed: TypedDicts, ref: str, definition: Mapping[str, Any]) -> tuple[list[str], str]:
    """Return the parameters of a signature, as lines of Python, and the type of the result."""
    name = "".join(map(camel, re.split(r"[._]", ref)))
    result = definition.get("result")
    returned = typed.schema(result or {}, name + "Result").of(result)
    return list(_parameters(typed, definition.get("parameters") or {}, name)), text_of(returned)


def _parameters(typed: TypedDicts, schema: Mapping[str, Any], name: str) -> Iterator[str]:
    """Yield the parameters, the required ones first. A parameter that is not a Python identifier is passed as
    `**{"its-name": ...}`."""
    types = typed.schema(schema, name)
    declared: Mapping[str, Any] = schema.get("properties") or {}
    required = schema.get("required", ())
    additional = schema.get("additionalProperties", "unevaluatedProperties" not in schema)
    for field in sorted(declared, key=lambda field: (field not in required, field)):
        kind = types.of(declared[field], camel(field))
        if is_field(field):
            yield f"{field}: {text_of(kind)}{_default(declared[field], kind, field in required)}"
        else:
            additional = True
    if additional is not False or any(word in schema for word in COMPOSING):
        yield "**others: Any"


def _default(schema: Any, kind: Parts, required: bool) -> str:
    if required:
        return ""
    default = schema.get("default", MASK) if isinstance(schema, Mapping) else MASK
    return f" = {literal(default)}" if default != MASK and fits(default, kind) else " = _OMITTED"


def _function(name: str, parameters: list[str], result: str) -> str:
    if parameters and not parameters[0].startswith("**"):
        parameters = ["*", *parameters]
    line = f"def {name}({', '.join(parameters)}) -> {result}:"
    if len(line) > WIDEST:
        line = "\n".join(
            [f"def {name}(", *(f"    {parameter}," for parameter in parameters), f") -> {result}:"]
        )
    return f"{line}\n    raise NotImplementedError"


def _member(ref: str, function: str, definition: Mapping[str, Any]) -> str:
    name = ref.partition(".")[2]
    member = f"    {name}{'_' * iskeyword(name)}: Final = ActionRef({literal(ref)}, like={function})"
    lines = str(definition.get("description") or "").strip().splitlines()
    return member + (f'\n    """{literal(lines[0])[1:-1]}"""' if lines else "")


def _plain(pack: str) -> str:
    """Return a class name for a pack that hides no name used in types."""
    return f"{pack}_" if iskeyword(pack) or hides_a_type(pack) else pack
