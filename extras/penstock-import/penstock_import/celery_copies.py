"""The schedules and routes that a module takes from a class of the sources, or from a copy of a dict. Each is written as the
merge of dicts that it is."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping

from penstock_import.celery_calls import bound_names, called, forget, walk
from penstock_import.celery_members import imported_modules
from penstock_import.celery_settings import BEAT, ROUTES

_COPYING = frozenset({"copy", "deepcopy"})
_MAX_ROUNDS = 8
"""The number of dicts that may stand between a setting and the literals that it is merged of."""


def write_out_copies(trees: Mapping[str, ast.Module], modules: Mapping[str, ast.Module]) -> None:
    """Replace members of classes and copies of dicts, from which schedules and routes are made, by `{**name}`. `modules` are
    the modules of the source, by each name that they may be imported by, and by their paths behind a dot."""
    classes, names = _Classes(trees, modules), {*BEAT, *ROUTES}
    for _ in range(_MAX_ROUNDS):
        further = set[str]()
        for tree in trees.values():
            is_changed = False
            for node in walk(tree):
                is_changed |= _rewrite(node, names, classes, tree)
            if is_changed:
                forget(tree)
            for node in walk(tree):
                for name, value in _values(node):
                    further |= set(_merged(value)) if name in names else set()
        if further <= names:
            return
        names |= further


def _rewrite(node: ast.AST, names: Collection[str], classes: _Classes, tree: ast.Module) -> bool:
    """Write the value that a node gives one of these names as a merge. Return whether it has changed."""
    match node:
        case ast.Assign(targets=[target], value=value) if _name_of(target) in names:
            node.value = _plain(value, classes, tree)
            return node.value is not value
        case ast.AnnAssign(target=target, value=ast.expr() as value) if _name_of(target) in names:
            node.value = _plain(value, classes, tree)
            return node.value is not value
        case ast.keyword(arg=str(name), value=value) if name in names:
            node.value = _plain(value, classes, tree)
            return node.value is not value
        case ast.Dict(keys=keys, values=values):
            is_changed = False
            for number, (key, value) in enumerate(zip(keys, values, strict=True)):
                if isinstance(key, ast.Constant) and key.value in BEAT | ROUTES:
                    values[number] = _plain(value, classes, tree)
                    is_changed |= values[number] is not value
            return is_changed
        case ast.Call(func=ast.Attribute(attr="update", value=base), args=args) if _name_of(base) in names:
            if node.keywords and len(args) <= 1:
                merged = _merge([*args, *node.keywords], node)
                node.args, node.keywords = [merged], []
                return True
            if len(args) == 1:
                node.args = [_plain(args[0], classes, tree)]
                return node.args[0] is not args[0]
    return False


def _plain(value: ast.expr, classes: _Classes, tree: ast.Module) -> ast.expr:
    """Return a value in which copies are merges, and members of classes are names; the value itself if it has none."""
    match value:
        case ast.Attribute(attr=member) if classes.has(value, tree):
            return ast.copy_location(ast.Name(member, ast.Load()), value)
        case ast.Call(
            func=ast.Attribute(attr="copy", value=ast.Name() | ast.Attribute() as base), args=[], keywords=[]
        ):
            return _merge([_plain(base, classes, tree)], value)
        case ast.Call(args=[ast.Name() | ast.Attribute() as base], keywords=[]) if called(value) in _COPYING:
            return _merge([_plain(base, classes, tree)], value)
        case ast.Call(func=ast.Name(id="dict"), args=args, keywords=[_, *_] as words) if len(args) <= 1:
            if all(isinstance(part, ast.Name | ast.Attribute | ast.Dict | ast.Call) for part in args):
                parts = [_plain(part, classes, tree) for part in args]
                return _merge([*parts, *words], value, classes, tree)
        case ast.Dict(keys=keys, values=values):
            items = [
                _plain(item, classes, tree) if key is None else item
                for key, item in zip(keys, values, strict=True)
            ]
            if any(item is not own for item, own in zip(items, values, strict=True)):
                return ast.copy_location(ast.Dict(keys, items), value)
        case ast.BinOp(op=ast.BitOr(), left=left, right=right):
            sides = _plain(left, classes, tree), _plain(right, classes, tree)
            if sides != (left, right):
                return ast.copy_location(ast.BinOp(sides[0], value.op, sides[1]), value)
    return value


def _merge(
    parts: list[ast.expr | ast.keyword],
    place: ast.expr,
    classes: _Classes | None = None,
    tree: ast.Module | None = None,
) -> ast.Dict:
    """Return the dict that merges the dicts and the arguments of a call."""
    keys: list[ast.expr | None] = []
    values: list[ast.expr] = []
    for part in parts:
        value = part.value if isinstance(part, ast.keyword) else part
        if classes is not None and tree is not None:
            value = _plain(value, classes, tree)
        is_item = isinstance(part, ast.keyword) and part.arg is not None
        keys.append(ast.copy_location(ast.Constant(part.arg), value) if is_item else None)  # type: ignore[union-attr]
        values.append(value)
    return ast.copy_location(ast.Dict(keys, values), place)


def _values(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Yield each name that a node gives a value, or adds a dict to."""
    match node:
        case ast.Assign(targets=[target], value=value):
            yield _name_of(target), value
        case ast.AnnAssign(target=target, value=ast.expr() as value):
            yield _name_of(target), value
        case ast.keyword(arg=str(name), value=value):
            yield name, value
        case ast.Call(func=ast.Attribute(attr="update", value=base), args=[value]):
            yield _name_of(base), value
        case ast.Dict(keys=keys, values=values):
            for key, value in zip(keys, values, strict=True):
                if isinstance(key, ast.Constant) and key.value in BEAT | ROUTES:
                    yield str(key.value), value


