"""The methods of clients, read from their signatures: a legal value of each parameter, its bounds, and values of wrong types."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from penstock import Schedule
from penstock.language.terms.column_ranges import HIGHEST_PRIORITY, INTEGER
from penstock.store.executions.execution_list import ExecutionFilter
from tests.options.declaring import FLOW

NO_DOORS = ("connect", "close", "publish_staged")
"""Methods that take nothing of a caller, or what only the product makes."""
PARTS = ("limits", "rules", "schedules", "views", "workers")
SOON = datetime(2100, 1, 31, 9, tzinfo=UTC)
WRONG: tuple[Any, ...] = (
    *(None, True, -1, 2**31, 2**63, 10**30, 0.5, float("nan"), "", "no", "a\0b", "\ud800", "x" * 3000),
    *([], [1], {}, {"no_such": 1}, object(), datetime(2030, 1, 1), timedelta(seconds=-1), UUID(int=0), b"x"),
)
"""Values that at least some parameters do not take."""
LEGAL: dict[str, Any] = {
    "ref": "shop.count", "target": "shop.count", "params": {"words": "a"}, "key": "a key", "tenant": "public", "priority": 1,
    "delay": 3600, "at": SOON, "expires_at": SOON, "options": {"timeout": 9}, "by": "ada", "secrets": {}, "connection": None,
    "start_many.params": [{"words": "a"}], "trigger": "shop.order_placed", "payload": {"id": 1}, "source": "shop",
    "timeout": 0.01, "task": None, "reason": "a reason", "kind": "pause", "value": {"a": 1}, "name": "paid",
    "from_failed": False, "from_task": None, "response": True, "asked": SOON, "filters": ExecutionFilter(action="shop.no"),
    "dry_run": True, "before": None, "limit": 5, "answered": True, "assignee": "ada", "after": None, "path": "/workers",
    "enabled": True, "seconds": 60.0, "count": 3, "first": SOON, "last": SOON, "names": ["no-such-worker"], "cordoned": True,
    "limits.ref": "shop.door", "schedules.ref": "shop.nightly", "rules.ref": "shop.big_orders", "create.ref": "shop.made",
    "update.options": {"cron": "0 4 * * *"}, "create.options": {"action": "shop.count", "cron": "0 4 * * *"},
    "named.name": "no-such-worker", "history.before": SOON, "set.max": 3, "unit": "tokens", "amount": 5,
    "labels": {"customer": "acme"}, "debounce": None, "debounce_key": None, "at_most": None, "keep": "last",
    "max_depth": 5, "max_descendants": 5, "budget": {"tokens": 5}, "when_spent": "wait", "get_json.query": None, "cancel.ids": (),
    "kinds": ["action"], "notation": "mermaid", "recoveries.kind": "attempt", "worker": "no-such-worker", "fresh": True,
    "hours": 1.0, "rule": "shop.big_orders", "event": UUID(int=1), "status": "created",
    "error": None, "complete.result": {"n": 7}, "execution": UUID(int=1), "ahead": False,
    "views.name": "Failed today", "views.filters": {"status": ["failed"]}, "version": 1, "description": "of today",
    "shared": False, "replace": True,
    "unset": [], "since": SOON, "until": SOON, "replay_rule.ref": "shop.big_orders", "cursor": None,
}  # fmt: skip
"""Legal values by parameter, or by the last names of a method and its parameter."""
MORE: dict[str, tuple[Any, ...]] = {
    "priority": (-HIGHEST_PRIORITY, HIGHEST_PRIORITY, HIGHEST_PRIORITY + 1, -HIGHEST_PRIORITY - 1),
    "limit": (0, 1, 1000, 1001, INTEGER, INTEGER + 1),
    "count": (0, 1, 1000, 1001, INTEGER, INTEGER + 1),
    "seconds": (0, 1e-9, 86_400.0, 1e300, float("inf")),
    "delay": (0, 1e-9, 1e300, float("inf"), timedelta(days=1), timedelta.max, "1h"),
    "at": (datetime.max, datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)),
    "expires_at": (datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)),
    "first": (datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)),
    "last": (datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)),
    "before": (datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)),
    "since": (datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)),
    "until": (datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)),
    "asked": (datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)),
    "kind": ("resume", "skip", "set_result", "set-result", "../cancel"),
    "ref": (FLOW, "shop.flow", "shop/../x", "?x=1", "shop.charge#x"),
    "what": (FLOW,),
    "path": ("workers", "/no/such", "//example.org/x", "/executions?limit=3", "/../x"),
    "tenant": ("t" * 63, "t" * 64, "a::b"),
    "key": ("k" * 1000, "k" * 1001),
    "declared": (Schedule("shop.put", action="shop.count", every=60),),
    "budget": (
        {"tokens": 0},
        {"tokens": 10**15 + 1},
        {"Tokens": 1},
        {"tokens": "1"},
        {"tokens": float("nan")},
    ),
    "max_depth": (0, 1, INTEGER, INTEGER + 1),
    "max_descendants": (0, 1, INTEGER, INTEGER + 1),
    "debounce": (1, "1s", timedelta(days=1), 86_400.1, "2d", 0, "soon", 1e300, float("inf")),
    "keep": ("first", "all"),
    "labels": ({}, {"Customer": "acme"}, {"customer": ""}, {"customer": "x" * 201}, {"customer": 1}),
    "amount": (0, 10**15, 10**15 + 1, float("inf")),
    "set.max": (0, 1, INTEGER, INTEGER + 1),
}
"""Bounds and their neighbours, and other forms, by parameter."""
GIVEN = ("timeout", "params", "payload")
"""Parameters with a default that does not suit the others."""


@dataclass(frozen=True)
class Call:
    """A call of a method in which one argument is special."""

    method: str
    parameter: str
    value: Any
    positional: tuple[Any, ...] = ()
    named: Mapping[str, Any] = field(default_factory=dict)
    is_legal: bool = False

    def __str__(self) -> str:
        return f"{self.method}({self.parameter}={str(self.value)[:60]!r})"


def methods(client: Any) -> dict[str, Callable[..., Any]]:
    """Return every public method of a client and of its parts by its dotted name."""
    listed: dict[str, Callable[..., Any]] = {}
    for part, owner in [("", client), *((f"{part}.", getattr(client, part, None)) for part in PARTS)]:
        for name, method in inspect.getmembers(owner, inspect.ismethod):
            if not name.startswith("_") and name not in NO_DOORS:
                listed[f"{part}{name}"] = method
    return listed


def calls(name: str, method: Callable[..., Any], id: UUID) -> Iterator[Call]:
    """Yield calls with each value of each parameter. `id` is an execution."""
    parameters = {key: p for key, p in inspect.signature(method).parameters.items() if key != "self"}
    if name.endswith("limits.set"):  # its options are those of `Limit`
        parameters["max"] = inspect.Parameter("max", inspect.Parameter.KEYWORD_ONLY)
    for odd in parameters:
        legal = legal_value(name, odd, id)
        values = [(legal, True), *((value, False) for value in (*by_name(name, odd, MORE, ()), *WRONG))]
        for value, is_legal in values:
            positional: list[Any] = []
            named: dict[str, Any] = {}
            for key, parameter in parameters.items():
                if key != odd and parameter.default is not inspect.Parameter.empty and key not in GIVEN:
                    continue
                argument = value if key == odd else legal_value(name, key, id)
                if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
                    positional += [argument] if not isinstance(argument, tuple) else argument
                elif parameter.kind is inspect.Parameter.VAR_KEYWORD:
                    named |= {"no_such": argument} if key == odd and not is_legal else {}
                elif parameter.kind is inspect.Parameter.POSITIONAL_ONLY:
                    positional.append(argument)
                else:
                    named[key] = argument
            yield Call(name, odd, value, tuple(positional), named, is_legal)


def legal_value(method: str, parameter: str, id: UUID) -> Any:
    if parameter == "id" or (method, parameter) == ("cancel", "ids"):
        return id
    return by_name(method, parameter, LEGAL, ())


def by_name(method: str, parameter: str, table: Mapping[str, Any], default: Any) -> Any:
    """Return the entry of the method's parameter, of its part's, or of any parameter of this name."""
    part, _, last = method.rpartition(".")
    for key in (f"{last}.{parameter}", f"{part}.{parameter}", parameter):
        if key in table:
            return table[key]
    return default
