"""The beat schedules and routes of a Celery application, read from dicts of literals in its source."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from penstock_import.celery_calls import called, namespace_node, namespace_of, once, walk
from penstock_import.celery_owners import Owners, belong_apart
from penstock_import.celery_routes import (
    RouteKey,
    has_compiled_key,
    is_list_of_pairs,
    route_key,
    route_maps,
)
from penstock_import.celery_scopes import bindings_at, parents_of
from penstock_import.celery_setting_names import NAMES_OF_MAPPED, is_read, today
from penstock_import.celery_winners import lost_places

BEAT = frozenset({"beat_schedule", "CELERY_BEAT_SCHEDULE", "CELERYBEAT_SCHEDULE"})
ROUTES = frozenset({"task_routes", "CELERY_TASK_ROUTES", "CELERY_ROUTES"})
Tell = Callable[[str, ast.expr, str, str], None]
"""A function that records a gap: (file, node, setting, what to do by hand)."""

_BY_CODE = "Write it as a schedule."
_OF_BEATS = (
    "The beat of each application starts its own schedules, and all are imported: remove only those of an application without a "
    "beat."
)
_OF_ROUTES = (
    "Each application sends by its own routes, and all are imported: see which application sends each task."
)


class CelerySettings:
    """The settings of all files. `tell` is called for each setting that is not mapped. `unread` are names that the
    application does not read."""

    def __init__(
        self,
        trees: Mapping[str, ast.Module],
        tell: Tell,
        unread: frozenset[str] = frozenset(),
        classes: Collection[str] = ("Celery",),
    ) -> None:
        self._trees, self._unread = trees, unread
        self.owners = Owners(trees, classes)
        self._tell = tell
        self.taken: set[int] = set()
        """Places of these settings, which are mapped or named here."""
        self.unmapped = 0
        """The number of schedules that only a gap names."""
        self._of_routes: frozenset[str] = frozenset()
        """The names of routes, and of the dicts that they are merged of."""
        self._dicts = {
            name for tree in trees.values() for name, value, _ in _given(tree) if isinstance(value, ast.Dict)
        }
        self._listed: set[int] = set()
        """The value of `task_routes` that is read as a list of maps."""
        self._lost = lost_places(trees, (BEAT | ROUTES) - unread, self._merged_names())
        """The place that Celery takes, by the value of each place that it therefore does not take."""

    def routes(self) -> list[list[tuple[str, RouteKey, ast.expr]]]:
        """Return the maps of `task_routes` in the order in which Celery asks them: file, key and route of each entry."""
        places = [
            (file, value)
            for file, tree in self._trees.items()
            for name, value, whole in _given(tree)
            if name in ROUTES - self._unread and id(value) not in self._left_out(tree)
            if not whole or isinstance(value, ast.List | ast.Tuple) or _is_filled(value)
        ]
        is_alone = len(places) == 1 and not self._touched_settings() & ROUTES
        for file, value in places if is_alone else ():
            if isinstance(value, ast.List | ast.Tuple) or has_compiled_key(value):
                maps = route_maps(value, self._value_of)
                if maps is not None:
                    self._listed.add(id(value))
                    self.taken.add(id(value))
                    return [[(file, key, node) for key, node in routes.items()] for routes in maps]
        entries = list(self.entries(ROUTES))
        order = {
            id(value): number for number, (_, value) in enumerate(self._merged(ROUTES - self._unread) or ())
        }
        if all(id(node) in order for _, _, node in entries):
            entries.sort(key=lambda entry: order[id(entry[2])])
        return [[(file, route_key(key), node) for file, key, node in entries]]

    def _value_of(self, name: str) -> ast.expr | None:
        """Return the value of a name that one statement assigns, at the top of a module, and that nothing changes."""
        values = [value for tree in self._trees.values() for key, value, _ in _given(tree) if key == name]
        at_top = [
            part.value
            for tree in self._trees.values()
            for part in tree.body
            if isinstance(part, ast.Assign | ast.AnnAssign)
        ]
        is_changed = name in self._touched_settings()
        return values[0] if len(values) == 1 and values[0] in at_top and not is_changed else None

    def _touched_settings(self) -> set[str]:
        """Return the names of settings with an item that a statement sets, removes or changes."""
        trees = self._trees.values()
        items = {item.setting for tree in trees for item in _items(tree)}
        return items | {change.setting for tree in trees for change in _changes(tree)}

    def schedules(self) -> Iterator[tuple[str, str, ast.expr]]:
        """Yield the file, key and value of each schedule. Of equal keys in a merged value, only the last exists in Celery.
        Each other one is named. Equal keys of different applications are different schedules.
        Where the order is not certain, the last that was read is taken, and the line says so."""
        entries = list(self.entries(BEAT))
        apps_of: dict[str, set[str]] = {}
        for _, key, value in entries:
            apps_of.setdefault(key, set()).add(self.owners.of(value))
        by_key: dict[tuple[str, str], list[tuple[str, ast.expr]]] = {}
        for file, key, value in entries:
            # The beat of each application has an entry of this key.
            app = "" if "" in apps_of[key] else self.owners.of(value)
            by_key.setdefault((key, app), []).append((file, value))
        merged = self._merged(BEAT - self._unread)
        for (key, _), places in by_key.items():
            own = {id(value) for _, value in places}
            order = [value for name, value in merged or () if name == key and id(value) in own]
            last = order[-1] if order and {id(value) for value in order} == own else None
            winner = next(((file, value) for file, value in places if value is last), places[-1])
            for file, value in places:
                if len(places) == 1 or value is winner[1]:
                    continue
                self._tell(file, value, f"the schedule {key}, which stands again at {winner[0]}:{winner[1].lineno}",
                           "Celery keeps the last entry, which is imported: remove this entry." if last is not None
                           else "Celery keeps one of the entries. The import reads that other entry: check that Celery keeps "
                                "it.")  # fmt: skip
            yield winner[0], key, winner[1]

    def _merged(self, settings: Collection[str]) -> list[tuple[str, ast.expr]] | None:
        """Return all entries that Python puts into a setting, in that order; None where only running would tell."""
        names = {
            name
            for tree in self._trees.values()
            for name, value, whole in _given(tree)
            if name in settings and whole and id(value) not in self._lost
        }
        return self._merged_name(names.pop(), frozenset()) if len(names) == 1 else None

    def _merged_name(self, name: str, around: frozenset[str]) -> list[tuple[str, ast.expr]] | None:
        """Return the entries of a name that statements at the top of one module give."""
        holding = [tree for tree in self._trees.values() if any(key == name for key, _, _ in _given(tree))]
        if len(holding) != 1 or name in around:
            return None
        replaced = self._left_out(holding[0])
        definitions = [
            value for key, value in _definitions(holding[0]) if key == name and id(value) not in replaced
        ]
        if len(definitions) > 1:
            return None
        at_top = {
            id(value)
            for part in holding[0].body
            if isinstance(part, ast.Assign | ast.AnnAssign | ast.Expr)
            for _, value, _ in _given(part)
        }
        entries: list[tuple[str, ast.expr]] = []
        for key, value, whole in sorted(_given(holding[0]), key=lambda part: part[1].lineno):
            if key != name or id(value) in replaced or not whole or _is_late(holding[0], key, value):
                continue
            part = self._merged_value(value, around | {name}) if id(value) in at_top else None
            if part is None:
                return None
            entries += part
        return entries

    def _merged_value(self, value: ast.expr, around: frozenset[str]) -> list[tuple[str, ast.expr]] | None:
        if isinstance(value, ast.Name):
            return self._merged_name(value.id, around)
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "dict":
            is_copy = len(value.args) == 1 and not value.keywords
            return self._merged_value(value.args[0], around) if is_copy else None
        if isinstance(value, ast.BinOp) and isinstance(value.op, ast.BitOr):
            parts = [self._merged_value(side, around) for side in (value.left, value.right)]
        elif isinstance(value, ast.Dict):
            parts = [
                self._merged_value(item, around)
                if key is None
                else [(str(key.value), item)]
                if isinstance(key, ast.Constant)
                else []
                for key, item in zip(value.keys, value.values, strict=True)
            ]
        else:
            return None
        return None if None in parts else [entry for part in parts if part is not None for entry in part]

    def entries(self, settings: frozenset[str]) -> Iterator[tuple[str, str, ast.expr]]:
        """Yield the file, key and value of each entry of these settings, including entries of the dicts that they are
        merged from."""
        is_beat = settings is BEAT
        settings = settings - self._unread
        names = settings | self._parts(settings)
        for file, tree in self._trees.items():
            replaced, removed = self._left_out(tree), _removed(tree)
            for name, value, whole in _given(tree):
                if name in names:
                    self.taken.add(id(value))
                is_kept = name in names and id(value) not in replaced and not _is_late(tree, name, value)
                for inline in _inline(value) if is_kept and whole else ():
                    for key, entry in zip(inline.keys, inline.values, strict=True):
                        if isinstance(key, ast.Constant) and (name, str(key.value)) not in removed:
                            yield file, str(key.value), entry
        for file, tree in self._trees.items():
            for item in _items(tree):
                whole_keys = self._keys(names, self.owners.of(item.value))
                is_replaced = id(item.value) in self._left_out(tree) or (item.setting, item.key) in _removed(
                    tree
                )
                if (
                    item.setting in names
                    and (item.is_certain or (is_beat and item.is_chosen))
                    and not _is_late(tree, item.setting, item.value)
                    and item.key not in whole_keys
                    and not is_replaced
                ):
                    self.taken.add(id(item.value))
                    yield file, item.key, item.value

    def _keys(self, names: Collection[str], app: str = "") -> set[str]:
        """Return the keys in the dicts of these settings, and the keys of items that occur twice. Those of another
        application than `app` do not count."""
        keys = [
            str(key.value)
            for tree in self._trees.values()
            for name, value, whole in _given(tree)
            if name in names and whole and id(value) not in self._lost
            if not belong_apart(app, self.owners.of(value))
            for inline in _inline(value)
            for key in inline.keys
            if isinstance(key, ast.Constant)
        ]
        items = [
            item.key
            for tree in self._trees.values()
            for item in _items(tree)
            if item.setting in names and not belong_apart(app, self.owners.of(item.value))
        ]
        return set(keys) | {key for key in items if items.count(key) > 1}

    def name_left(self) -> None:
        """Record a gap for each of these settings that is not a dict of literals."""
        beat, routes = BEAT - self._unread, ROUTES - self._unread
        self._of_routes = routes | self._parts(routes)
        names = beat | self._parts(beat) | self._of_routes
        first: dict[str, tuple[str, ast.expr]] = {}
        merged = self._merged_names()
        for file, tree in self._trees.items():
            items = {id(item.value): item for item in _items(tree)}
            replaced = self._replaced(tree)
            for name, value, whole in _given(tree):
                if name in names and id(value) in self._lost:
                    winner = self._lost[id(value)]
                    self._tell(file, value, f"{name}, beside {winner.name} at {winner.line}",
                               "Celery takes that other setting, and it is imported: remove this setting.")  # fmt: skip
                elif name in names and id(value) in replaced:
                    self._tell(file, value, f"{name}, which line {replaced[id(value)]} sets again",
                               "Only the later value counts, and is imported: remove this value.")  # fmt: skip
                elif name in names and _is_late(tree, name, value):
                    self._name_late(tree, file, name, value)
                elif name in names and id(value) not in items and id(value) not in self._listed:
                    self._name_left_of(file, name, value, whole)
                if name in BEAT - names and whole and isinstance(value, ast.Dict):
                    self.unmapped += len(value.keys)
            for item in items.values():
                if item.setting in names and item.is_certain and _is_late(tree, item.setting, item.value):
                    self._name_late(tree, file, item.setting, item.value)
                elif item.setting in names and id(item.value) not in replaced:
                    self._name_item(file, tree, item, names)
            for item in items.values():
                if item.setting in names:
                    self.taken.add(id(item.place))
            removed = _removed(tree)
            for change in _changes(tree):
                if change.setting not in names:
                    continue
                self.taken.add(id(change.node))
                if change.is_certain and (change.setting, change.key) in removed:
                    continue  # the file gives the entry and takes it out again
                self._tell(file, change.node, f"{ast.unparse(change.node)}, which changes {change.setting}",
                           "The import does not apply this change: see which entries are in force, and remove the "
                           "others.")  # fmt: skip
            for name, value in _definitions(tree):
                place = f"{file}:{value.lineno}"
                if name in beat | routes and not _is_filled(value) and self._empties_others(tree, name):
                    self._tell(file, value, f"the setting {name}, which has no entry here",
                               "The entries of other files are imported: remove them if this setting is in force.")  # fmt: skip
                is_other = isinstance(value, ast.Name) and value.id in BEAT | ROUTES
                if (
                    name not in names
                    or not _is_filled(value)
                    or id(value) in replaced
                    or id(value) in self._lost
                ):
                    continue
                setting = name
                if name in BEAT | ROUTES:
                    if is_other or any(name in around for around in merged.values()):
                        continue  # the setting that this is a part of is given at another place
                    setting = today(name)
                earlier, its_value = first.setdefault(setting, (place, value))
                if earlier == place:
                    continue
                if belong_apart(self.owners.of(value), self.owners.of(its_value)):
                    self._tell(file, value, f"{name}, which {earlier} sets too, for another application", _OF_BEATS if
                               name in BEAT else _OF_ROUTES)  # fmt: skip
                else:
                    self._tell(file, value, f"{name}, which {earlier} sets too",
                               "Celery takes one of them, and all are imported: remove the others.")  # fmt: skip
            self._name_other_uses(file, tree, names)
            has_whole = any(whole and name in names for name, _, whole in _given(tree))
            for node in walk(tree) if has_whole else ():
                if isinstance(node, ast.If) and (
                    named := sorted(names & {name for name, _, whole in _given(node) if whole})
                ):
                    text = f"{', '.join(named)} where {ast.unparse(node.test)}"
                    self._tell(
                        file,
                        node.test,
                        text,
                        "The import reads all of it: remove the parts that do not apply.",
                    )

    def _replaced(self, tree: ast.AST) -> dict[int, int]:
        """Return the values that a later assignment replaces. The configuration of another application replaces none."""
        replaced = _replaced(tree)
        if not self.owners.are_several:
            return replaced
        of_lines = {
            node.lineno: app for node in ast.iter_child_nodes(tree)
            if isinstance(node, ast.Assign) and (app := self.owners.of(node.value))
        }  # fmt: skip
        by_value = {id(value): value for _, value, _ in _given(tree)}
        return {
            value: line for value, line in replaced.items()
            if not belong_apart(self.owners.of(by_value[value]), of_lines.get(line, ""))
        }  # fmt: skip

    def _empties_others(self, tree: ast.Module, name: str) -> bool:
        """Return whether other files alone give a setting entries."""
        giving = [
            other
            for other in self._trees.values()
            if any(key == name and whole and _is_filled(value) for key, value, whole in _given(other))
            or any(item.setting == name for item in _items(other))
        ]
        return bool(giving) and all(other is not tree for other in giving)

    def _name_other_uses(self, file: str, tree: ast.Module, names: Collection[str]) -> None:
        """Record a gap for each place that reads such a dict, unless it merges the dict or changes an entry by its key.
        The place may change entries by another name."""
        parents = parents_of(tree)
        merged_parts = {id(part) for name, value, _ in _given(tree) if name in names for part in walk(value)}
        for node in walk(tree):
            if not isinstance(node, ast.Name) or node.id not in names or not isinstance(node.ctx, ast.Load):
                continue
            if id(node) in merged_parts or not self._is_of_setting(tree, node):
                continue
            around = parents.get(id(node))
            if isinstance(around, ast.Attribute) and around.attr in CHANGING and _is_called(around, parents):
                continue
            while isinstance(around, ast.Subscript) and isinstance(around.ctx, ast.Load):
                around = parents.get(id(around))
            if isinstance(around, ast.Subscript):
                continue  # the entry is set or removed, which is mapped or named
            text = ast.unparse(around).partition("\n")[0] if around is not None else node.id
            self._tell(file, node, f"{node.id}, which other code reads: {text}",
                       "The code may change entries. The import takes the entries as they are written: see what the code "
                       "does.")  # fmt: skip

    def _is_of_setting(self, tree: ast.Module, node: ast.Name) -> bool:
        """Return whether a name means a dict of these settings where it stands."""
        parents = parents_of(tree)
        statements = [
            part if isinstance(part, ast.ImportFrom) else parents.get(id(part))
            for part in bindings_at(tree, node, node.id)
        ]
        return any(
            isinstance(part, ast.ImportFrom)
            or (isinstance(part, ast.Assign | ast.AnnAssign) and id(part.value) in self.taken)
            for part in statements
        )

    def _name_late(self, tree: ast.Module, file: str, name: str, value: ast.expr) -> None:
        self._tell(file, value, f"{ast.unparse(value)}, which changes {name} after line {_merges(tree)[name]} copied it",
                   "The copy lacks it, and it is not imported: remove it, or move it before the copy.")  # fmt: skip

    def _name_item(self, file: str, tree: ast.Module, item: _Item, names: Collection[str]) -> None:
        """Record a gap for an item that is not certain, or has the key of another item."""
        is_route = item.setting in self._of_routes
        by_hand = _BY_CODE if not is_route else "Write `route` into each action that needs it."
        is_alone = item.key not in self._keys(names)
        if item.is_certain and is_alone:
            return
        if item.is_chosen and is_alone and not is_route and not _is_late(tree, item.setting, item.value):
            self._tell(file, item.value, f"the item {item.key} of {item.setting}, which counts {item.condition}",
                       "It is imported: take it out if it is not in force.")  # fmt: skip
            return
        self.unmapped += not is_route
        reason = "which also stands at another place" if item.is_certain else f"which counts {item.condition}"
        self._tell(file, item.value, f"the item {item.key} of {item.setting}, {reason}",
                   f"It is not imported: see whether it is in force. {by_hand}")  # fmt: skip

    def _name_left_of(self, file: str, name: str, value: ast.expr, whole: bool) -> None:
        by_hand = _BY_CODE if name not in self._of_routes else "Write `route` into each action that needs it."
        if not whole or not isinstance(value, ast.Dict):
            parts = _parts(value)
            if name in ROUTES and is_list_of_pairs(value):
                self._tell(file, value, f"{name} is a list of pairs, which Celery refuses: {ast.unparse(value)}",
                           "Celery takes such a list within another list: correct it, and import again.")  # fmt: skip
            elif (changed := _entry_changed(self._trees[file], value)) is not None:
                statement, is_added = changed
                self._tell(file, value, f"{ast.unparse(statement)}, which changes an entry",
                           "The entry is imported with its earlier value: write "
                           f"{'the value after this statement' if is_added else 'this value'} into the entry, and import "
                           "again.")  # fmt: skip
            elif not whole or parts is None or not parts <= self._dicts:
                self.unmapped += name not in self._of_routes
                self._tell(file, value, f"{name} is computed: {ast.unparse(value)}", by_hand)
        for choice in _choices(value) if whole else ():
            self._tell(file, choice.test, f"{name} where {ast.unparse(choice.test)}",
                       "The import reads all of it: remove the parts that do not apply.")  # fmt: skip
        for inline in _inline(value) if whole else ():
            for key, item in zip(inline.keys, inline.values, strict=True):
                is_part = key is None and (_parts(item) is not None and _parts(item) <= self._dicts)  # type: ignore[operator]
                if not isinstance(key, ast.Constant) and not is_part:
                    self.unmapped += name not in self._of_routes
                    self._tell(file, item, f"an entry of {name} is computed: {ast.unparse(item)}", by_hand)

    def _left_out(self, tree: ast.Module) -> Collection[int]:
        """Return the values of settings in a module that another assignment replaces."""
        return {*self._replaced(tree), *self._lost}

    def _merged_names(self) -> dict[str, set[str]]:
        """Return the names of the dicts from which each setting is merged, by setting."""
        merged: dict[str, set[str]] = {}
        for tree in self._trees.values():
            for name, value, _ in _given(tree):
                if name in BEAT | ROUTES:
                    merged.setdefault(name, set()).update((_parts(value) or set()) - {name})
        return merged

    def _parts(self, settings: Iterable[str]) -> set[str]:
        """Return the names of the dicts from which these settings are merged, which may be in other files."""
        names: set[str] = set()
        waiting = set(settings)
        while waiting:
            further = {
                part
                for tree in self._trees.values()
                for name, value, _ in _given(tree)
                if name in waiting and id(value) not in self._lost
                for part in _parts(value) or ()
                if part in self._dicts
            }
            waiting = further - names
            names |= further
        return names


def _is_called(node: ast.AST, parents: Mapping[int, ast.AST]) -> bool:
    around = parents.get(id(node))
    return isinstance(around, ast.Call) and around.func is node


@dataclass(frozen=True, slots=True)
class _Item:
    """An item that a module gives a setting: `beat_schedule["often"] = {...}`."""

    setting: str
    key: str
    value: ast.Dict
    condition: str
    """The place where it stands; empty at the top of its module, where it counts in any case."""
    place: ast.AST

    @property
    def is_certain(self) -> bool:
        return not self.condition

    @property
    def is_chosen(self) -> bool:
        """True for an item that counts if the condition of an `if` is met."""
        return self.condition.startswith("where ")


@dataclass(frozen=True, slots=True)
class _Change:
    """A call or a statement that takes entries out of a setting, or changes them in a way that is not mapped."""

    node: ast.expr
    setting: str
    key: str | None
    """The key of the entry that is taken out; None for any other change."""
    is_certain: bool


@once
def _changes(tree: ast.AST) -> list[_Change]:
    """Return the statements and calls that remove entries from settings, such as `del` and `pop`."""
    return list(_taken_out(tree)) if isinstance(tree, ast.Module) else []


def _taken_out(tree: ast.Module) -> Iterator[_Change]:
    certain = {id(part) for part in tree.body}
    certain |= {id(part.value) for part in tree.body if isinstance(part, ast.Expr | ast.Assign)}
    places = {id(item.place) for item in _items(tree)}
    for node in walk(tree):
        if isinstance(node, ast.Delete):
            for target in node.targets:
                if isinstance(target, ast.Subscript):
                    is_entry = isinstance(target.slice, ast.Constant) and not isinstance(
                        target.value, ast.Subscript
                    )
                    key = (
                        str(target.slice.value)
                        if is_entry and isinstance(target.slice, ast.Constant)
                        else None
                    )
                    yield _Change(target, _named(target), key, id(node) in certain)
        elif (
            isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CHANGING
        ):
            base = node.func.value
            first = node.args[0] if node.args else None
            is_update = node.func.attr == "update" and len(node.args) == 1 and not node.keywords
            if is_update or id(node) in places:
                continue  # the setting is mapped, or reported where it is computed
            is_entry = (
                node.func.attr == "pop"
                and isinstance(first, ast.Constant)
                and not isinstance(base, ast.Subscript)
            )
            key = str(first.value) if is_entry and isinstance(first, ast.Constant) else None
            yield _Change(node, _named(base), key, id(node) in certain)


CHANGING = frozenset({"clear", "pop", "popitem", "setdefault", "update"})


@once
def _removed(tree: ast.AST) -> set[tuple[str, str]]:
    """Return setting and key of each entry of a module that the module takes out in any case, after it gave the entry."""
    entries: dict[tuple[str, str], int] = {
        (item.setting, item.key): item.value.lineno for item in _items(tree)
    }
    for name, value, whole in _given(tree):
        for key in value.keys if whole and isinstance(value, ast.Dict) else ():
            if isinstance(key, ast.Constant):
                place = name, str(key.value)
                entries[place] = max(value.lineno, entries.get(place, 0))
    return {
        (change.setting, change.key)
        for change in _changes(tree)
        if change.is_certain
        and change.key is not None
        and change.node.lineno > entries.get((change.setting, change.key), change.node.lineno)
        and not _is_late(tree, change.setting, change.node)
    }


@once
def _merges(tree: ast.AST) -> dict[str, int]:
    """Return the names of the dicts that a statement at the top of a module copies into another, with its line. What is
    changed in such a dict afterwards is not in the copy."""
    lines: dict[str, int] = {}
    for statement in ast.iter_child_nodes(tree):
        for name, value, _ in _given(statement) if isinstance(statement, ast.Assign | ast.Expr) else ():
            for part in () if isinstance(value, ast.Name) else (_parts(value) or set()) - {name}:
                lines.setdefault(part, getattr(statement, "lineno", 1))
    return lines


def _is_late(tree: ast.AST, name: str, node: ast.expr) -> bool:
    """Return whether a part of a module changes a dict after a copy of it was made."""
    return name in _merges(tree) and node.lineno > _merges(tree)[name]


@once
def _replaced(tree: ast.AST) -> dict[int, int]:
    """Return the values of settings that a later assignment of the module replaces, with the line of that assignment."""
    last: dict[str, tuple[int, int]] = {}
    for number, statement in enumerate(ast.iter_child_nodes(tree)):
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            target = statement.targets[0]
            name = _item(target) or ("" if isinstance(target, ast.Subscript) else _named(target))
            texts = {
                ast.unparse(part)
                for part in ast.walk(statement.value)
                if isinstance(part, ast.Name | ast.Attribute)
            }
            if name and not any(text == name or text.endswith(f".{name}") for text in texts):
                last[name] = (number, statement.lineno)
    return {
        id(value): last[name][1]
        for number, statement in enumerate(ast.iter_child_nodes(tree))
        if isinstance(statement, ast.Assign | ast.AnnAssign | ast.AugAssign | ast.Expr)
        for name, value, _ in (_given(statement) if last else ())
        if name in last and number < last[name][0]
    }


@once
def _items(tree: ast.AST) -> list[_Item]:
    """Return the items with a literal key and a dict that a module gives a setting."""
    return list(_found_items(tree))


def _found_items(tree: ast.AST) -> Iterator[_Item]:
    around: dict[int, str] = {}
    for node in walk(tree):  # parents come before their children
        outer = text = around.get(id(node), "")
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            text = f"within {node.name}"
        elif isinstance(node, ast.For | ast.While | ast.Try | ast.With | ast.Match):
            text = f"within {type(node).__name__.lower()}"
        elif isinstance(node, ast.If) and not outer.startswith("within "):
            text = f"{outer} and {ast.unparse(node.test)}" if outer else f"where {ast.unparse(node.test)}"
        if text:
            around |= {id(part): text for part in [node, *ast.iter_child_nodes(node)]}
        if isinstance(node, ast.If) and text != outer:
            test = ast.unparse(ast.UnaryOp(ast.Not(), node.test))
            otherwise = f"{outer} and {test}" if outer else f"where {test}"
            around |= {id(part): otherwise for part in node.orelse}
    for node in walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            yield from _items_of_call(node, node.func, around.get(id(node), ""))
        if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Subscript):
            continue
        target = node.targets[0]
        is_item = isinstance(target.slice, ast.Constant) and not isinstance(target.value, ast.Subscript)
        if is_item and _item(target) is None and isinstance(node.value, ast.Dict) and len(node.targets) == 1:
            assert isinstance(target.slice, ast.Constant)
            yield _Item(_named(target), str(target.slice.value), node.value, around.get(id(node), ""), node)


def _items_of_call(node: ast.Call, function: ast.Attribute, condition: str) -> Iterator[_Item]:
    """Yield the items that `setdefault("often", {...})` and `update(often={...})` give."""
    if isinstance(function.value, ast.Subscript):
        return
    name = _named(function.value)
    if function.attr == "setdefault" and len(node.args) == 2 and isinstance(node.args[1], ast.Dict):
        if isinstance(node.args[0], ast.Constant):
            yield _Item(name, str(node.args[0].value), node.args[1], condition, node)
    elif function.attr == "update" and not node.args and name in BEAT | ROUTES:
        for word in node.keywords:
            if word.arg is not None and isinstance(word.value, ast.Dict):
                yield _Item(name, word.arg, word.value, condition, node)


@once
def _definitions(tree: ast.AST) -> list[tuple[str, ast.expr]]:
    """Return name and value of each setting and dict that a module gives as a whole, and does not only add to."""
    definitions: list[tuple[str, ast.expr]] = []
    for node in walk(tree):
        if isinstance(node, ast.Assign):
            target = node.targets[0]
            name = _item(target) or ("" if isinstance(target, ast.Subscript) else _named(target))
            definitions.append((name, node.value))
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            definitions.append((_named(node.target), node.value))
        elif isinstance(node, ast.Dict | ast.keyword):
            definitions += [(name, value) for name, value in _setting_within(node)]
    return [(name, value) for name, value in definitions if name]


def _setting_within(node: ast.Dict | ast.keyword) -> Iterator[tuple[str, ast.expr]]:
    """Yield the settings that an item of a dict, or a word of a call, gives."""
    if isinstance(node, ast.keyword):
        if node.arg in BEAT | ROUTES:
            yield str(node.arg), node.value
        return
    for key, value in zip(node.keys, node.values, strict=True):
        if isinstance(key, ast.Constant) and key.value in BEAT | ROUTES:
            yield str(key.value), value


def _is_filled(value: ast.expr) -> bool:
    return not isinstance(value, ast.Dict) or bool(value.keys)


def _parts(value: ast.expr) -> set[str] | None:
    """Return the names of the dicts from which a value is merged; None if it contains anything else."""
    if isinstance(value, ast.Name):
        return {value.id}
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "dict":
        return _parts(value.args[0]) if len(value.args) == 1 and not value.keywords else None
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.BitOr):
        first, second = _parts(value.left), _parts(value.right)
        return None if first is None or second is None else first | second
    if isinstance(value, ast.IfExp):
        first, second = _parts(value.body), _parts(value.orelse)
        return None if first is None or second is None else first | second
    if isinstance(value, ast.Dict):
        parts = [_parts(item) for key, item in zip(value.keys, value.values, strict=True) if key is None]
        return {name for part in parts for name in part or ()}
    return None


def _choices(value: ast.expr) -> list[ast.IfExp]:
    """Return the conditional expressions between dicts in a value."""
    merged = [item for inline in _inline(value) for key, item in zip(inline.keys, inline.values, strict=True)
              if key is None]  # fmt: skip
    return [part for part in [value, *merged] if isinstance(part, ast.IfExp)]


def _inline(value: ast.expr) -> list[ast.Dict]:
    """Return the dicts in a value: the value itself, and the dicts that it merges in place."""
    if isinstance(value, ast.Dict):
        merged = [item for key, item in zip(value.keys, value.values, strict=True) if key is None]
        return [value, *(inline for item in merged for inline in _inline(item))]
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.BitOr):
        return [*_inline(value.left), *_inline(value.right)]
    if isinstance(value, ast.IfExp):
        return [*_inline(value.body), *_inline(value.orelse)]
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "dict":
        return _inline(value.args[0]) if len(value.args) == 1 and not value.keywords else []
    return []


@once
def _given(tree: ast.AST) -> list[tuple[str, ast.expr, bool]]:
    """Return each assigned name and its value, and whether the assignment sets the whole value instead of one item."""
    return list(_assignments(tree))


def _assignments(tree: ast.AST) -> Iterator[tuple[str, ast.expr, bool]]:
    for node in walk(tree):
        if isinstance(node, ast.Assign) and (key := _item(node.targets[0])) is not None:
            yield key, node.value, True
        elif isinstance(node, ast.Dict):
            for key_node, value in zip(node.keys, node.values, strict=True):
                if isinstance(key_node, ast.Constant) and key_node.value in BEAT | ROUTES:
                    yield str(key_node.value), value, True
        elif isinstance(node, ast.Assign):
            yield _named(node.targets[0]), node.value, not isinstance(node.targets[0], ast.Subscript)
        elif isinstance(node, ast.AnnAssign | ast.AugAssign) and node.value is not None:
            yield _named(node.target), node.value, not isinstance(node.target, ast.Subscript)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr == "update" and node.args:
                yield _named(node.func.value), node.args[0], not isinstance(node.func.value, ast.Subscript)
        elif isinstance(node, ast.keyword):
            yield node.arg or "", node.value, True


def _entry_changed(tree: ast.Module, value: ast.expr) -> tuple[ast.stmt, bool] | None:
    """Return the assignment to a part of an entry, such as `beat_schedule["often"]["schedule"] = 60`. The second value is
    True for `+=`, which computes the part from the earlier value."""
    for node in walk(tree):
        if isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign) and node.value is value:
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            if isinstance(target, ast.Subscript) and isinstance(target.value, ast.Subscript):
                is_added = isinstance(node, ast.AugAssign)
                return (node, is_added) if _item(target.value) is None else None
    return None


def _item(target: ast.expr) -> str | None:
    """Return the key of `conf["beat_schedule"]`; None for anything but an item that is a schedule or routes."""
    if isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Constant):
        key = target.slice.value
        return str(key) if key in BEAT | ROUTES and _named(target) not in BEAT | ROUTES else None
    return None


def _named(target: ast.expr) -> str:
    while isinstance(target, ast.Subscript):
        target = target.value
    return target.attr if isinstance(target, ast.Attribute) else getattr(target, "id", "")


def unread_names(trees: Mapping[str, ast.Module], is_application_known: bool) -> frozenset[str]:
    """Return the names of schedules and of other mapped settings that the application does not read. The application
    reads modules by `config_from_object`. Its `namespace` decides which names. Where it may read them in another way,
    it reads all."""
    calls = [node for tree in trees.values() for node in walk(tree) if isinstance(node, ast.Call)]
    own = {namespace_of(node) for node in calls if called(node) == "Celery" and namespace_node(node)}
    prefixes: set[str | None] = set()
    for node in calls:
        words = {word.arg: word.value for word in node.keywords}
        function = called(node)
        if function == "config_from_object":
            prefixes |= own if namespace_node(node) is None and own else {namespace_of(node)}
        elif function == "config_from_envvar" or "config_source" in words:
            return frozenset()
        elif function == "update" and ast.unparse(node.func).endswith("conf.update"):
            if None in words or not all(isinstance(value, ast.Dict) for value in node.args):
                return frozenset()
        elif function.endswith("Celery") and None in words:
            return frozenset()
    if None in prefixes or not (prefixes or is_application_known):
        return frozenset()
    return frozenset(
        name for name in NAMES_OF_MAPPED if not is_read(name, "CELERY" in prefixes, "" in prefixes)
    )
