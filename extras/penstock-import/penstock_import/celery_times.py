"""The conversion of Celery's crontabs and intervals to the times of our schedules."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from typing import Any

from penstock_import.celery_calls import NotLiteral, called, literal, seconds
from penstock_import.cron_times import CronTimes, schedule_of
from penstock_import.wanted_text import NotMapped

_FIELDS: dict[str, tuple[int, int, tuple[str, ...]]] = {
    "minute": (0, 59, ()),
    "hour": (0, 23, ()),
    "day_of_month": (1, 31, ()),
    "month_of_year": (
        1,
        12,
        ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"),
    ),
    "day_of_week": (0, 6, ("sun", "mon", "tue", "wed", "thu", "fri", "sat")),
}
_ORDERS = (
    ("minute", "hour", "day_of_week", "day_of_month", "month_of_year"),
    ("minute", "hour", "day_of_month", "month_of_year", "day_of_week"),
)
"""The orders of a crontab's arguments in versions of Celery."""
_TERM = re.compile(r"(?:\*|(?P<first>\w+)(?:-(?P<last>\w+))?)(?:/(?P<step>\w+))?")


def times(node: ast.expr, constants: Mapping[str, ast.expr] | None = None) -> dict[str, Any]:
    """Return `every`, `cron` or `rrule` of a schedule. A name may refer to a constant. Raises NotLiteral for a value that
    is only known at run time, and NotMapped for one without an equivalent."""
    if isinstance(node, ast.Call) and called(node) == "crontab":
        return schedule_of(crontab(node, constants))
    if isinstance(node, ast.Call) and called(node) == "from_string":
        return schedule_of(crontab(_of_text(node), constants))
    if isinstance(node, ast.Call) and called(node) in ("schedule", "maybe_schedule"):
        supplied = dict(zip(("run_every", "relative"), node.args, strict=False))
        supplied |= {word.arg or "**": word.value for word in node.keywords}
        if is_false(supplied.get("relative")):
            del supplied["relative"]
        if supplied.keys() == {"run_every"}:
            return times(supplied["run_every"], constants)
        raise NotMapped("options of an interval")
    every = seconds(node, constants)
    if every <= 0:
        raise NotMapped("an interval of no time")
    return {"every": every}


def _of_text(node: ast.Call) -> ast.Call:
    """Return `crontab(minute=...)` for `crontab.from_string("...")`. Raises NotLiteral if the text does not have five
    fields."""
    text = node.args[0] if len(node.args) == 1 and not node.keywords else None
    fields = text.value.split(" ") if isinstance(text, ast.Constant) and isinstance(text.value, str) else []
    is_crontab = isinstance(node.func, ast.Attribute) and ast.unparse(node.func.value).endswith("crontab")
    if len(fields) != 5 or not is_crontab:
        raise NotLiteral(ast.unparse(node))
    names = ("minute", "hour", "day_of_month", "month_of_year", "day_of_week")
    words = [ast.keyword(name, ast.Constant(value)) for name, value in zip(names, fields, strict=True)]
    return ast.Call(node.func.value, [], words) if isinstance(node.func, ast.Attribute) else node


def is_in_step(every: float, is_utc: bool) -> bool:
    """Return whether an interval that Celery aligns (`relative`) has the same instants as one in step with 1970. Celery
    cuts the next instant down to a whole minute, hour or day of its zone, the largest that fits in the interval."""
    unit = next((size for size in (86400, 3600, 60) if every >= size), None)
    return unit is None or (every % unit == 0 and (is_utc or unit == 60))


def is_true(node: ast.expr) -> bool:
    """Return whether an expression is the constant True."""
    return isinstance(node, ast.Constant) and node.value is True


def is_false(node: ast.expr | None) -> bool:
    """Return whether an expression is the constant False."""
    return isinstance(node, ast.Constant) and node.value is False


def crontab(node: ast.Call, constants: Mapping[str, ast.expr] | None = None) -> CronTimes:
    """Return the times of `crontab(...)`. Raises NotMapped for an argument without an equivalent in Penstock, and
    NotLiteral for a value that is only known when the module runs."""
    node = _with_fields(node, constants)
    if len(node.args) > 2:
        first, second = (_by_keyword(node, names) for names in _ORDERS)
        if (both := crontab(first, constants)) != crontab(second, constants):
            raise NotMapped("a crontab with days by position, whose order differs between versions of Celery")
        return both
    supplied: dict[str, ast.expr] = dict(zip(("minute", "hour"), node.args, strict=False))
    for keyword in node.keywords:
        if keyword.arg is None:
            raise NotMapped(f"**{ast.unparse(keyword.value)} of a crontab")
        if keyword.arg not in _FIELDS or keyword.arg in supplied:
            raise NotMapped(f"{keyword.arg} of a crontab")
        supplied[keyword.arg] = keyword.value
    fields = {
        name: crontab_field(name, literal(supplied[name], constants) if name in supplied else "*")
        for name in _FIELDS
    }
    return CronTimes(
        minute=fields["minute"],
        hour=fields["hour"],
        day=fields["day_of_month"],
        month=fields["month_of_year"],
        weekday=fields["day_of_week"],
    )


