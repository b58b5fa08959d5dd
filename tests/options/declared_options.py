"""Options of declarations, read from the JSON Schema of packs: place, a legal value, what it needs beside it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from typing import Any

from penstock.language.packs.editor_schemas import pack_schema

Path = tuple[str, ...]

SCHEMA = pack_schema()
BASES: dict[str, dict[str, Any]] = {
    "actions": {"function": "code.work:work"},
    "triggers": {},
    "rules": {"trigger": "shop.paid", "action": "shop.noop"},
    "limits": {"scope": "*", "max": 1000},
    "schedules": {"action": "shop.noop", "cron": "0 3 * * *"},
    "routes": {"route": "default"},
    "workflows": {"vars": {"x": 1}, "tasks": {"t": {"action": "shop.noop"}}},
}
ITEMS = {"with_items": [1, 2], "input": {"item": "{{ item }}"}}
CONTAINERS: dict[str, dict[str, Any]] = {
    "limits": {"max": 7},
    "breaker": {"failures": 1},
    "batch": {"size": 5},
    "poll": {"every": 3600, "function": "code.work:find"},
    "wait_for_event": {"trigger": "shop.paid"},
    "inquiry": {"prompt": "May it?"},
    "next": {"do": ["u"]},
    "on_exit": {"action": "shop.noop"},
    "missed": {},
    "window": {"all": ["shop.paid", "shop.paid"], "within": "1m", "by": "payload.doc"},
    "count": {"trigger": "shop.paid"},
}
"""What an option's own mapping holds beside it, by its name; others hold nothing."""
BESIDE: dict[str, dict[str, Any]] = {
    "burst": {"rate": "100/min"},
    "batch": {"function": "code.work:several"},
    "unit": {"cost": 1},
    "limits.budget": {"cost": 1},
    "per": {"max": 7},
    "rules.by": {"debounce": 5},
    "rules.at_most": {"debounce": 5},
    "rules.keep": {"debounce": 5},
    "window.count": {"at_least": 2},
    "window.any": {"at_least": 2},
    "window.at_least": {"count": ["shop.paid"]},
    "timestamp": {"lateness": "5s"},
    "lateness": {"timestamp": "payload.at"},
    "when.context": {"op": "==", "value": 1},
    "when.op": {"context": "x", "value": 1},
    "when.value": {"context": "x", "op": "=="},
    "missed.delay": {"policy": "delay"},
    "missed.at_most": {"catch_up": "all"},
    "actions.options": {"command": ["cat"]},
    "concurrency": ITEMS,
    "batch_size": ITEMS,
    "item_failures": ITEMS,
    "retry.max_delay": {"initial_delay": 0},
    "tasks.when": {"needs": ["u"]},
    "join": {"needs": ["u"]},
}
"""What an option needs beside it."""
INSTEAD_OF: dict[str, str] = {
    "limits.budget": "max",
    "limits.breaker": "max",
    "rules.window": "trigger",
    **dict.fromkeys(
        ("window.sequence", "window.any", "window.count", "window.absence", "window.at_least"), "all"
    ),
    **dict.fromkeys(("schedules.every", "schedules.at", "schedules.rrule"), "cron"),
    **dict.fromkeys(("actions.command", "actions.url", "actions.image", "actions.options"), "function"),
    **dict.fromkeys(("tasks.workflow", "wait_for_event", "inquiry", "on_exit.workflow"), "action"),
}
"""The option that another one replaces."""
LEGAL: dict[str, Any] = {
    "retry": 3, "initial_delay": "5s", "max_delay": "2m", "retry_on": "TimeoutError", "never_on": ["TimeoutError"],
    "retry_on_errors": "TimeoutError", "backoff_factor": 2,
    "timeouts": {"attempt": "10s"}, "timeout": "10s", "attempt": "10s", "schedule_to_start": 10, "queued": 10, "total": "1h",
    "waiting": "1d", "recovery": {"max_recoveries": 1}, "executor": "thread", "route": "default", "labels": {"gpu": "a100"},
    "run_labels": {"team": "a"}, "searchable": ["n"], "title": "work {{ parameters.n }}",
    "actions.limits": {"max": 9}, "limits": [{"max": 9}], "limits.[].ref": "", "limits.[].description": "x",
    "on_success": "shop.noop", "on_failure": ["shop.noop"], "options": {"env": {"A": "b"}}, "on_worker_loss": "fail",
    "max_recoveries": 2, "command": ["cat"], "url": "https://example.com/x", "image": "busybox", "parameters": {"n": "integer"},
    "result": {"type": "object"}, "schema": {"n": "integer"}, "every": 60, "poll.every": 3600, "when": "payload.n > 1",
    "tasks.when": "all_done", "params": {"n": 1}, "tenant": "public", "expires": "1h", "scope": "shop", "by": "customer",
    "rate": "100/min", "burst": 10, "per": "1m", "cost": "{{ parameters.n }}", "unit": "tokens", "limits.budget": "tokens",
    "breaker": {"failures": 20, "of": 50}, "breaker.of": 50, "within": "1m", "probe": "30s", "warn_after": "10m",
    "batch": {"size": 100, "within": "200ms", "by": "customer"},
    "window.by": "payload.doc", "count.[].by": "payload.n",
    "rules.window": {"absence": ["shop.paid", "shop.paid"], "within": "1m"},
    "window.sequence": ["shop.paid", "shop.paid"], "window.all": ["shop.paid", "shop.paid"], "window.at_least": 2,
    "window.any": ["shop.paid", "shop.paid"], "window.count": ["shop.paid"], "window.absence": ["shop.paid", "shop.paid"],
    "timestamp": "payload.at", "lateness": "5s",
    "rules.by": "payload.doc", "debounce": "5s", "rules.at_most": "1m", "rules.keep": "first",
    "max_depth": 3, "max_descendants": 50, "rules.budget": {"tokens": 100}, "when_spent": "wait",
    "fair": "customer", "max_waiting": 5, "cron": "0 4 * * *", "at": "2100-01-31T09:00",
    "rrule": "DTSTART:21000107T090000 RRULE:FREQ=WEEKLY;BYDAY=MO", "timezone": "Europe/Paris", "context": {"a": 1},
    "starts_at": "2090-01-31T09:00:00Z", "ends_at": "2099-01-31T09:00:00Z", "jitter": "10s", "schedules.missed": {"grace": 9},
    "grace": 60, "missed.delay": "9s", "spread": "1m", "position": 3, "pattern": "a::b", "vars": {"x": 1},
    "schedules.retry": 3, "retry.jitter": 0.5, "action": "shop.noop", "trigger": "shop.paid", "filter": "event.payload.n == 1",
    "wait_for_event": {"trigger": "shop.paid"}, "inquiry": {"prompt": "May it?"}, "prompt": "May it?", "assignee": "ada",
    "default": 1, "input": {"n": 1}, "with_items": [1, 2], "concurrency": 2, "batch_size": 2, "item_failures": {"tolerate": 1},
    "tolerate": "10%", "publish": {"x": 1}, "tasks.delay": "1s", "on_exit.delay": "1s", "needs": ["u"], "join": "any",
    "success": "u", "failed": "u", "skipped": "u", "when.context": "x", "value": 1, "next": [{"do": ["u"]}], "do": ["u"],
    "next.[].when": "succeeded()", "output": 1, "on_exit": {"action": "shop.noop"}, "version": "1",
    "poll": {"every": 60, "function": "code.work:find"},
    "workflows.tasks": {"t": {"action": "shop.noop"}}, "function": "code.work:work", "description": "text",
    "poll.function": "code.work:find",
    "workflow": "shop.flow", "all": ["all_done"], "ref": None, "any": ["all_done"], "none": ["one_failed"],
}  # fmt: skip
"""Values that are taken, by the last words of an option's path; other options have a legal value in their schema."""
NAMES = ("ref", "name", "format", "pattern")
"""Options that name the thing itself: odd values alone are tried for them."""
NOT_HERE = ("limits.scope", "limits.breaker.by", "on_exit.publish", "workflows.workflow")
"""Options that the schema of a model shows wherever the model stands, and that are refused in places."""
PLACEHOLDERS = ("*", "[]")


