"""The reading of a pack's files, only from inside its folder, with bounds on size and number, and with line numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from penstock.language.terms.sources import Source, shown
from penstock.language.workflows import safe_yaml

FILES_CAP = 2_000
"""The maximum number of YAML files in a pack."""


def read_text(path: Path, folder: Path) -> str:
    """Return the text of a file of the pack in `folder`. Raises DefinitionError if the file cannot be read, is too
    large or is not UTF-8."""
    inside(path, folder, Source(str(path), 1))
    try:
        with path.open("rb") as file:
            data = file.read(safe_yaml.MAX_BYTES + 1)
    except OSError as error:
        raise Source(str(path), 1).wrong(f"it cannot be read: {error.strerror}") from None
    if len(data) > safe_yaml.MAX_BYTES:
        raise safe_yaml.too_large(shown(path))
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise Source(str(path), line).wrong("it is not UTF-8", "Save it as UTF-8.") from None


def read_yaml(path: Path, folder: Path) -> tuple[Any, Source]:
    """Return the content of a YAML file, and its source with the lines. Raises DefinitionError if the file cannot be
    read or is not YAML."""
    value, marks = safe_yaml.read(read_text(path, folder), shown(path))
    return value, Source(str(path), 1, {place: line for place, (line, _) in marks.items()})


def inside(path: Path, folder: Path, source: Source) -> Path:
    """Return `path` with symbolic links followed. Raises DefinitionError if it is not a file in the folder of the
    pack."""
    real = path.resolve()
    if not real.is_relative_to(folder.resolve()):
        raise source.wrong(
            f"{shown(path)} leads out of the pack's folder {shown(folder)}",
            "Copy what it leads to into the pack.",
        )
    if not real.is_file():
        raise source.wrong(f"{shown(path)} is not a file", f"The pack's folder is {shown(folder)}.")
    return real


def mapping(value: Any, label: str, source: Source) -> dict[str, Any]:
    """Return `value` if it is a mapping. None counts as an empty one. Raises DefinitionError for any other value."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise source.wrong(f"{label} is not a mapping", "Write key: value lines.")
    return value
