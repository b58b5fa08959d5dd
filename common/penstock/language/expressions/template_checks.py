"""The checks, at declaration, that templates and conditions parse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from pydantic import AfterValidator

from penstock.errors import ExpressionError
from penstock.language.expressions import compile_template, condition, names_used
from penstock.language.terms.options import Wrong


def _parses(parse: Callable[[Any], object]) -> AfterValidator:
    def check(written: Any) -> Any:
        if written is not None:
            try:
                parse(written)
            except ExpressionError as error:
                raise Wrong(error.message, error.hint) from None
        return written

    return AfterValidator(check)


Condition = Annotated[str, _parses(condition)]
"""A pydantic type: an expression such as `payload.amount > 100`."""
Templates = Annotated[dict[str, Any], _parses(compile_template)]
"""A pydantic type: names and values, in which texts may hold `{{ ... }}`."""


MAX_TITLE_TEMPLATE = 500
"""The maximum length of the template of a title, in characters."""


def _is_title(written: str | None) -> str | None:
    if written is None:
        return None
    if not 1 <= len(written) <= MAX_TITLE_TEMPLATE:
        raise Wrong(f"is not a text of 1 to {MAX_TITLE_TEMPLATE} characters", "Write a shorter title.")
    try:
        unknown = sorted(names_used(written).roots - {"parameters"})
    except ExpressionError as error:
        raise Wrong(error.message, error.hint) from None
    if unknown:
        raise Wrong(
            f"reads {unknown[0]}, but a title can read only parameters",
            "Write 'dunning of {{ parameters.customer }}'.",
        )
    return written


Title = Annotated[str | None, AfterValidator(_is_title)]
"""A pydantic type: a text with templates over `parameters`."""


def is_template(value: Any) -> bool:
    """Return whether a value contains an expression, so that it is only known when rendered."""
    if isinstance(value, str):
        return "{{" in value or "{%" in value
    if isinstance(value, dict):
        return any(map(is_template, value.values()))
    return isinstance(value, list | tuple) and any(map(is_template, value))
