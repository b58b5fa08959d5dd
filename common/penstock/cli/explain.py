"""`penstock explain`: what an error means, wherever Penstock is installed."""

from __future__ import annotations

import inspect
from typing import Annotated

import typer

from penstock import errors
from penstock.cli.output import Json, json_line, out
from penstock.errors import NotFound, PenstockError


def explain(
    error: Annotated[str, typer.Argument(help="The name of an error, such as NotFound.")], json: Json = False
) -> None:
    """What an error means and what to do."""
    from penstock.language.options import did_you_mean

    known = {name: one for name, one in vars(errors).items() if _is_error(one)}
    if error not in known:
        raise NotFound(f"there is no error {error!r}", hint=did_you_mean(error, known))
    kind = known[error]
    meaning = " ".join(inspect.cleandoc(kind.__doc__ or "").split())
    if json:
        json_line({"error": error, "is_a": kind.__mro__[1].__name__, "meaning": meaning})
        return
    out.print(f"{error}: {meaning}", markup=False, highlight=False, soft_wrap=True)
    page = f"reference/errors/{error}.md"
    out.print(f"An example is in the documentation, {page}.", markup=False, highlight=False, soft_wrap=True)


def _is_error(one: object) -> bool:
    return isinstance(one, type) and issubclass(one, PenstockError)


def add_to(app: typer.Typer) -> None:
    app.command()(explain)
