"""The JSON Schemas of `editor_schemas` as files of the package. An editor, the API or a new project gets them without
loading the models. `docs/written` writes the files, and a test compares them with the models."""

from __future__ import annotations

from importlib.resources import files

KINDS = ("pack", "workflow")


def file_name(kind: str) -> str:
    """Return the file name of a schema in the package, over HTTP and in a new project."""
    return f"{kind}.schema.json"


def shipped(kind: str) -> str:
    """Return the JSON Schema of one of KINDS, as text."""
    return (files("penstock.language") / "yaml_schemas" / file_name(kind)).read_text()