@dataclass(frozen=True)
class Option:
    """An option and its schema. `path` begins with the section; `*` stands for a name, `[]` for an item."""

    path: Path
    schema: dict[str, Any]

    @property
    def plain(self) -> Path:
        return tuple(part for part in self.path if part != "*")

    def __str__(self) -> str:
        return ".".join(self.plain)

    @property
    def has_legal_value(self) -> bool:
        inside = len(self.path) > 3 and str(self).replace(".[]", "").endswith(NOT_HERE)
        return not (self.path[-1] in NAMES or inside or str(self) in NOT_HERE)

    def legal(self) -> Any:
        """Return a value that is taken: LEGAL has it, or the schema of an enumeration, a number, a flag or a text."""
        if (value := by_suffix(self.plain, LEGAL)) is not None:
            return value
        for branch in branches(self.schema):
            if "enum" in branch:
                return branch["enum"][0]
            match branch.get("type"):
                case "integer" | "number":
                    return branch.get("minimum", 1)
                case "boolean":
                    return False
                case "string":
                    return "text"
        raise AssertionError(f"LEGAL has no value for {self}")

    def entry(self, value: Any) -> dict[str, Any]:
        """Return an entry of the section in which only this option, and what it needs, differs from a plain entry."""
        whole = deepcopy(BASES[self.path[0]])
        if self.path[2:3] == ("tasks",):
            whole["tasks"]["u"] = {"action": "shop.noop"}
        place: Any = whole
        for n, step in enumerate(self.path[2:-1], 2):
            if step == "*":
                place = place["t"]
            elif step == "[]":
                place[:] = [deepcopy(by_suffix((self.path[n - 1],), CONTAINERS) or {})]
                place = place[0]
            elif step == "tasks":
                place = place[step]
            else:
                self._put(place, n, deepcopy(by_suffix((step,), CONTAINERS) or {}))
                place[step] = [] if self.path[n + 1] == "[]" else place[step]
                place = place[step]
        self._put(place, len(self.path) - 1, deepcopy(value))
        return whole

    def _put(self, place: dict[str, Any], n: int, value: Any) -> None:
        """Put a value at the n-th step of the path, with what it needs, and without what it replaces."""
        plain = tuple(step for step in self.path[: n + 1] if step not in PLACEHOLDERS)
        place.pop(by_suffix(plain, INSTEAD_OF), None)
        place.update(deepcopy(by_suffix(plain, BESIDE) or {}))
        place[plain[-1]] = value


