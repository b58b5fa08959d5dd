"""docs/configuration.md: every setting, with what it takes, its default, and what the code says of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

from annotated_types import Ge, Gt, Le
from pydantic.fields import FieldInfo

from docs.written.fields import attribute_docs, cell, takes
from docs.written.settings_texts import FOOT, HEAD, SAID, SECTIONS, SEE
from penstock.settings import Settings

NAME = "host and process id"
"""The default of `name`, which differs from process to process."""


def page() -> str:
    return HEAD + "".join(map(_section, SECTIONS)) + FOOT


def _section(heading: str) -> str:
    said = f"{SAID[heading]}\n\n" if heading in SAID else ""
    rows = "".join(map(_row, SECTIONS[heading]))
    return f"## {heading}\n\n{said}| variable | takes | default | what it is |\n|---|---|---|---|\n{rows}\n"


def _row(name: str) -> str:
    field = Settings.model_fields[name]
    docs: Mapping[str, str] = attribute_docs(Settings)
    see = f" See {SEE[name]}." if name in SEE else ""
    cells = (f"`PENSTOCK_{name.upper()}`", _takes(name, field), default_of(name, field), docs[name] + see)
    return f"| {' | '.join(map(cell, cells))} |\n"


def _takes(name: str, field: FieldInfo) -> str:
    kind = Settings.__annotations__[name].removesuffix(" | None")
    if kind.startswith("dict"):
        return "JSON"
    words = "seconds" if kind == "Seconds" else takes(_plain(field.annotation)).replace(", `", " or `")
    return words + _bounds(field.metadata)


def _plain(hint: Any) -> Any:
    """Secrets, paths and identifiers are text."""
    inside = [one for one in get_args(hint) if isinstance(one, type)] or [hint]
    return str if inside[0].__name__ in ("SecretStr", "Path") else hint


def _bounds(metadata: list[Any]) -> str:
    least = next((one.ge for one in metadata if isinstance(one, Ge)), None)
    most = next((one.le for one in metadata if isinstance(one, Le)), None)
    if least is not None and most is not None:
        return f", {least:,} to {most:,}"
    if least:
        return f", {least:,} or more"
    return ", above 0" if any(isinstance(one, Gt) for one in metadata) else ""


def default_of(name: str, field: FieldInfo) -> str:
    if name == "name":
        return NAME
    value = field.get_default(call_default_factory=True)
    if value is None or value == "":
        return "unset"
    return f"`{value:g}`" if isinstance(value, float) else f"`{str(value).lower()}`"
