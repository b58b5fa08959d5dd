"""Structures that contain expressions, such as parameters. A structure is compiled once and rendered many times."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from penstock.errors import ExpressionError
from penstock.language.expressions.budget import budget
from penstock.language.expressions.expression import Expression, expression
from penstock.language.expressions.names import NamesUsed

Render = Callable[[Mapping[str, Any]], Any]


def compile_template(template: Any) -> Render:
    """Return a function that takes a namespace and returns `template`, with its expressions replaced by their values.

    Texts, and the keys and items of dicts and lists, may have `{{ }}` and `{% %}` in them. Any other value is kept.
    Each call makes new dicts and lists, but values taken from the namespace are not copied. Raises ExpressionError for
    a malformed expression, and the function raises it for one that fails, with its place in the structure (`at
    customer.id`). All expressions of one call share one budget.
    """
    render = _compile(template, ())
    if render is None:
        return _copier(template)

    def within_budget(namespace: Mapping[str, Any]) -> Any:
        with budget():
            return render(namespace)

    return within_budget


def render(template: Any, namespace: Mapping[str, Any]) -> Any:
    """Return `template` with its expressions replaced. To render it often, compile it once with `compile_template`."""
    return compile_template(template)(namespace)


def names_used(template: Any) -> NamesUsed:
    """Return the names that all expressions of `template` read. Raises ExpressionError if one is malformed."""
    if isinstance(template, str):
        return expression(template).names if _has_expression(template) else NamesUsed()
    used = NamesUsed()
    if isinstance(template, Mapping):
        for key, value in template.items():
            used |= names_used(key) | names_used(value)
    elif isinstance(template, (list, tuple)):
        for value in template:
            used |= names_used(value)
    return used


def _compile(template: Any, path: tuple[str, ...]) -> Render | None:
    """Compile the template, or return None if there is nothing to render."""
    if isinstance(template, str):
        return _text(template, path) if _has_expression(template) else None
    if isinstance(template, Mapping):
        return _mapping(template, path)
    if isinstance(template, (list, tuple)):
        return _list(template, path)
    return None


def _has_expression(text: str) -> bool:
    return "{{" in text or "{%" in text or "{#" in text


def _text(text: str, path: tuple[str, ...]) -> Render:
    try:
        compiled: Expression = expression(text)
    except ExpressionError as error:
        raise _placed(error, path) from None

    def render(namespace: Mapping[str, Any]) -> Any:
        try:
            return compiled.value(namespace)
        except ExpressionError as error:
            raise _placed(error, path) from None

    return render


def _placed(error: ExpressionError, path: tuple[str, ...]) -> ExpressionError:
    return ExpressionError(f"`{'.'.join(path)}` = {error.message}", hint=error.hint) if path else error


def _copier(constant: Any) -> Render:
    """Return a function that returns `constant` with new dicts and lists each time, as the caller may change them."""
    if isinstance(constant, Mapping):
        if any(isinstance(value, (Mapping, list, tuple)) for value in constant.values()):
            parts = [(key, _copier(value)) for key, value in constant.items()]
            return lambda namespace: {key: part(namespace) for key, part in parts}
        entries = dict(constant)
        return lambda namespace: entries.copy()
    if isinstance(constant, (list, tuple)):
        if any(isinstance(value, (Mapping, list, tuple)) for value in constant):
            items = [_copier(value) for value in constant]
            return lambda namespace: [item(namespace) for item in items]
        values = list(constant)
        return lambda namespace: values.copy()
    return lambda namespace: constant


def _list(template: list[Any] | tuple[Any, ...], path: tuple[str, ...]) -> Render | None:
    compiled = [_compile(value, (*path, str(n))) for n, value in enumerate(template)]
    if not any(compiled):
        return None
    items = [render or _copier(value) for render, value in zip(compiled, template, strict=True)]
    return lambda namespace: [item(namespace) for item in items]


def _mapping(template: Mapping[Any, Any], path: tuple[str, ...]) -> Render | None:
    keys = {key: _compile(key, (*path, str(key))) for key in template}
    values = {key: _compile(value, (*path, str(key))) for key, value in template.items()}
    if not any(keys.values()) and not any(values.values()):
        return None
    parts = [(key, values[key] or _copier(value)) for key, value in template.items()]
    if not any(keys.values()):
        return lambda namespace: {key: part(namespace) for key, part in parts}

    def render(namespace: Mapping[str, Any]) -> dict[Any, Any]:
        rendered: dict[Any, Any] = {}
        for key, part in parts:
            name_of = keys[key]
            name = name_of(namespace) if name_of else key
            if name_of and not isinstance(name, str):
                raise _placed(
                    ExpressionError(
                        f"The value of the key `{key}` has the type {type(name).__name__}, and must be text."
                    ),
                    path,
                )
            if name in rendered:
                raise _placed(ExpressionError(f"Two keys of the template are {name!r}."), path)
            rendered[name] = part(namespace)
        return rendered

    return render