def _merged(value: ast.expr) -> Iterator[str]:
    """Yield the names of the dicts from which a value is merged."""
    match value:
        case ast.Name(id=name):
            yield name
        case ast.Dict(keys=keys, values=values):
            for key, part in zip(keys, values, strict=True):
                yield from _merged(part) if key is None else ()
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            yield from [*_merged(left), *_merged(right)]


def _name_of(target: ast.expr) -> str:
    match target:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case ast.Subscript(slice=ast.Constant(value=str(name))) if name in BEAT | ROUTES:
            return name
    return ""


class _Classes:
    """The classes of the sources, and the names that they give once."""

    def __init__(self, trees: Mapping[str, ast.Module], modules: Mapping[str, ast.Module]) -> None:
        self._modules = modules
        self._files = {id(tree): file for file, tree in trees.items()}
        self._classes: dict[str, list[ast.ClassDef]] = {}
        self._instances: dict[str, list[str]] = {}
        self._given: dict[str, int] = {}
        """By name: the number of statements that give it a value."""
        for tree in trees.values():
            for node in walk(tree):
                if isinstance(node, ast.ClassDef):
                    self._classes.setdefault(node.name, []).append(node)
                for target, value in _assigned(node):
                    self._given[target] = self._given.get(target, 0) + 1
                    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name):
                        self._instances.setdefault(target, []).append(value.func.id)

    def has(self, node: ast.Attribute, tree: ast.Module) -> bool:
        """Return whether an expression is a dict that a class gives, also through its bases, or a module of the sources.
        Nothing else gives the name a value."""
        holder = node.value
        if isinstance(holder, ast.Call) and not holder.args and not holder.keywords:
            holder = holder.func
        name = holder.attr if isinstance(holder, ast.Attribute) else getattr(holder, "id", "")
        makers = self._instances.get(name, [])
        name = makers[0] if len(makers) == 1 and self._given[name] == 1 else name
        is_single = (
            self._given.get(node.attr) == 1 and not bound_names(tree)[node.attr] - self._given[node.attr] > 0
        )
        return is_single and (self._gives(name, node.attr, frozenset()) or self._is_of_module(node, tree))

    def _is_of_module(self, node: ast.Attribute, tree: ast.Module) -> bool:
        paths = dict(imported_modules(self._files.get(id(tree), ""), tree))
        source = self._modules.get(paths.get(ast.unparse(node.value), ""))
        return source is not None and any(
            target == node.attr and isinstance(value, ast.Dict)
            for part in source.body
            for target, value in _assigned(part)
        )

    def _gives(self, name: str, member: str, below: frozenset[str]) -> bool:
        classes = self._classes.get(name, [])
        if len(classes) != 1 or name in below:
            return False
        values = [value for part in classes[0].body for target, value in _assigned(part) if target == member]
        if values:
            return isinstance(values[0], ast.Dict)
        bases = [
            base.attr if isinstance(base, ast.Attribute) else getattr(base, "id", "")
            for base in classes[0].bases
        ]
        return any(self._gives(base, member, below | {name}) for base in bases)


def _assigned(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Yield each variable that a statement gives a value."""
    targets = (
        node.targets
        if isinstance(node, ast.Assign)
        else [node.target]
        if isinstance(node, ast.AnnAssign)
        else []
    )
    value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
    for target in targets:
        if isinstance(target, ast.Name | ast.Attribute) and value is not None:
            yield target.id if isinstance(target, ast.Name) else target.attr, value
