"""A check of a pack's own file. StackStorm registers no pack with a part that it refuses."""

from __future__ import annotations

import re
from collections.abc import Iterator

from penstock_import.consumed import Node

PACK_REF = re.compile(r"[a-z0-9_]+")
"""The names that StackStorm accepts as the `ref` of a pack."""
_VERSION = re.compile(
    r"(?:0|[1-9]\d*)(?:\.(?:0|[1-9]\d*)){2}(?:-[\da-z-]+(?:\.[\da-z-]+)*)?(?:\+[\da-z-]+(?:\.[\da-z-]+)*)?"
)
_REQUIRED = ("name", "description", "version", "author")
_RESERVED = frozenset({"_global"})
_BY_HAND = "StackStorm refuses such a pack, with all that it holds, and Penstock does not: correct the file if it is used there."


def refusals(head: Node, folder: str) -> Iterator[tuple[int, str, str]]:
    """Yield the line, the subject and the advice for each part of pack.yaml for which StackStorm refuses the pack."""
    values = {key: child.peek() for key, child in head.items()}
    missing = [key for key in _REQUIRED if key not in values]
    if missing:
        yield 1, f"the pack has no {' and no '.join(f'`{key}`' for key in missing)}", _BY_HAND
    for key in _REQUIRED:
        is_number = key == "version" and isinstance(
            values.get(key), int | float
        )  # StackStorm makes it a text
        if key in values and not isinstance(values[key], str) and not is_number:
            yield head.line_of(key), f"the `{key}` of the pack is not a text", _BY_HAND
    version = values.get("version")
    if isinstance(version, str | int | float) and not _VERSION.fullmatch(str(version)):
        yield (
            head.line_of("version"),
            f"the version {version} of the pack, which is not of the form 1.0.0",
            _BY_HAND,
        )
    name = values.get("ref") or (folder if PACK_REF.fullmatch(folder) else values.get("name"))
    if not isinstance(name, str) or not PACK_REF.fullmatch(name) or name in _RESERVED:
        key = "ref" if values.get("ref") else "name"
        subject = f"the {key} of the pack, {values.get(key)}"
        if key == "name":
            subject = f"the pack has no `ref`, and neither its name {values.get('name')} nor its folder {folder} is one"
        advice = "StackStorm accepts only small letters, digits and _, and refuses the pack: write a `ref`, and import again."
        yield head.line_of(key), subject, advice
