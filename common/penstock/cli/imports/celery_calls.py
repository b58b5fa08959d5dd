"""The content of a Celery module, read from its source: decorated functions, calls and literals. None of it is run."""

from __future__ import annotations

import ast
from typing import Any


class NotLiteral(Exception):
    """A value that only running the module would tell."""


def literal(node: ast.expr) -> Any:
    """Raises NotLiteral."""
    try:
        return ast.literal_eval(node)
    except ValueError:
        raise NotLiteral(ast.unparse(node)) from None


def task_options(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.keyword] | None:
    """Return the options of a task's decorator; None for a function that is not a task."""
    for decorator in function.decorator_list:
        call = decorator if isinstance(decorator, ast.Call) else None
        named = call.func if call else decorator
        name = named.attr if isinstance(named, ast.Attribute) else getattr(named, "id", "")
        if name in ("task", "shared_task", "periodic_task"):
            return call.keywords if call else []
    return None


def seconds(node: ast.expr) -> float:
    """Return the seconds of a number or of a timedelta. Raises NotLiteral."""
    if isinstance(node, ast.Call) and _called(node) == "timedelta":
        units = {
            "weeks": 604800,
            "days": 86400,
            "hours": 3600,
            "minutes": 60,
            "seconds": 1,
            "milliseconds": 0.001,
        }
        if not node.args and all(keyword.arg in units for keyword in node.keywords):
            return float(sum(literal(keyword.value) * units[str(keyword.arg)] for keyword in node.keywords))
    value = literal(node)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise NotLiteral(ast.unparse(node))
    return value


def cron(node: ast.expr) -> str:
    """The five fields of `crontab(...)`. Raises NotLiteral."""
    if not isinstance(node, ast.Call) or _called(node) != "crontab" or node.args:
        raise NotLiteral(ast.unparse(node))
    fields = {str(keyword.arg): str(literal(keyword.value)).replace(" ", "") for keyword in node.keywords}
    order = ("minute", "hour", "day_of_month", "month_of_year", "day_of_week")
    if fields.keys() - set(order):
        raise NotLiteral(ast.unparse(node))
    return " ".join(fields.get(field, "*") for field in order)


def _called(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
