"""The JSON Schemas of `editor_schemas` as files of the package, so that no reader waits for a model: an editor that is
given the file, the API, a new project. `docs/written` writes them, and a test sees that they say what the models say."""

from __future__ import annotations

from importlib.resources import files

KINDS = ("pack", "workflow")


def file_name(kind: str) -> str:
    """Return the file name of a schema, in the package, over HTTP and in a new project."""
    return f"{kind}.schema.json"


def shipped(kind: str) -> str:
    """The JSON Schema of one of KINDS, as text."""
    return (files("penstock.language") / "yaml_schemas" / file_name(kind)).read_text()
