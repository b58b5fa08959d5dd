"""The verdicts of two libraries for JSON Schema, jsonschema and jsonschema-rs, which share no code with ours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jsonschema_rs
from jsonschema import Draft202012Validator, FormatChecker

from penstock.errors import PenstockError
from penstock.language.schemas import formats
from penstock.language.schemas.budget import Budget
from penstock.language.schemas.faults import faults
from penstock.language.schemas.validator import Validator

UNASKED = {"python": "unevaluatedItems", "rust": "multipleOf"}
"""A keyword that a library is not asked about, where anything in the document has it. jsonschema takes an item for unevaluated
though `contains` has looked at it. jsonschema-rs takes the decimal text of a double, and not its exact value."""


def _checker() -> FormatChecker:
    checker = FormatChecker(formats=())
    for name in formats.FORMATS:
        checker.checks(name)(lambda value, name=name: not isinstance(value, str) or formats.fits(name, value))
    return checker


_FORMATS = _checker()
_RUST_FORMATS = {
    name: lambda text, name=name: formats.fits(name, text) for name in (*formats.FORMATS, "email")
}


class Verdicts:
    """The verdicts of the libraries on values of one schema document."""

    def __init__(self, document: Any) -> None:
        words = _words(document)
        self._python = (
            None if UNASKED["python"] in words else Draft202012Validator(document, format_checker=_FORMATS)
        )
        self._rust = (
            None
            if UNASKED["rust"] in words
            else jsonschema_rs.Draft202012Validator(document, validate_formats=True, formats=_RUST_FORMATS)
        )

    def of(self, value: Any) -> dict[str, bool]:
        verdicts = {}
        if self._python is not None:
            verdicts["jsonschema"] = bool(self._python.is_valid(value))
        if self._rust is not None:
            verdicts["jsonschema-rs"] = bool(self._rust.is_valid(value))
        return verdicts


def disagreements(document: Mapping[str, Any], values: list[Any]) -> list[str]:
    """Return where our verdict is not that of a library, or where the faults that we name are not those of the verdict."""
    validator, libraries = Validator(document), Verdicts(document)
    texts = []
    for value in values:
        try:
            verdict = validator.fits(value, Budget())
        except PenstockError as error:
            texts.append(f"{error} for {value!r} by {document!r}")
            continue
        for library, other in libraries.of(value).items():
            if other is not verdict:
                texts.append(f"{library} says {other} to {value!r} by {document!r}")
        if bool(list(faults(validator, value, Budget()))) is verdict:
            texts.append(f"fits: {verdict}, and yet the faults differ: {value!r} by {document!r}")
    return texts


def _words(node: Any) -> set[str]:
    if isinstance(node, dict):
        return set(node).union(*map(_words, node.values()))
    return set().union(*map(_words, node)) if isinstance(node, list) else set()