def by_suffix(path: Path, table: dict[str, Any]) -> Any:
    """Return the entry of the longest run of last words of the path."""
    for first in range(len(path)):
        if (name := ".".join(path[first:])) in table:
            return table[name]
    return None


def branches(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if "$ref" in schema:
        yield from branches(SCHEMA["$defs"][schema["$ref"].rpartition("/")[2]])
        return
    below = schema.get("anyOf") or schema.get("oneOf")
    if not below:
        yield schema
    for branch in below or ():
        yield from branches(branch)


@cache
def options() -> tuple[Option, ...]:
    """Return every option of the sections of a pack, each schema once a path of descent."""
    listed: dict[Path, Option] = {}

    def walk(schema: dict[str, Any], path: Path, ancestors: tuple[str, ...]) -> None:
        for branch in branches(schema):
            if (key := json.dumps(branch, sort_keys=True)) in ancestors:
                continue
            inside = (*ancestors, key)
            if path[-1:] == ("[]",) and (path[-2] in ("tasks", "all", "any", "none", "sequence", "absence")):
                continue  # walked by name, or in count; rules of rules
            for name, option in branch.get("properties", {}).items():
                place_of = (*path, name)
                if len(place_of) > 2 and place_of not in listed:
                    listed[place_of] = Option(place_of, option)
                walk(option, place_of, inside)
            if isinstance(branch.get("additionalProperties"), dict):
                walk(branch["additionalProperties"], (*path, "*"), inside)
            if isinstance(branch.get("items"), dict) and path != ("routes",):
                walk(branch["items"], (*path, "[]"), inside)

    walk(SCHEMA, (), ())
    return tuple(listed.values())
