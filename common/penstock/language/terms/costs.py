"""The cost of an execution under a limit: a number, or a sum of parameters with factors. The database adds up the terms at
admission.

    cost=2
    cost="{{ parameters.tokens }}"
    cost="{{ parameters.prompt_tokens + 1.3 * parameters.max_tokens | default(1000) }}"
"""

from __future__ import annotations

import math
import re
from decimal import Decimal
from typing import Any

from jinja2 import Environment, TemplateSyntaxError, nodes

from penstock.language.terms.options import Wrong

Term = tuple[float | int, str | None, float | int | None]
"""A factor, the path of a parameter (None: the factor alone), and the default of a missing parameter."""

MAX_TERMS = 20
_HINT = 'Write a number, or "{{ parameters.tokens }}", or a sum such as "{{ parameters.tokens + 2 * parameters.images }}".'
_NAME = re.compile(r"[A-Za-z0-9_-]+")
_FIGURE = re.compile(r"\d{1,15}(\.\d{1,9})?")
_PARSER = Environment(autoescape=False)


def cost_terms(cost: float | int | str) -> list[Term]:
    """Return the terms of a cost as it is written. Raises Wrong if it is neither a number nor a sum of parameters, or
    has too many terms."""
    if not isinstance(cost, str):
        return [(_not_negative(cost), None, None)]
    if _FIGURE.fullmatch(cost.strip()):
        return [(_not_negative(float(cost) if "." in cost else int(cost)), None, None)]
    try:
        template = _PARSER.parse(cost.strip())
    except TemplateSyntaxError as error:
        raise Wrong(f"is not a cost: {error.message}", _HINT) from None
    match template.body:
        case [nodes.Output(nodes=[nodes.Expr() as expression])] if not isinstance(
            expression, nodes.TemplateData
        ):
            terms = _terms(expression)
        case _:
            raise Wrong(f"is not a cost: {cost!r}", _HINT)
    if len(terms) > MAX_TERMS:
        raise Wrong(
            f"has more than {MAX_TERMS} terms", "Add the parts up before, and pass the sum as one parameter."
        )
    return terms


def parameters_of(cost: float | int | str) -> list[str]:
    """Return the paths of the parameters in a cost. Raises Wrong for a cost that is not valid."""
    return [path for _, path, _ in cost_terms(cost) if path is not None]


def _terms(node: nodes.Expr) -> list[Term]:
    match node:
        case nodes.Add(left=left, right=right):
            return _terms(left) + _terms(right)
        case nodes.Sub(left=left, right=right):
            return _terms(left) + _times(-1, _terms(right))
        case nodes.Mul(left=nodes.Const(value=factor), right=right):
            return _times(_number(factor), _terms(right))
        case nodes.Mul(left=left, right=nodes.Const(value=factor)):
            return _times(_number(factor), _terms(left))
        case nodes.Div(left=left, right=nodes.Const(value=divisor)) if _number(divisor):
            return _times(float(1 / Decimal(str(divisor))), _terms(left))
        case nodes.Neg(node=inner):
            return _times(-1, _terms(inner))
        case nodes.Const(value=value):
            return [(_number(value), None, None)]
        case nodes.Filter(name="default", node=inner, args=[nodes.Const(value=value)]) if inner is not None:
            return [(1, _path(inner), _number(value))]
        case nodes.Getattr() | nodes.Getitem():
            return [(1, _path(node), None)]
    raise Wrong("is not a sum of parameters", _HINT)


def _times(factor: float | int, terms: list[Term]) -> list[Term]:
    return [(_product(factor, own), path, default) for own, path, default in terms]


def _product(first: float | int, second: float | int) -> float | int:
    product = Decimal(str(first)) * Decimal(str(second))
    return _number(int(product) if product == product.to_integral_value() else float(product))


def _path(node: nodes.Node) -> str:
    match node:
        case nodes.Getattr(node=nodes.Name(name="parameters"), attr=name):
            return name
        case nodes.Getitem(node=nodes.Name(name="parameters"), arg=nodes.Const(value=str(name))) if (
            _NAME.fullmatch(name)
        ):
            return name
        case nodes.Getattr(node=inner, attr=name):
            return f"{_path(inner)}.{name}"
        case nodes.Getitem(node=inner, arg=nodes.Const(value=str(name))) if _NAME.fullmatch(name):
            return f"{_path(inner)}.{name}"
    raise Wrong("is not the path of a parameter", _HINT)


def _not_negative(value: Any) -> float | int:
    if _number(value) < 0:
        raise Wrong("is negative", _HINT)
    return _number(value)


def _number(value: Any) -> float | int:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Wrong(f"is not a number: {value!r}", _HINT)
    if not math.isfinite(value) or abs(value) > 1e15:
        raise Wrong("is beyond 10^15", "Choose a larger unit.")
    return value
