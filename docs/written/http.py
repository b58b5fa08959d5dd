"""docs/reference/http.md: every route of the HTTP API, as its own description has it."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import cast

from docs.written.fields import cell
from penstock.settings import Settings
from penstock_api.app import make_app
from penstock_api.backend import Backend
from penstock_api.requests.description import (
    Field,
    Operation,
    document_of,
    models_of,
    sentences_of,
    subjects_of,
)

Linked = Callable[[str], str]
"""Names of models as links to their headings."""
HEAD = """# HTTP routes

This page is written by `docs/written` from the description that the API itself serves: as OpenAPI 3.1 at `/api/v1/openapi.json`, and as
a page at `/docs`. [HTTP API](../api.md) describes the rules that apply to all routes.
"""
PARAMETERS = "| parameter | in | takes | |\n|---|---|---|---|\n"
FIELDS = "| field | is | |\n|---|---|---|\n"


def page() -> str:
    backend = cast(Backend, SimpleNamespace(settings=Settings()))  # nobody asks this app for anything
    document = document_of(make_app(backend))
    models, sentences = models_of(document), sentences_of(document)
    linked = partial(re.sub, rf"\b({'|'.join(models)})\b", lambda found: f"[{found[0]}](#{found[0].lower()})")
    parts = [HEAD]
    for subject, operations in subjects_of(document).items():
        parts += [f"\n## {subject.capitalize()}\n", *(_operation(one, linked) for one in operations)]
    parts.append("\n## Bodies and answers\n")
    parts += [_model(name, sentences[name], fields, linked) for name, fields in models.items()]
    return "".join(parts)


def _operation(one: Operation, linked: Linked) -> str:
    needs = f"Needs the scope `{one.scope}`. " if one.scope else ""
    body = f"Its body: {linked(one.body)}. " if one.body else ""
    answers = ", ".join(f"{status} {linked(kind)}".strip() for status, kind in one.answers)
    rows = "".join(map(_parameter, one.parameters))
    return (
        f"\n### `{one.method.upper()} {one.path}`\n\n{' '.join(one.says.split())}\n\n"
        f"{needs}{body}Answers: {answers}.\n" + (f"\n{PARAMETERS}{rows}" if rows else "")
    )


def _parameter(one: Field) -> str:
    return f"| {_name(one)} | {one.where} | {one.type.removesuffix(' or null')} | {cell(one.says)} |\n"


def _model(name: str, sentence: str, fields: list[Field], linked: Linked) -> str:
    rows = "".join(f"| {_name(one)} | {linked(cell(one.type))} | {cell(one.says)} |\n" for one in fields)
    return f"\n### {name}\n\n" + (f"{sentence}\n\n" if sentence else "") + f"{FIELDS}{rows}"


def _name(field: Field) -> str:
    return f"`{field.name}`, required" if field.required else f"`{field.name}`"
