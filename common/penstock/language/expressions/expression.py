"""Templates and conditions, each parsed once when it is defined and evaluated many times."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, NoReturn

from jinja2 import TemplateError, Undefined, nodes
from jinja2.environment import Template
from jinja2.exceptions import SecurityError, TemplateSyntaxError
from jinja2.parser import Parser

from penstock.errors import ExpressionError, PenstockError
from penstock.language.expressions.budget import MAX_SOURCE, Refused, budget, spend_on
from penstock.language.expressions.environment import SANDBOX, Position, Scope
from penstock.language.expressions.functions import GLOBALS
from penstock.language.expressions.missing import MissingName, readable
from penstock.language.expressions.names import NamesUsed, names_in
from penstock.language.expressions.permitted_syntax import Guards, check
from penstock.language.expressions.secret_text import check_secrets
from penstock.language.expressions.text import concatenate

_EXAMPLE = "An expression looks like `payload.amount > 100`; inside a text it is written in {{ }}."
_SHOWN = 200
_PLAIN = frozenset({str, int, float, bool, type(None)})
_HABITS = {
    "===": "Write `==` to compare.",
    "&&": "Write `and`.",
    "||": "Write `or`.",
    "?": "Write `a if condition else b`, or `x | default(y)`.",
    "!": "Write `not x`, or `!=` to compare.",
    "=": "Write `==` to compare.",
    "&": "Write `and`.",
}


class Expression:
    """A text with `{{ }}`. A lone `{{ x }}` evaluates to the value of x, of any type. Within other text it becomes
    text.

    `names` are the names that it reads. `json_type` is the JSON type of all its values, or None if that is not known before.
    Raises ExpressionError, with line and column, if it is malformed.
    """

    __slots__ = ("_run", "json_type", "names", "source")

    def __init__(self, source: str) -> None:
        self.source = source
        tree = _parse(source, _template_of)
        self.json_type = _json_type(_lone_value(tree))
        self._run, self.names = _compile(source, tree)

    def __call__(self, namespace: Mapping[str, Any]) -> Any:
        """Return the value. Raises ExpressionError if the evaluation fails, uses an undefined name, or costs too much."""
        with budget():
            return self.value(namespace)

    def value(self, namespace: Mapping[str, Any]) -> Any:
        """Return the value, at the cost of the budget that is already open."""
        try:
            return self._run(namespace)
        except Exception as error:
            _explain(error, self.source, namespace)


class Condition:
    """An expression that is true or false, with or without `{{ }}` around it: `parameters.amount > 100`.

    Truth is as in Python: an empty value, zero and none are false, and any non-empty text is true.
    """

    __slots__ = ("_run", "names", "source")

    def __init__(self, source: str) -> None:
        self.source = source
        tree = _parse(source, _condition_of)
        self._run, self.names = _compile(source, tree)

    def __call__(self, namespace: Mapping[str, Any]) -> bool:
        """Return whether the condition holds. Raises ExpressionError as Expression does."""
        with budget():
            try:
                return bool(self._run(namespace))
            except Exception as error:
                _explain(error, self.source, namespace)


@lru_cache(maxsize=2048)
def expression(source: str) -> Expression:
    """Return the Expression of `source`, compiled once."""
    return Expression(source)


@lru_cache(maxsize=2048)
def _condition(source: str) -> Condition:
    return Condition(source)


def condition(source: str | bool) -> Condition:
    """Return the Condition of `source`, compiled once. True and False are accepted too, as YAML has them."""
    return _condition(str(source).lower() if isinstance(source, bool) else source)


def _template_of(source: str) -> nodes.Template:
    tree = Parser(SANDBOX, source).parse()
    match tree.body:
        case [nodes.Output(nodes=[first, nodes.TemplateData(data="\n")])]:
            # A YAML text block ends with a newline that its author did not mean. The newline must not turn the value
            # into text.
            tree.body = [nodes.Output([first], lineno=1)]
    return tree


def _condition_of(source: str) -> nodes.Template:
    if source.lstrip().startswith(("{{", "{%", "{#")):
        tree = Parser(SANDBOX, source.strip()).parse()
        if _lone_value(tree) is None:
            raise TemplateSyntaxError("a condition is one expression", Position.at(source, 0))
        return tree
    parser = Parser(SANDBOX, source, state="variable")
    value = parser.parse_expression()
    if not parser.stream.eos:
        token = parser.stream.current
        raise TemplateSyntaxError(f"unexpected {token.value!r}", token.lineno)
    return nodes.Template([nodes.Output([value], lineno=1)], lineno=1)


def _lone_value(tree: nodes.Template) -> nodes.Expr | None:
    """Return the expression of a template that is one `{{ }}` and nothing else, or None."""
    if len(tree.body) == 1 and isinstance(tree.body[0], nodes.Output) and len(tree.body[0].nodes) == 1:
        only = tree.body[0].nodes[0]
        return None if isinstance(only, nodes.TemplateData) else only
    return None


def _json_type(value: nodes.Expr | None) -> str | None:
    """Return the JSON type of every value of an expression, or None if it is not known. Without a lone expression the
    template makes text."""
    match value:
        case None | nodes.Concat():
            return "string"
        case nodes.Dict():
            return "object"
        case nodes.List() | nodes.Tuple():
            return "array"
        case nodes.Compare() | nodes.Not() | nodes.Test():
            return "boolean"
        case _:
            return None


def _parse(source: str, parse: Callable[[str], nodes.Template]) -> nodes.Template:
    if len(source) > MAX_SOURCE:
        raise ExpressionError(
            f"{_shown(source)} is longer than {MAX_SOURCE:,} characters.",
            hint="Pass long texts as a parameter, and refer to them.",
        )
    try:
        tree = parse(source)
        check(tree)
        check_secrets(tree)
    except TemplateSyntaxError as error:
        line, column = int(error.lineno or 1), getattr(error.lineno, "column", 1)
        hint = getattr(error, "hint", None) or _habit(source, line, column) or _EXAMPLE
        where = f"line {line}, column {column}"
        message = str(error.message).rstrip(".")
        raise ExpressionError(f"{_shown(source)}, {where}: {message}.", hint=hint) from None
    except (RecursionError, ValueError) as error:
        why = "it nests too deeply" if isinstance(error, RecursionError) else "a number in it is too long"
        raise ExpressionError(f"{_shown(source)}: {why}.", hint="Split it into several values.") from None
    return tree


def _compile(source: str, tree: nodes.Template) -> tuple[Callable[[Mapping[str, Any]], Any], NamesUsed]:
    names = names_in(tree, GLOBALS)
    lone = _lone_value(tree)
    picked = lone is not None and all(
        isinstance(node, (nodes.Name, nodes.Getattr, nodes.Getitem, nodes.Const))
        for node in (lone, *lone.find_all(nodes.Node))
    )
    Guards().visit(tree)
    tree.set_environment(SANDBOX)
    try:
        code = SANDBOX.compile(tree)
    except (SyntaxError, RecursionError, MemoryError):  # Python's compiler has limits of its own
        raise ExpressionError(f"{_shown(source)}: it nests too deeply.", hint="Split it up.") from None
    root: Any = Template.from_code(SANDBOX, code, {}).root_render_func
    if picked:  # a look-up makes no new value, so it costs nothing even for a large value
        return (lambda namespace: _value(next(root(Scope(namespace))))), names
    if lone:
        return (lambda namespace: _whole(next(root(Scope(namespace))))), names
    return (lambda namespace: concatenate(root(Scope(namespace)))), names


def _value(result: Any) -> Any:
    """Return `result`. Raises if it is undefined, a function, or cannot be read."""
    if type(result) not in _PLAIN:
        if isinstance(result, Undefined):
            bool(result)  # raises for an undefined value
        if type(result) is dict:  # a task: only its own entries can be unreadable
            for entry in result.values():
                readable(entry)
        if callable(result):
            raise Refused("its value is a function", "Call it: add `()`.")
    return result


def _whole(result: Any) -> Any:
    """Return `result` after charging its size. Raises if a part of it is undefined, or if it is too large."""
    if type(result) not in _PLAIN:
        spend_on(_value(result), passed_on=True)
    return result


def _explain(error: Exception, source: str, namespace: Mapping[str, Any]) -> NoReturn:
    """Raise the ExpressionError that explains `error`. The explanation must not show values, since some are secret."""
    hint = None
    if isinstance(error, MissingName):
        message, hint = error.explain(source, namespace, GLOBALS)
    elif isinstance(error, Refused):
        message, hint = str(error), error.hint
    elif isinstance(error, PenstockError):  # raised by a function of the namespace
        message, hint = error.message, error.hint
    elif isinstance(error, (TypeError, ZeroDivisionError, OverflowError, SecurityError, TemplateError)):
        message = str(error)  # this text has names of types and filters, not values
    elif isinstance(error, RecursionError):
        message = "a value in it nests too deeply"
    else:
        message = f"it failed with {type(error).__name__}"
    raise ExpressionError(f"{_shown(source)}: {message.rstrip('.')}.", hint=hint) from None


def _habit(source: str, line: int, column: int) -> str | None:
    """Return a hint if the operator at this place is spelled as in another language, or None."""
    tail = "".join(source.split("\n")[line - 1 : line])[max(0, column - 2) :]
    for symbol, hint in _HABITS.items():
        if symbol in tail[: len(symbol) + 1]:
            return hint
    return None


def _shown(source: str) -> str:
    return f"`{source if len(source) <= _SHOWN else source[:_SHOWN] + '...'}`"
