"""The conversion of a pack's entries to the same definitions that Python declares."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.errors import all_at_once
from penstock.language.definitions.declaration import Declaration, declare
from penstock.language.definitions.limit import Limit
from penstock.language.definitions.qualified_name import Pack, qualified
from penstock.language.definitions.route import Route
from penstock.language.definitions.rule import Rule
from penstock.language.definitions.schedule import Schedule
from penstock.language.definitions.trigger import Trigger, poll_trigger
from penstock.language.definitions.window import with_pack
from penstock.language.packs.actions import action_of
from penstock.language.packs.pack_code import function_of
from penstock.language.packs.pack_files import mapping
from penstock.language.terms.sources import Source
from penstock.language.workflows.serialization import from_value


@dataclass(frozen=True, slots=True)
class Entry:
    """A definition as it was written. `name` is its key, or the name of its file, and is empty in a list."""

    section: str
    name: str
    value: Any
    source: Source


Make = Callable[[Entry, Pack, Path], Any]


def build(pack: Pack, folder: Path, entries: Sequence[Entry]) -> list[Any]:
    """Return the definitions of the entries. Raises one DefinitionError for all lines that are wrong."""
    definitions: list[Any] = []
    with all_at_once() as problem:
        for entry in entries:
            with problem():
                definitions.append(SECTIONS[entry.section](entry, pack, folder))
    return definitions


def _given(entry: Entry, pack: Pack, kind: type[Declaration]) -> dict[str, Any]:
    """Return the entry as written, with its name as `ref`, and with the pack in front of each name that lacks one."""
    values = dict(mapping(entry.value, entry.name, entry.source))
    values.setdefault("ref", entry.name)
    for name in kind.shorten:
        if isinstance(values.get(name), str):
            values[name] = qualified(values[name], pack.name)
    _refuse_foreign(values["ref"], pack, entry.source)
    return values


def _refuse_foreign(ref: Any, pack: Pack, source: Source) -> None:
    if isinstance(ref, str) and not ref.startswith(f"{pack.name}."):
        raise source.wrong(f"{ref} is not of the pack {pack.name}", "Write the name alone.")


def _action(entry: Entry, pack: Pack, folder: Path) -> Any:
    values = dict(mapping(entry.value, entry.name, entry.source))
    ref = values.pop("ref", entry.name)
    if isinstance(ref, str):
        _refuse_foreign(qualified(ref, pack.name), pack, entry.source)
    return action_of(qualified(str(ref), pack.name), values, pack, folder, entry.source)


def _trigger(entry: Entry, pack: Pack, folder: Path) -> Any:
    values = _given(entry, pack, Trigger)
    poll = values.get("poll")
    if poll is None:
        return declare(Trigger, values, entry.source)
    poll = dict(mapping(poll, "poll", entry.source.at(("poll",))))
    function = function_of(poll.pop("function", None), folder, entry.source.at(("poll", "function")))
    return poll_trigger(function, {**values, "poll": poll}, pack.name, entry.source)


def _rule(entry: Entry, pack: Pack, folder: Path) -> Any:
    values = _given(entry, pack, Rule)
    if isinstance(values.get("window"), Mapping):
        values["window"] = with_pack(values["window"], pack.name)
    return declare(Rule, values, entry.source)


def _limit(entry: Entry, pack: Pack, folder: Path) -> Any:
    values = _given(entry, pack, Limit)
    scope = values.get("scope", pack.name)
    # `scope: charge` could mean a pack or an action. If it is the name of this pack, it means the pack. Any other name
    # means an action of this pack.
    own = isinstance(scope, str) and scope not in (pack.name, "*", "global")
    values["scope"] = qualified(scope, pack.name) if own else scope
    return declare(Limit, values, entry.source)


def _route(entry: Entry, pack: Pack, folder: Path) -> Any:
    value = entry.value
    if isinstance(value, str):  # the short form, pattern: route
        value = {"route": value}
    options = dict(mapping(value, "a route", entry.source))
    if entry.name:  # in a mapping the key is the pattern
        options = {"pattern": entry.name, **options}
    return declare(Route, options, entry.source)


def _schedule(entry: Entry, pack: Pack, folder: Path) -> Any:
    return declare(Schedule, _given(entry, pack, Schedule), entry.source)


def _workflow(entry: Entry, pack: Pack, folder: Path) -> Any:
    values = dict(mapping(entry.value, entry.name, entry.source))
    values["workflow"] = qualified(str(values.get("workflow", entry.name)), pack.name)
    _refuse_foreign(values["workflow"], pack, entry.source)
    return from_value(values, entry.source)


SECTIONS: dict[str, Make] = {
    "actions": _action,
    "triggers": _trigger,
    "rules": _rule,
    "limits": _limit,
    "routes": _route,
    "schedules": _schedule,
    "workflows": _workflow,
}
"""The function that builds a definition, for each section of a pack."""
