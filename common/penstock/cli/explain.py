"""The command `penstock explain`: the meaning, the cause and the remedy of an error, from texts that are installed
with Penstock."""

from __future__ import annotations

import inspect
import re
from typing import Annotated

import typer

from penstock import errors
from penstock.cli.explain_texts import TEXTS
from penstock.cli.output import Json, json_line, out
from penstock.cli.reported_errors import REPORTED
from penstock.errors import NotFound, PenstockError

_LINK = re.compile(r"\[([^]]+)\]\([^)]+\)")
"""A link to a page, relative to the page of the error."""


def explain(
    error: Annotated[
        str,
        typer.Argument(
            help="The name of an error, such as NotFound, or the type of a failure, such as HttpStatus."
        ),
    ],
    json: Json = False,
) -> None:
    """Explain the meaning of an error and its remedy."""
    from penstock.language.terms.options import did_you_mean

    error_classes = {name: value for name, value in vars(errors).items() if _is_error(value)}
    if error not in error_classes and error in REPORTED:
        _explain_reported(error, json)
        return
    if error not in error_classes:
        raise NotFound(
            f"there is no error {error!r} of Penstock",
            hint=did_you_mean(error, {*error_classes, *REPORTED})
            or "It is probably a class in the code of the action: see `penstock show ID`.",
        )
    kind = error_classes[error]
    meaning = " ".join(inspect.cleandoc(kind.__doc__ or "").split())
    text = TEXTS[error]
    why, do = (_LINK.sub(r'"\1" (in the documentation)', part) for part in (text.why, text.do))
    if json:
        is_a = kind.__mro__[1].__name__
        json_line(
            {"error": error, "is_a": is_a, "meaning": meaning, "why": why, "do": do, "example": text.code}
        )
        return
    _print(f"{error}: {meaning}", "", f"Why: {why}", "", f"What to do: {do}")
    heading = "Code that raises the error:" if text.code else "It may say:"
    _print("", heading, "", *(f"    {line}".rstrip() for line in (text.code or text.message).splitlines()))


def _explain_reported(error: str, json: bool) -> None:
    """Print the text of a failure that has no class."""
    text = REPORTED[error]
    why, do = (_LINK.sub(r'"\1" (in the documentation)', part) for part in (text.why, text.do))
    if json:
        json_line(
            {"error": error, "is_a": None, "meaning": text.meaning, "why": why, "do": do, "example": ""}
        )
        return
    _print(f"{error}: {text.meaning}", "", f"Why: {why}", "", f"What to do: {do}")


def _print(*lines: str) -> None:
    for line in lines:
        out.print(line, markup=False, highlight=False, soft_wrap=True)


def _is_error(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, PenstockError)


def add_to(app: typer.Typer) -> None:
    app.command()(explain)
