"""Jinja2's sandbox, narrowed: no loader, no globals but ours, values instead of text, and every hook replaced."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from types import FunctionType
from typing import Any, NoReturn

from jinja2 import Undefined, nodes
from jinja2.compiler import CodeGenerator, Frame
from jinja2.exceptions import SecurityError, TemplateSyntaxError
from jinja2.lexer import Lexer
from jinja2.nativetypes import NativeCodeGenerator
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import missing

from penstock.language.expressions import lookup, operators
from penstock.language.expressions.budget import Refused
from penstock.language.expressions.functions import FILTERS, GLOBALS, TESTS
from penstock.language.expressions.missing import Missing, readable


class Position(int):
    """A line number that knows its column, both from 1. Jinja carries it from token to node to error."""

    column: int

    @classmethod
    def at(cls, source: str, offset: int) -> Position:
        position = cls(source.count("\n", 0, offset) + 1)
        position.column = offset - source.rfind("\n", 0, offset)
        return position


class PositionedLexer(Lexer):
    """Jinja's lexer with the line and the column in its tokens and errors."""

    def tokeniter(
        self, source: str, name: str | None, filename: str | None = None, state: str | None = None
    ) -> Iterator[tuple[int, str, str]]:
        source = re.sub(r"\r\n?", "\n", source)  # normalize newlines as Jinja will
        offset = 0
        try:
            for _, token, value in super().tokeniter(source, name, filename, state):
                # Whitespace control may have dropped space before this token, so search for it.
                start = max(offset, source.find(value, offset))
                offset = start + len(value)
                yield Position.at(source, start), token, value
        except TemplateSyntaxError as error:
            while offset < len(source) and source[offset].isspace():
                offset += 1
            message = re.sub(r" at \d+$", "", error.message or "")
            raise TemplateSyntaxError(message, Position.at(source, offset)) from None


class ValueCodeGenerator(NativeCodeGenerator):
    """The code generator that compiles `{{ 1 }}` to the value 1. Only what stands outside the braces is text."""

    def _output_child_to_const(
        self, node: nodes.Expr, frame: Frame, finalize: CodeGenerator._FinalizeInfo
    ) -> Any:
        if not isinstance(node, nodes.TemplateData):
            raise nodes.Impossible
        return node.data


class Scope(Context):
    """The names that an expression sees: first its own, then the namespace, then our functions."""

    def __init__(self, namespace: Mapping[str, Any]) -> None:
        # Not super().__init__: attributes that all scopes share are on the class, which halves the cost.
        self.parent = namespace  # type: ignore[assignment]
        self.vars = {}
        self.exported_vars = set()

    def resolve_or_missing(self, key: str) -> Any:
        if key in self.vars:
            return self.vars[key]
        if key in self.parent:
            return readable(self.parent[key])
        return GLOBALS.get(key, missing)


_GUARDS: frozenset[Any] = frozenset(
    {operators.compare, operators.each, operators.key, operators.text, lookup.part}
)


class Sandbox(ImmutableSandboxedEnvironment):
    code_generator_class = ValueCodeGenerator
    intercepted_binops = frozenset(operators.BINARY)
    # functions that the rewritten syntax tree calls in place of Python's own operators
    compare = staticmethod(operators.compare)
    part = staticmethod(lookup.part)
    each = staticmethod(operators.each)
    key = staticmethod(operators.key)
    text = staticmethod(operators.text)

    def __init__(self) -> None:
        # Not optimized: the optimizer would run operators and filters while compiling, outside of any budget.
        super().__init__(undefined=Missing, optimized=False, keep_trailing_newline=True, cache_size=0)
        self.filters = dict(FILTERS)
        self.tests = dict(TESTS)
        self.globals = {}
        self.binop_table = dict(operators.BINARY)
        self._lexer = PositionedLexer(self)

    @property
    def lexer(self) -> Lexer:
        return self._lexer

    def getattr(self, obj: Any, attribute: str) -> Any:
        return lookup.member(obj, attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:
        return lookup.item(obj, argument)

    def call(__self, __context: Context, __obj: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(__obj, FunctionType) and __obj in _GUARDS:
            _defined(args)
            return __obj(*args)
        # Jinja passes the names set in a loop to a function in this way
        for name in ("_loop_vars", "_block_vars"):
            kwargs.pop(name, None)
        if isinstance(__obj, Undefined):
            _fail(__obj)
        if not callable(__obj):
            raise Refused(f"a {type(__obj).__name__} cannot be called")
        if not __self.is_safe_callable(__obj):
            raise SecurityError("this function may not be called here")
        _defined(args)
        _defined(kwargs.values())
        return __context.call(__obj, *args, **kwargs)


def _defined(values: Iterable[Any]) -> None:
    for value in values:
        if isinstance(value, Undefined):
            _fail(value)


def _fail(value: Undefined) -> NoReturn:
    value._fail_with_undefined_error()


SANDBOX = Sandbox()
Scope.environment = SANDBOX
Scope.eval_ctx = nodes.EvalContext(SANDBOX)
Scope.blocks = {}
Scope.name = None
