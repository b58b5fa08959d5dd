"""The place that Celery takes if several places give a setting. The spelling of the setting decides, and the kind of
place."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from penstock_import.celery_calls import called, namespace_of, walk
from penstock_import.celery_setting_names import today

_GIVING = frozenset({"Celery", "add_defaults", "update"})
"""The calls that give an application settings, by keyword arguments or in a dict."""


@dataclass(frozen=True, slots=True)
class Place:
    """A place that gives the whole value of a setting."""

    file: str
    name: str
    value: ast.expr
    kind: str
    """`module` for a name of a module or a class; `code` for the configuration of an application; otherwise empty."""
    is_certain: bool
    """False if only running the code would tell whether the place counts."""

    @property
    def line(self) -> str:
        return f"{self.file}:{self.value.lineno}"


def lost_places(
    trees: Mapping[str, ast.Module], names: Collection[str], parts: Mapping[str, Collection[str]]
) -> dict[int, Place]:
    """Return the place that Celery takes, by the value of each place that it therefore does not take. `parts` are names that
    each setting is merged of: a dict of such a name is a part of it.

    With a namespace, Celery takes the name with the prefix before any other, wherever they stand. Without, it takes what code
    gives the configuration before what a module gives."""
    prefixes = list(_namespaces(trees))
    if not prefixes or len(set(prefixes)) > 1:
        return {}
    places: dict[str, list[Place]] = {}
    for file, tree in trees.items():
        for place in _places(file, tree, names):
            places.setdefault(today(place.name), []).append(place)
    passed_over: dict[int, Place] = {}
    for setting, same in places.items():
        if prefixes[0] == "CELERY":
            taking = [place for place in same if place.name == f"CELERY_{setting.upper()}"]
            rivals = [place for place in same if place not in taking]
        elif prefixes[0] == "" and len(prefixes) == 1:
            taking = [place for place in same if place.kind == "code" and place.name == setting]
            rivals = [place for place in same if place.kind == "module"]
        else:
            continue
        winner = next((place for place in taking if place.is_certain), None)
        for place in rivals if winner is not None else ():
            assert winner is not None
            is_part = place.name in parts.get(winner.name, ())
            if not is_part and getattr(place.value, "id", "") != winner.name:
                passed_over[id(place.value)] = winner
    return passed_over


def _namespaces(trees: Mapping[str, ast.Module]) -> Iterator[str]:
    """Yield the prefix of each call that names a source of settings: empty without a prefix, `?` for an unknown one."""
    for tree in trees.values():
        for node in walk(tree):
            if not isinstance(node, ast.Call):
                continue
            words = {word.arg for word in node.keywords}
            is_other = called(node) == "Celery" and {"namespace", "config_source", None} & words
            if is_other or called(node) == "config_from_envvar":
                yield "?"
            elif called(node) == "config_from_object":
                prefix = namespace_of(node)
                yield "?" if prefix is None else prefix


def _places(file: str, tree: ast.Module, names: Collection[str]) -> Iterator[Place]:
    """Yield each place of a module that gives the whole value of one of these settings."""
    certain = set(_certain(tree))
    for node in walk(tree):
        is_certain = id(node) in certain
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            name, kind = _target(target)
            if name in names:
                yield Place(file, name, node.value, kind, is_certain)
        elif isinstance(node, ast.Call):
            for name, value in _words(node):
                if name in names:
                    is_code = called(node) == "Celery" or "conf" in ast.unparse(node.func).split(".")
                    is_code = is_code or called(node) == "add_defaults"
                    yield Place(file, name, value, "code" if is_code else "", is_certain)


def _target(target: ast.expr) -> tuple[str, str]:
    """Return the name of a setting that an assignment may give, and the kind of its place."""
    if isinstance(target, ast.Name):
        return target.id, "module"
    if isinstance(target, ast.Attribute):
        name, base = target.attr, target.value
    elif isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Constant):
        name, base = str(target.slice.value), target.value
    else:
        return "", ""
    last = base.attr if isinstance(base, ast.Attribute) else getattr(base, "id", "")
    return name, "code" if last == "conf" else ""


def _words(call: ast.Call) -> Iterator[tuple[str, ast.expr]]:
    """Yield the names and values in the keyword arguments of a call, and in the dicts among its arguments."""
    if called(call) not in _GIVING:
        return
    for word in call.keywords:
        if word.arg is not None:
            yield word.arg, word.value
    for node in call.args:
        for key, value in zip(node.keys, node.values, strict=True) if isinstance(node, ast.Dict) else ():
            if isinstance(key, ast.Constant):
                yield str(key.value), value


def _certain(tree: ast.Module) -> Iterator[int]:
    """Yield the statements that always run, and the calls in them: those at the top of a module, in a class there, and
    in a receiver of `on_after_configure`."""
    waiting: list[ast.stmt] = list(tree.body)
    while waiting:
        statement = waiting.pop()
        if isinstance(statement, ast.ClassDef):
            waiting += statement.body
        elif isinstance(statement, ast.FunctionDef):
            if any("on_after_configure" in ast.unparse(part) for part in statement.decorator_list):
                waiting += statement.body
        elif isinstance(statement, ast.Assign | ast.AnnAssign | ast.Expr):
            yield id(statement)
            if statement.value is not None:
                yield id(statement.value)
