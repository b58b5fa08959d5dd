"""The defaults of environment variables that a module reads: the value that counts where the variable is not set."""

from __future__ import annotations

import ast
import copy
from collections.abc import Mapping
from typing import Any

from penstock_import.celery_calls import NotLiteral, bound_names, called, forget, literal, root_name, walk

_READERS = frozenset({"config", "env", "get_float", "get_int", "get_str", "get_string", "getenv"})
_OF_ENV = frozenset({"float", "int", "str"})
_CASTS = {"float": float, "int": int, "str": str}


def with_defaults(
    node: ast.expr, constants: Mapping[str, ast.expr]
) -> tuple[ast.expr, dict[str, int | float | str]]:
    """Return a copy of an expression in which a read variable is replaced by its default, and the defaults by variable."""
    reader = _Defaults(constants)
    replaced = reader.visit(copy.deepcopy(node))
    assert isinstance(replaced, ast.expr)
    return replaced, reader.defaults


def with_defaults_of_schemes(tree: ast.Module) -> None:
    """Write the defaults that `env = environ.Env(EVERY=(int, 30))` gives the variables into the calls of `env` in a module."""
    schemes = [
        node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Call)
        and called(node.value) in ("Env", "FileAwareEnv")
        and [getattr(target, "id", "") for target in node.targets] == ["env"]
    ]
    if len(schemes) != 1 or bound_names(tree)["env"] != 1:
        return
    defaults = {
        word.arg: word.value.elts[1]
        for word in schemes[0].keywords
        if isinstance(word.value, ast.Tuple) and len(word.value.elts) == 2
    }
    for node in walk(tree):
        if (
            isinstance(node, ast.Call)
            and root_name(node.func) == "env"
            and len(node.args) == 1
            and not node.keywords
        ):
            default = defaults.get(str(getattr(node.args[0], "value", "")))
            if default is not None:
                node.keywords = [ast.keyword("default", copy.deepcopy(default))]
    forget(tree)


class _Defaults(ast.NodeTransformer):
    def __init__(self, constants: Mapping[str, ast.expr]) -> None:
        self._constants = constants
        self._written: set[int] = set()
        self._names: dict[int, str] = {}
        """The variable of each constant that replaces a call, by the constant."""
        self.defaults: dict[str, int | float | str] = {}

    def visit_Name(self, node: ast.Name) -> ast.expr:
        value = self._constants.get(node.id)
        if not isinstance(value, ast.Call):
            return node
        replaced = self.visit_Call(copy.deepcopy(value))
        if isinstance(replaced, ast.Constant) or not self.defaults:
            return replaced if isinstance(replaced, ast.Constant) else node
        try:  # as in max(5, int(getenv("PAUSE", 20)))
            return self._constant(node, lambda plain: plain, literal(replaced, self._constants)) or node
        except NotLiteral:
            return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        """Replace a member of a class that reads a variable: `Settings.EVERY`."""
        value = self._constants.get(ast.unparse(node))
        if not isinstance(value, ast.Call):
            return self.generic_visit(node)  # type: ignore[return-value]
        replaced = self.visit(copy.deepcopy(value))
        return replaced if isinstance(replaced, ast.Constant) else node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        """Replace `getenv("EVERY") or 30` by the value that counts where the variable is not set."""
        self.generic_visit(node)
        last = node.values[-1]
        if not isinstance(node.op, ast.Or) or not isinstance(last, ast.Constant):
            return node
        for value in node.values[:-1]:
            variable = self._names.get(id(value)) or _variable_without_default(value)
            if variable is None:
                return node
            if isinstance(value, ast.Constant) and value.value:
                return value
        constant = self._constant(node, lambda plain: plain, last.value)
        if constant is None:
            return node
        for value in node.values[:-1]:
            self.defaults[self._names.get(id(value)) or str(_variable_without_default(value))] = last.value  # type: ignore[assignment]
        return constant

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        cast = _CASTS.get(getattr(node.func, "id", ""))
        if cast is not None and len(node.args) == 1 and id(node.args[0]) in self._written:
            return self._constant(node, cast, getattr(node.args[0], "value", None)) or node
        words = {word.arg: word.value for word in node.keywords}
        supplied = dict(enumerate(node.args))
        name, default = words.get("name", supplied.get(0)), words.get("default", supplied.get(1))
        cast_name = words.get("cast", supplied.get(2))
        if cast_name is not None and getattr(cast_name, "id", "") not in _CASTS:
            return node
        if not _is_reader(node) or not isinstance(name, ast.Constant) or default is None:
            return node
        try:
            value = literal(default, self._constants)
        except NotLiteral:
            return node
        of_text = getattr(cast_name, "id", called(node) if root_name(node.func) == "env" else "")
        constant = self._constant(node, _CASTS.get(of_text, lambda plain: plain), value)
        if constant is None:
            return node
        self.defaults[str(name.value)] = value
        self._names[id(constant)] = str(name.value)
        return constant

    def _constant(self, node: ast.expr, cast: Any, value: Any) -> ast.Constant | None:
        try:
            result = cast(value)
        except (TypeError, ValueError):
            return None
        if isinstance(result, bool) or not isinstance(result, int | float | str):
            return None
        constant = ast.copy_location(ast.Constant(result), node)
        self._written.add(id(constant))
        return constant


def _variable_without_default(node: ast.expr) -> str | None:
    """Return the variable that a call of Python itself reads, if the call gives no default; None for any other call."""
    if not isinstance(node, ast.Call) or len(node.args) != 1 or node.keywords:
        return None
    is_plain = called(node) == "getenv" or ast.unparse(node.func).endswith("environ.get")
    return str(node.args[0].value) if is_plain and isinstance(node.args[0], ast.Constant) else None


def _is_reader(call: ast.Call) -> bool:
    text = ast.unparse(call.func)
    is_env = root_name(call.func) == "env" and called(call) in _OF_ENV
    return text.endswith("environ.get") or called(call) in _READERS or is_env