def _with_fields(node: ast.Call, constants: Mapping[str, ast.expr] | None) -> ast.Call:
    """Return `crontab("5", "4")` for `crontab(*"5 4".split())`."""
    args: list[ast.expr] = []
    for part in node.args:
        match part:
            case ast.Starred(
                value=ast.Call(func=ast.Attribute(value=text, attr="split"), args=[], keywords=[])
            ):
                fields = literal(text, constants)
                if not isinstance(fields, str):
                    raise NotLiteral(ast.unparse(part))
                args += [ast.copy_location(ast.Constant(word), part) for word in fields.split()]
            case _:
                args.append(part)
    return ast.copy_location(ast.Call(node.func, args, node.keywords), node)


def _by_keyword(node: ast.Call, names: tuple[str, ...]) -> ast.Call:
    """Return a crontab with keyword arguments for those by position. Raises NotMapped for too many of them."""
    if len(node.args) > len(names) or any(isinstance(argument, ast.Starred) for argument in node.args):
        raise NotMapped("a crontab with arguments that are spread with *")
    words = [ast.keyword(name, value) for name, value in zip(names, node.args, strict=False)]
    if {word.arg for word in words} & {word.arg for word in node.keywords}:
        raise NotMapped("a crontab with days by position, whose order differs between versions of Celery")
    return ast.copy_location(ast.Call(node.func, [], [*words, *node.keywords]), node)


def crontab_field(name: str, value: Any) -> frozenset[int]:
    """Return the numbers that a crontab field matches. The field is a number, a text, or a list of both. Raises
    NotMapped for any other value."""
    low, high, names = _FIELDS[name]
    if isinstance(value, bool) or value is None:
        raise NotMapped(f"{value} as the {name} of a crontab")
    if isinstance(value, int):
        numbers = {value}
    elif isinstance(value, str):
        numbers = {
            number for term in value.split(",") for number in _term(name, term.strip(), low, high, names)
        }
    elif isinstance(value, list | tuple | set | frozenset) and all(type(item) is int for item in value):
        numbers = set(value)
    else:
        raise NotMapped(f"{value!r} as the {name} of a crontab")
    if not numbers or not numbers <= set(range(low, high + 1)):
        raise NotMapped(f"{value!r} as the {name} of a crontab")
    return frozenset(numbers)


def _term(name: str, term: str, low: int, high: int, names: tuple[str, ...]) -> list[int]:
    """Return the numbers of a star, a number or a range, each with an optional step. A range that runs backwards
    continues at the lowest number."""
    match = _TERM.fullmatch(term)
    if match is None:
        raise NotMapped(f"{term!r} in the {name} of a crontab")
    if match["first"] is None:
        numbers = list(range(low, high + 1))
    else:
        first = _number(name, match["first"], low, high, names)
        last = _number(name, match["last"], low, high, names) if match["last"] is not None else first
        if match["step"] is not None and match["last"] is None:
            raise NotMapped(f"{term!r} in the {name} of a crontab")
        backwards = [*range(first, high + 1), *range(low, last + 1)]
        numbers = backwards if last < first else list(range(first, last + 1))
    if match["step"] is None:
        return numbers
    if not match["step"].isdigit() or int(match["step"]) < 1:
        raise NotMapped(f"{term!r} in the {name} of a crontab")
    return numbers[:: int(match["step"])]


def _number(name: str, text: str, low: int, high: int, names: tuple[str, ...]) -> int:
    if text.isdigit():
        number = int(text)
    elif len(text) >= 3 and text[:3].lower() in names:
        number = names.index(text[:3].lower()) + low
    else:
        raise NotMapped(f"{text!r} in the {name} of a crontab")
    if not low <= number <= high:
        raise NotMapped(f"{text!r} in the {name} of a crontab")
    return number


__all__ = ["NotLiteral", "crontab", "crontab_field", "times"]
