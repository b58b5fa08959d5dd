"""Rules of StackStorm as rules and schedules of ours."""

from __future__ import annotations

import json
import re
from typing import Any

from penstock.cli.imports.marked_yaml import Marked
from penstock.cli.imports.orquesta_expressions import NotMapped
from penstock.errors import DefinitionError
from penstock.language import expressions

_COMPARING = {
    **dict.fromkeys(("eq", "equals"), "{0} == {1}"),
    **dict.fromkeys(("neq", "nequals"), "{0} != {1}"),
    **dict.fromkeys(("gt", "greaterthan"), "{0} > {1}"),
    **dict.fromkeys(("lt", "lessthan"), "{0} < {1}"),
    "ieq": "{0} | lower == {1} | lower",
    "ineq": "{0} | lower != {1} | lower",
    "iequals": "{0} | lower == {1} | lower",
    "contains": "{1} in {0}",
    "icontains": "{1} | lower in ({0} | lower)",
    "ncontains": "{1} not in {0}",
    "incontains": "{1} | lower not in ({0} | lower)",
    "inside": "{0} in {1}",
    "in": "{0} in {1}",
    "ninside": "{0} not in {1}",
    "nin": "{0} not in {1}",
    "startswith": "{0}.startswith({1})",
    "istartswith": "({0} | lower).startswith({1} | lower)",
    "endswith": "{0}.endswith({1})",
    "iendswith": "({0} | lower).endswith({1} | lower)",
    "exists": "{0} is defined",
    "nexists": "{0} is not defined",
}
_TRIGGER = re.compile(r"\btrigger\b")
_UNITS = {"seconds": 1, "minutes": 60, "hours": 3600, "days": 86400, "weeks": 604800}
_CRON = ("minute", "hour", "day", "month", "day_of_week")


def criterion(path: str, spec: Any) -> str:
    """One of `criteria`, as a condition. Raises NotMapped."""
    form = _COMPARING.get(str(spec.get("type"))) if isinstance(spec, dict) else None
    pattern = spec.get("pattern") if isinstance(spec, dict) else None
    if form is None or (isinstance(pattern, str) and "{{" in pattern):
        raise NotMapped(path)
    try:
        ours = form.format(_path(path), json.dumps(pattern).replace("null", "none"))
        expressions.condition(ours)
    except (DefinitionError, TypeError):
        raise NotMapped(path) from None
    return ours


def _path(path: str) -> str:
    first, *parts = path.split(".")
    if first != "trigger":
        raise NotMapped(path)
    return "payload" + "".join(
        f".{part}" if part.isidentifier() else f"[{json.dumps(part)}]" for part in parts
    )


def parameters(value: Any) -> Any:
    """Parameters of a rule's action. Raises NotMapped."""
    if isinstance(value, dict):
        return {name: parameters(item) for name, item in value.items()}
    if isinstance(value, list):
        return [parameters(item) for item in value]
    if not isinstance(value, str) or "{{" not in value:
        return value
    ours = re.sub(r"\{\{.*?\}\}", lambda match: _TRIGGER.sub("payload", match[0]), value)
    if "st2kv" in ours or "config_context" in ours or "{%" in ours:
        raise NotMapped(value)
    try:
        expressions.compile_template(ours)
    except DefinitionError:
        raise NotMapped(value) from None
    return ours


def timer(kind: str, spec: Marked) -> dict[str, Any]:
    """Return the times of a schedule, for a trigger of StackStorm's timers. Raises NotMapped."""
    if kind == "core.st2.IntervalTimer" and spec.get("unit") in _UNITS:
        return {"every": spec["delta"] * _UNITS[spec["unit"]]}
    if kind == "core.st2.DateTimer" and isinstance(spec.get("date"), str):
        return {"at": spec["date"]} | ({"timezone": spec["timezone"]} if "timezone" in spec else {})
    if kind == "core.st2.CronTimer" and not spec.keys() & {"year", "week"}:
        # A field that is not given is any where a larger one is given, and the least where only smaller ones could be.
        named = [field for field in _CRON if field in spec]
        least = _CRON.index(named[0]) if named else 0
        fields = [spec.get(field, "*" if place >= least else "0") for place, field in enumerate(_CRON)]
        if str(spec.get("second", 0)) not in ("0", "*/60"):
            fields.insert(0, spec["second"])
        weekday = fields[-1]
        if isinstance(weekday, int):  # theirs begin with Monday
            fields[-1] = (weekday + 1) % 7
        elif any(mark.isdigit() for mark in str(weekday)):
            raise NotMapped(kind)
        schedule: dict[str, Any] = {"cron": " ".join(map(str, fields))}
        return schedule | ({"timezone": spec["timezone"]} if "timezone" in spec else {})
    raise NotMapped(kind)
