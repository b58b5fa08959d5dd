"""The schedules that a module computes of literals, written out: entries that its functions return, and those that a
comprehension or a loop makes. Nothing is run: names are replaced by what they mean, and literals are computed."""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from typing import Any

from penstock_import.celery_calls import absolute_path, bound_names, called, children, forget, once, walk
from penstock_import.celery_members import constants_of, imported_modules, is_plain
from penstock_import.celery_scopes import mark_other_times, other_time, parents_of
from penstock_import.celery_settings import BEAT
from penstock_import.environment_defaults import with_defaults

_MOST_ENTRIES = 1000
_MOST_PARTS = 200_000
_DEEPEST = 12
_Values = Mapping[str, ast.expr]
"""The meaning of each name that a function, a comprehension or a loop binds."""
_SCOPES = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda
_UNREAD = ast.SetComp | ast.Lambda | ast.NamedExpr | ast.Await | ast.Yield | ast.YieldFrom
_OF_SCHEDULES = BEAT | {"PeriodicTask", "add_periodic_task", "run_every"}
_OF_ZONE = frozenset({"CELERY_ENABLE_UTC", "CELERY_TIMEZONE", "enable_utc", "timezone"})
_READING = frozenset({"count", "get", "index", "items", "keys", "values"})
_READERS = frozenset(
    {"dict", "enumerate", "frozenset", "len", "list", "range", "set", "sorted", "tuple", "zip"}
)
_TYPES: Mapping[str, Callable[..., Any]] = {
    "float": float,
    "int": int,
    "len": len,
    "round": round,
    "str": str,
}
_OF_TEXTS = frozenset(
    {
        "capitalize",
        "format",
        "join",
        "lower",
        "lstrip",
        "removeprefix",
        "removesuffix",
        "replace",
        "rpartition",
    }
    | {"rsplit", "rstrip", "split", "strip", "title", "upper"}
)
"""The methods of texts that are computed."""
_WIDE = re.compile(r"\d{4}")
"""A width in the format of a text that is too large to be computed."""


class _Unknown(Exception):
    """Raised for a part that only running the code would tell."""


def write_out_schedules(trees: Mapping[str, ast.Module], modules: Mapping[str, ast.Module]) -> None:
    """Replace computed schedules in all files by the literals that they are. `modules` are the modules of the source, by
    each name that they may be imported by, and by their paths behind a dot."""
    makers, names = _Makers(trees, modules), set(BEAT)
    while True:
        for tree in trees.values():
            if _words(tree) & {*names, "add_periodic_task"}:
                _Writer(tree, names, makers).write()
        further = {
            part
            for tree in trees.values()
            if _words(tree) & names
            for node in walk(tree)
            for name, value in _given(node)
            if name in names
            for part in _parts(value)
        }
        if further <= names:
            break
        names |= further  # a schedule may be merged of dicts that are merged of others

    for tree in trees.values():
        _take_out_zones(tree, trees)


def _take_out_zones(tree: ast.Module, trees: Mapping[str, ast.Module]) -> None:
    """Take the zone of schedules out of an `if` that gives all schedules, too: without the zone there is no schedule."""
    for number, statement in enumerate(tree.body):
        if not isinstance(statement, ast.If) or statement.orelse:
            continue
        values = [value for part in statement.body for name, value in _given(part) if name in BEAT]
        zones = [part for part in statement.body if _is_zone(part, tree)]
        if not values or not zones:
            continue
        inside = set(map(id, ast.walk(statement)))
        modules = {value.id for value in values if isinstance(value, ast.Name)}
        if not any(
            _mentions(other, inside, frozenset() if other is tree else modules) for other in trees.values()
        ):
            statement.body = [part for part in statement.body if part not in zones]
            tree.body[number + 1 : number + 1] = zones
            forget(tree)
            return


def _mentions(tree: ast.Module, inside: Collection[int], modules: Collection[str]) -> bool:
    """Return whether a module has to do with schedules at another place than these. `modules` are the names of schedules
    that the place takes from modules, which may define them."""
    defined = {
        id(target)
        for node in walk(tree)
        if isinstance(node, ast.Assign)
        for target in node.targets
        if _setting(target) in modules or (isinstance(node.value, ast.Dict) and not node.value.keys)
    }
    return bool(_words(tree) & _OF_SCHEDULES) and any(
        not {getattr(node, field, None) for field in ("id", "attr", "arg", "value")}.isdisjoint(_OF_SCHEDULES)
        for node in walk(tree)
        if id(node) not in inside and id(node) not in defined
    )


def _is_zone(statement: ast.stmt, tree: ast.Module) -> bool:
    """Return whether a statement gives the zone of schedules a literal, and no other statement of the module does so."""
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant()):
            return name in _OF_ZONE and bound_names(tree)[name] == 1
    return False


@once
def _words(tree: ast.AST) -> frozenset[str]:
    """Return the names, the members, the words of calls, and the names of settings in texts of a module."""
    words: set[str] = set()
    for node in walk(tree):
        match node:
            case ast.Name(id=word) | ast.Attribute(attr=word) | ast.keyword(arg=str(word)):
                words.add(word)
            case ast.Constant(value=str(word)) if word in BEAT:
                words.add(word)
    return frozenset(words)


def _given(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Yield each name that a node gives a whole value, or a dict of further items."""
    match node:
        case ast.Assign(targets=[target], value=value) | ast.AugAssign(target=target, value=value):
            yield _setting(target), value
        case ast.AnnAssign(target=target, value=ast.expr() as value):
            yield _setting(target), value
        case ast.Call(func=ast.Attribute(attr="update", value=base), args=[value]):
            yield _setting(base), value
        case ast.keyword(arg=str(name), value=value):
            yield name, value
        case ast.Dict(keys=keys, values=values):
            for key, value in zip(keys, values, strict=True):
                if isinstance(key, ast.Constant) and key.value in BEAT:
                    yield str(key.value), value


def _parts(value: ast.expr) -> Iterator[str]:
    """Yield the names of the dicts of which a value is merged."""
    match value:
        case ast.Name(id=name):
            yield name
        case ast.Dict(keys=keys, values=values):
            for key, part in zip(keys, values, strict=True):
                yield from _parts(part) if key is None else ()
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            yield from [*_parts(left), *_parts(right)]
        case ast.Call(func=ast.Name(id="dict"), args=[part]):
            yield from _parts(part)
        case ast.IfExp(body=first, orelse=second):
            yield from [*_parts(first), *_parts(second)]


def _setting(target: ast.expr) -> str:
    """Return the name that an expression has as a whole: that of a variable, of a member, or of a setting as an item."""
    match target:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case ast.Subscript(slice=ast.Constant(value=str(name))) if name in BEAT:
            return name
    return ""


class _Makers:
    """The functions and the containers of all files."""

    def __init__(self, trees: Mapping[str, ast.Module], modules: Mapping[str, ast.Module]) -> None:
        self._trees, self._modules = trees, modules
        self._files = {id(tree): file for file, tree in trees.items()}
        self._loads: dict[str, list[tuple[ast.Module, ast.expr]]] = {}

    def defined(self, tree: ast.Module, name: str) -> tuple[ast.Module, ast.stmt] | None:
        """Return the statement at the top of a module that alone gives a name its meaning, with its module."""
        if bound_names(tree)[name] != 1 or name in tree.__dict__.get("overwritten", ()):
            return None
        for statement in tree.body:
            match statement:
                case ast.FunctionDef(name=own) if own == name:
                    return tree, statement
                case ast.Assign(targets=[ast.Name(id=own)]) | ast.AnnAssign(target=ast.Name(id=own)) if (
                    own == name
                ):
                    return tree, statement
                case ast.ImportFrom(names=aliases):
                    for alias in aliases:
                        if (alias.asname or alias.name) == name:
                            path = absolute_path(self._files.get(id(tree), ""), statement)
                            source = self._modules.get(("." if statement.level else "") + path)
                            is_other = source is not None and source is not tree
                            return (
                                self.defined(source, alias.name) if is_other and source is not None else None
                            )
        return None

    def container(self, tree: ast.Module, name: str) -> ast.expr | None:
        """Return the list, tuple or dict of a name, if nothing changes it."""
        definition = self.defined(tree, name)
        if definition is None:
            return None
        holder, statement = definition
        value = getattr(statement, "value", None)
        if not isinstance(value, ast.List | ast.Tuple | ast.Dict):
            return None
        if holder is not tree and any(isinstance(part, ast.Name) for part in ast.walk(value)):
            return None  # a name in it may mean something else in this module
        loads = self._loads_of(name)
        if (len(loads) == 1 and _is_entry(*loads[0])) or all(_is_merged(*load) for load in loads):
            return value
        is_fixed = len(loads) == 1 or _has_fixed_items(value)
        return value if is_fixed and all(_only_reads(*load) for load in loads) else None

    def gives(self, tree: ast.Module, statement: ast.ImportFrom, name: str) -> bool:
        """Return whether `import *` may give a module a name."""
        path = absolute_path(self._files.get(id(tree), ""), statement)
        source = self._modules.get(("." if statement.level else "") + path)
        return source is None or bool(bound_names(source)[name] or bound_names(source)["*"])

    def is_given_by_module(self, tree: ast.Module, node: ast.Attribute) -> bool:
        """Return whether an expression is the schedule of another module: `schedules.CELERY_BEAT_SCHEDULE`."""
        if node.attr not in BEAT or not isinstance(node.value, ast.Name):
            return False
        paths = dict(imported_modules(self._files.get(id(tree), ""), tree))
        source = self._modules.get(paths.get(node.value.id, ""))
        return source is not None and any(
            name == node.attr for part in source.body for name, _ in _given(part)
        )

    def _loads_of(self, name: str) -> list[tuple[ast.Module, ast.expr]]:
        """Return the places of all files that read a name, or a member of that name."""
        if name not in self._loads:
            self._loads[name] = [
                (tree, node)
                for tree in self._trees.values()
                if name in _words(tree)
                for node in walk(tree)
                if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load)
                if (node.id if isinstance(node, ast.Name) else node.attr) == name
            ]
        return self._loads[name]


def _has_fixed_items(value: ast.expr) -> bool:
    """Return whether no item of a container can be changed in place."""
    items = value.values if isinstance(value, ast.Dict) else getattr(value, "elts", [])
    mutable = (ast.List, ast.Dict, ast.Set, ast.Call, ast.Name)
    return not any(isinstance(part, mutable) for item in items for part in ast.walk(item))


def _is_entry(tree: ast.Module, node: ast.expr) -> bool:
    """Return whether a name stands as an item of a dict."""
    around = parents_of(tree).get(id(node))
    return isinstance(around, ast.Dict) and node in around.values


def _is_merged(tree: ast.Module, node: ast.expr) -> bool:
    """Return whether a name stands behind `**` in a dict."""
    around = parents_of(tree).get(id(node))
    pairs = zip(around.keys, around.values, strict=True) if isinstance(around, ast.Dict) else ()
    return any(key is None and value is node for key, value in pairs)


def _only_reads(tree: ast.Module, node: ast.expr) -> bool:
    """Return whether the place of a container's name only reads the items of the container."""
    parents = parents_of(tree)
    around = parents.get(id(node))
    outer = parents.get(id(around))
    match around:
        case ast.For(iter=own) | ast.comprehension(iter=own):
            return own is node
        case ast.Subscript(value=own, ctx=ast.Load()):
            return own is node and not isinstance(outer, ast.Subscript | ast.Attribute)
        case ast.Attribute(attr=method):
            return method in _READING and isinstance(outer, ast.Call) and outer.func is around
        case ast.Call(func=ast.Name(id=name), args=arguments):
            return node in arguments and name in _READERS
        case ast.Dict():
            return _is_merged(tree, node)
    return isinstance(around, ast.Compare | ast.Starred | ast.FormattedValue)


class _Writer:
    """A writer of the schedules of one module."""

    def __init__(self, tree: ast.Module, names: Collection[str], makers: _Makers) -> None:
        self._tree, self._names, self._makers = tree, names, makers
        self._parts_read = 0
        self._before: list[ast.stmt] = []
        """The statements of the module before that which is read; empty for one of a function."""

    def write(self) -> None:
        """Write out the schedules."""
        is_changed = False
        for block in _blocks(self._tree):
            is_changed |= self._unroll(block)
        if is_changed:
            forget(self._tree)
        for number, statement in enumerate(self._tree.body):
            self._before = self._tree.body[:number]
            for node in _of_module(statement):
                is_changed |= self._tried(node)
        self._before = []
        for node in walk(self._tree):
            is_changed |= self._tried(node)
        if is_changed:
            forget(self._tree)
            mark_other_times(self._tree)

    def _tried(self, node: ast.AST) -> bool:
        self._parts_read = 0
        with suppress(_Unknown, RecursionError):
            return self._rewrite(node)
        return False

    def _rewrite(self, node: ast.AST) -> bool:
        """Write out the value that a node gives a schedule. Return whether it has changed."""
        match node:
            case ast.Assign(targets=[ast.Subscript(value=base, slice=key) as target]) if (
                _setting(base) in self._names
            ):
                written, own_key = self._expand(node.value, {}, 0), self._expand(key, {}, 0)
                is_changed = isinstance(written, ast.Dict) and not _is_same(written, node.value)
                node.value = written if is_changed else node.value
                if isinstance(own_key, ast.Constant) and not isinstance(key, ast.Constant):
                    target.slice, is_changed = own_key, True
                return is_changed
            case ast.Dict(keys=keys):
                numbers = [
                    n for n, key in enumerate(keys) if isinstance(key, ast.Constant) and key.value in BEAT
                ]
                values = [self._whole(node.values[number]) for number in numbers]
                for number, value in zip(numbers, values, strict=True):
                    node.values[number] = value or node.values[number]
                return any(values)
            case ast.Call(func=ast.Attribute(attr="update", value=base), args=[value]) if (
                _setting(base) in self._names
            ):
                own = self._whole(value)
                node.args = [own or value]
                return own is not None
            case ast.Call(func=ast.Attribute(attr="add_periodic_task")):
                call = self._copied(node, {}, 0)
                if _is_same(call, node):
                    return False
                node.args, node.keywords = call.args, call.keywords
                return True
        is_given = isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign | ast.keyword)
        for name, value in _given(node) if is_given else ():
            own = self._whole(value) if name in self._names else None
            node.value = own or value  # type: ignore[attr-defined]
            return own is not None
        return False

    def _whole(self, value: ast.expr) -> ast.expr | None:
        """Return the value of a whole setting written out; None if it stays as it is."""
        if isinstance(value, ast.Attribute) and self._makers.is_given_by_module(self._tree, value):
            return ast.copy_location(ast.Name(value.attr, ast.Load()), value)
        written = self._expand(value, {}, 0, is_whole=True)
        is_read = isinstance(written, ast.Dict | ast.BinOp | ast.IfExp | ast.Name)
        return written if is_read and not _is_same(written, value) else None

    # -- expressions ----------------------------------------------------------------------------------------------

    def _expand(self, node: ast.expr, values: _Values, depth: int, is_whole: bool = False) -> ast.expr:
        """Return a copy of an expression with its names replaced, its calls written out, and its literals computed.
        `is_whole`: it is the value of a setting. Its merged parts stay apart."""
        self._parts_read += 1
        if depth > _DEEPEST or self._parts_read > _MOST_PARTS or isinstance(node, _UNREAD):
            raise _Unknown
        match node:
            case ast.Constant():
                return copy.copy(node)
            case ast.Name(id=name, ctx=ast.Load()):
                return copy.deepcopy(values[name]) if name in values else self._of_name(node)
            case ast.Dict():
                return self._dict(node, values, depth, is_whole)
            case ast.ListComp(elt=item) | ast.GeneratorExp(elt=item):
                rounds = list(self._rounds(node.generators, values, depth))
                items = [self._expand(item, own, depth) for own in rounds]
                return ast.copy_location(ast.List(items, ast.Load()), node)
            case ast.DictComp():
                rounds = list(self._rounds(node.generators, values, depth))
                keys: list[ast.expr | None] = [self._expand(node.key, own, depth) for own in rounds]
                items = [self._expand(node.value, own, depth) for own in rounds]
                return ast.copy_location(ast.Dict(keys, items), node)
            case ast.Call(func=ast.Name(id=name)) if name not in values:
                if (returned := self._inlined(node, name, values, depth)) is not None:
                    return returned
        plain = copy.copy(node)
        for field, value in ast.iter_fields(node):
            if isinstance(value, ast.expr):
                is_merged = is_whole and isinstance(node, ast.BinOp | ast.IfExp) and field != "test"
                setattr(plain, field, self._expand(value, values, depth, is_merged))
            elif isinstance(value, list):
                setattr(plain, field, [self._part(part, values, depth) for part in value])
        if isinstance(plain, ast.IfExp) and (truth := _truth(plain.test)) is not None:
            return plain.body if truth else plain.orelse
        if isinstance(plain, ast.BoolOp):
            return _settled(plain)
        if isinstance(plain, ast.Call):
            plain = _spread(plain)
            if called(plain) == "dict" and isinstance(plain.func, ast.Name) and self._is_builtin("dict"):
                return _dict_of(plain) or plain
        return self._computed(plain)

    def _of_name(self, node: ast.Name) -> ast.expr:
        """Return the text that a name of the module means; the name itself if it means anything else."""
        constant = constants_of(self._tree).get(node.id)
        is_text = isinstance(constant, ast.Constant) and isinstance(constant.value, str)
        if constant is None and self._before:
            constant = self._value_before(node.id)
            is_text = constant is not None
        return (
            ast.copy_location(copy.deepcopy(constant), node)
            if is_text and constant is not None
            else copy.copy(node)
        )

    def _value_before(self, name: str) -> ast.expr | None:
        """Return the literal that a name means after the statements before a place; None if only running would tell."""
        if any(isinstance(part, ast.Global) and name in part.names for part in walk(self._tree)):
            return None
        for statement in reversed(self._before):
            if isinstance(statement, ast.ImportFrom) and any(alias.name == "*" for alias in statement.names):
                if self._makers.gives(self._tree, statement, name):
                    return None
            elif _binds_name(statement, name):
                value = _last_value(statement, name)
                is_read = value is not None and (is_plain(value) or bool(with_defaults(value, {})[1]))
                return value if is_read else None
        return None

    def _part(self, part: Any, values: _Values, depth: int) -> Any:
        if isinstance(part, ast.expr):
            return self._expand(part, values, depth)
        if isinstance(part, ast.keyword):
            return ast.copy_location(ast.keyword(part.arg, self._expand(part.value, values, depth)), part)
        if isinstance(part, ast.comprehension):
            raise _Unknown
        return part

    def _dict(self, node: ast.Dict, values: _Values, depth: int, is_whole: bool) -> ast.Dict:
        """Return a dict with its parts written out. Dicts that are merged into an entry become its items."""
        keys: list[ast.expr | None] = []
        items: list[ast.expr] = []
        for key, value in zip(node.keys, node.values, strict=True):
            item = self._expand(value, values, depth, is_whole and key is None)
            if isinstance(item, ast.Name) and is_whole is (key is not None):
                item = self._contained(item)
            is_merged = key is None and not is_whole and isinstance(item, ast.Dict)
            if is_merged and isinstance(item, ast.Dict) and None not in item.keys:
                keys += item.keys
                items += item.values
            else:
                keys.append(self._expand(key, values, depth) if key is not None else None)
                items.append(item)
        if not is_whole and all(isinstance(key, ast.Constant) for key in keys):
            last = {
                key.value: (key, item)
                for key, item in zip(keys, items, strict=True)
                if isinstance(key, ast.Constant)
            }
            keys, items = [key for key, _ in last.values()], [item for _, item in last.values()]
        return ast.copy_location(ast.Dict(keys, items), node)

    def _contained(self, node: ast.expr) -> ast.expr:
        """Return the list, tuple or dict that a name means; any other expression as it is."""
        if isinstance(node, ast.Name):
            return copy.deepcopy(self._makers.container(self._tree, node.id)) or node
        return node

    def _rounds(self, generators: list[ast.comprehension], values: _Values, depth: int) -> Iterator[_Values]:
        """Yield the meaning of the names of a comprehension, for each of its rounds."""
        if not generators:
            yield values
            return
        if generators[0].is_async:
            raise _Unknown
        for item in self._items(self._expand(generators[0].iter, values, depth)):
            own = {**values, **_bound(generators[0].target, item)}
            tests = [_truth(self._expand(test, own, depth)) for test in generators[0].ifs]
            if None in tests:
                raise _Unknown
            if all(tests):
                yield from self._rounds(generators[1:], own, depth)

    def _items(self, node: ast.expr) -> list[ast.expr]:
        """Return the items over which a loop goes. Raises _Unknown if only running the code would tell them."""
        items: list[ast.expr] | None = None
        node = self._contained(node)
        match node:
            case ast.List(elts=elts) | ast.Tuple(elts=elts):
                items = elts
            case ast.Dict():
                items = [key for key, _ in _pairs(node)]
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                items = [*self._items(left), *self._items(right)]
            case ast.Call(
                func=ast.Attribute(value=base, attr="items" | "keys" | "values" as method),
                args=[],
                keywords=[],
            ):
                base = self._contained(base)
                if isinstance(base, ast.Dict):
                    pairs = [_tuple(pair, base) for pair in _pairs(base)]
                    number = {"keys": 0, "values": 1}.get(method)
                    items = [pair if number is None else pair.elts[number] for pair in pairs]
            case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if self._is_builtin(name):
                items = self._items_of_call(node, name, arguments)
        if (
            items is None
            or len(items) > _MOST_ENTRIES
            or any(isinstance(item, ast.Starred) for item in items)
        ):
            raise _Unknown
        return items

    def _items_of_call(self, node: ast.Call, name: str, arguments: list[ast.expr]) -> list[ast.expr] | None:
        if name == "range":
            bounds = [
                part.value for part in arguments if isinstance(part, ast.Constant) and type(part.value) is int
            ]
            if len(bounds) != len(arguments) or not 1 <= len(bounds) <= 3 or 0 in bounds[2:]:
                return None
            return [
                ast.copy_location(ast.Constant(number), node)
                for number in range(*bounds)[: _MOST_ENTRIES + 1]
            ]
        if name in ("list", "tuple") and len(arguments) == 1:
            return self._items(arguments[0])
        if name == "enumerate" and len(arguments) == 1:
            numbered = enumerate(self._items(arguments[0]))
            return [
                _tuple((ast.copy_location(ast.Constant(number), node), item), node)
                for number, item in numbered
            ]
        if name == "zip" and arguments:
            rows = zip(*(self._items(part) for part in arguments), strict=False)
            return [_tuple(row, node) for row in rows]
        return None

    def _is_builtin(self, name: str) -> bool:
        return bound_names(self._tree)[name] == 0

    def _computed(self, node: ast.expr) -> ast.expr:
        """Return the literal that an expression of literals is; any other expression as it is."""
        with suppress(Exception):  # an expression that Python refuses stays as it is written
            value = self._value(node)
            if type(value) in (bool, int, float, str) and len(str(value)) < 10_000:
                return ast.copy_location(ast.Constant(value), node)
            if type(value) in (list, tuple) and all(type(item) in (int, str) for item in value):
                kind = ast.List if isinstance(value, list) else ast.Tuple
                items: list[ast.expr] = [ast.copy_location(ast.Constant(item), node) for item in value]
                return ast.copy_location(kind(items, ast.Load()), node)
        return node

    def _value(self, node: ast.expr) -> Any:
        """Return the value of an expression of literals. Raises any error for another one."""
        match node:
            case ast.JoinedStr(values=parts):
                return "".join(map(_text, parts))
            case ast.BinOp(left=ast.Constant(value=str(text)), op=ast.Mod(), right=right) if not _WIDE.search(
                text
            ):
                return text % ast.literal_eval(right)
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                first, second = ast.literal_eval(left), ast.literal_eval(right)
                return first + second
            case ast.BinOp(left=ast.Constant(value=int() | float() as first), right=right):
                second = ast.literal_eval(right)
                if not isinstance(second, int | float):
                    raise _Unknown
                return _NUMBERS[type(node.op)](first, second)
            case ast.UnaryOp(op=ast.Not(), operand=operand) if (truth := _truth(operand)) is not None:
                return not truth
            case ast.Compare(left=left, ops=[operator], comparators=[right]):
                return _COMPARED[type(operator)](ast.literal_eval(left), ast.literal_eval(right))
            case ast.Subscript(value=holder, slice=ast.Constant(value=key)):
                return ast.literal_eval(self._contained(holder))[key]
            case ast.Call(func=ast.Name(id=name), args=[argument], keywords=[]) if self._is_builtin(name):
                return _TYPES[name](ast.literal_eval(argument))
            case ast.Call(func=ast.Attribute(value=ast.Constant(value=str(text)), attr=method)):
                words = {str(word.arg): ast.literal_eval(word.value) for word in node.keywords}
                if method in _OF_TEXTS and not _WIDE.search(text):
                    return getattr(text, method)(*map(ast.literal_eval, node.args), **words)
        raise _Unknown

    # -- functions ------------------------------------------------------------------------------------------------

    def _inlined(self, call: ast.Call, name: str, values: _Values, depth: int) -> ast.expr | None:
        """Return what a call of a function of the source returns; None where only running the code would tell."""
        definition = self._makers.defined(self._tree, name)
        if definition is None or not isinstance(function := definition[1], ast.FunctionDef):
            return None
        holder = definition[0]
        if function.decorator_list or any(
            isinstance(part, ast.Yield | ast.YieldFrom) for part in ast.walk(function)
        ):
            return None
        writer = self if holder is self._tree else _Writer(holder, self._names, self._makers)
        try:
            own = self._supplied(call, function, values, depth)
            returned = writer._returned(function.body, own, set(), depth + 1)
        except _Unknown:
            return None
        if returned is None or (writer is not self and not _means_the_same(holder, returned)):
            return None
        is_own_text = writer is self and not call.args and not call.keywords
        for part in [returned] if is_own_text else ast.walk(returned):
            if isinstance(part, ast.expr | ast.keyword):
                ast.copy_location(part, call)
        return returned

    def _supplied(
        self, call: ast.Call, function: ast.FunctionDef, values: _Values, depth: int
    ) -> dict[str, ast.expr]:
        """Return the values of the parameters of a function in a call."""
        arguments = function.args
        call = self._copied(call, values, depth)
        positional = [*arguments.posonlyargs, *arguments.args]
        own = {
            part.arg: default
            for part, default in [
                *zip(reversed(positional), reversed(arguments.defaults), strict=False),
                *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True),
            ]
            if default is not None
        }
        supplied = {part.arg: value for part, value in zip(positional, call.args, strict=False)}
        further = call.args[len(positional) :]
        parameters = {part.arg for part in [*arguments.args, *arguments.kwonlyargs]}
        words = [(word.arg, word.value) for word in call.keywords]
        unknown_words = [(word, value) for word, value in words if word not in parameters]
        is_spread = any(isinstance(part, ast.Starred) for part in call.args) or None in dict(words)
        is_refused = (further and arguments.vararg is None) or (unknown_words and arguments.kwarg is None)
        if is_spread or is_refused or supplied.keys() & dict(words):
            raise _Unknown
        supplied |= {str(word): value for word, value in words if word in parameters}
        if arguments.vararg is not None:
            supplied[arguments.vararg.arg] = _tuple(further, call)
        if arguments.kwarg is not None:
            keys: list[ast.expr | None] = [
                ast.copy_location(ast.Constant(word), call) for word, _ in unknown_words
            ]
            supplied[arguments.kwarg.arg] = ast.copy_location(
                ast.Dict(keys, [value for _, value in unknown_words]), call
            )
        own |= supplied
        if any(part.arg not in own for part in [*positional, *arguments.kwonlyargs]):
            raise _Unknown
        return own

    def _copied(self, call: ast.Call, values: _Values, depth: int) -> ast.Call:
        """Return a call of the same function, with its arguments written out."""
        args = [self._expand(part, values, depth) for part in call.args]
        words = [self._part(word, values, depth) for word in call.keywords]
        return _spread(ast.copy_location(ast.Call(copy.deepcopy(call.func), args, words), call))

    def _returned(
        self, body: list[ast.stmt], own: dict[str, ast.expr], own_dicts: set[str], depth: int
    ) -> ast.expr | None:
        """Return what the statements of a function return; None if they end before. `own` are its names. `own_dicts` are those of
        dicts that the function made, and that no other name has. Raises _Unknown for any other statement."""
        for number, statement in enumerate(body):
            match statement:
                case ast.Return(value=ast.expr() as value):
                    return self._expand(value, own, depth)
                case ast.Expr(value=ast.Constant()) | ast.Pass():
                    continue
                case ast.If(test=test, body=first, orelse=second):
                    truth = _truth(self._expand(test, own, depth))
                    if truth is None:
                        raise _Unknown
                    return self._returned(
                        [*(first if truth else second), *body[number + 1 :]], own, own_dicts, depth
                    )
                case (
                    ast.Assign(targets=[target], value=value)
                    | ast.AnnAssign(target=target, value=ast.expr() as value)
                ):
                    own_dicts -= {part.id for part in ast.walk(value) if isinstance(part, ast.Name)}
                    self._assign(target, value, own, own_dicts, depth)
                case ast.Expr(
                    value=ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="update"), args=[value])
                ):
                    own_dicts -= {part.id for part in ast.walk(value) if isinstance(part, ast.Name)}
                    added, held = self._expand(value, own, depth), own.get(name)
                    if (
                        name not in own_dicts
                        or not isinstance(added, ast.Dict)
                        or not isinstance(held, ast.Dict)
                    ):
                        raise _Unknown
                    merged = ast.Dict([*held.keys, *added.keys], [*held.values, *added.values])
                    own[name] = self._dict(ast.copy_location(merged, held), {}, depth, False)
                case _:
                    raise _Unknown
        return None

    def _assign(
        self, target: ast.expr, value: ast.expr, own: dict[str, ast.expr], own_dicts: set[str], depth: int
    ) -> None:
        """Note the value of a name of a function, or that of an item of a dict that the function made."""
        match target:
            case ast.Name(id=name):
                own[name] = self._expand(value, own, depth)
                own_dicts.discard(name)
                if isinstance(value, ast.Dict | ast.DictComp):
                    own_dicts.add(name)
            case ast.Subscript(value=ast.Name(id=name), slice=key):
                held, own_key = own.get(name), self._expand(key, own, depth)
                if (
                    name not in own_dicts
                    or not isinstance(held, ast.Dict)
                    or not isinstance(own_key, ast.Constant)
                ):
                    raise _Unknown
                added = ast.Dict([*held.keys, own_key], [*held.values, self._expand(value, own, depth)])
                own[name] = self._dict(ast.copy_location(added, held), {}, depth, False)
            case _:
                raise _Unknown

    # -- loops ----------------------------------------------------------------------------------------------------

    def _unroll(self, block: list[ast.stmt]) -> bool:
        """Write out the loops of a block that give schedules. Return whether there are any."""
        is_changed = False
        for number in reversed(range(len(block))):
            loop = block[number]
            if not isinstance(loop, ast.For) or loop.orelse or not any(map(self._is_schedule, loop.body)):
                continue
            if self._keeps_its_names(loop):
                self._parts_read = 0
                with suppress(_Unknown, RecursionError):
                    block[number : number + 1] = self._rounds_of(loop)
                    is_changed = True
        return is_changed

    def _is_schedule(self, statement: ast.stmt) -> bool:
        """Return whether a statement of a loop gives a schedule."""
        match statement:
            case ast.Assign(targets=[ast.Subscript(value=base)]):
                return _setting(base) in self._names
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=base, attr=method))):
                return method == "add_periodic_task" or (method == "update" and _setting(base) in self._names)
        return False

    def _keeps_its_names(self, loop: ast.For) -> bool:
        """Return whether nothing around a loop reads the names that it binds, or gives them a value."""
        parents = parents_of(self._tree)
        scope: ast.AST | None = parents.get(id(loop))
        while scope is not None and not isinstance(scope, _SCOPES):
            scope = parents.get(id(scope))
        inside = set(map(id, ast.walk(loop)))
        bound = {
            part.id
            for part in ast.walk(loop)
            if isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Load)
        }
        for part in ast.walk(scope or self._tree):
            if isinstance(part, ast.Name) and part.id in bound and id(part) not in inside:
                around: ast.AST | None = part
                while around is not None and not _binds(around, part.id):
                    around = parents.get(id(around))
                if around is None:
                    return False
        return True

    def _rounds_of(self, loop: ast.For) -> list[ast.stmt]:
        """Return the statements that the rounds of a loop run. Raises _Unknown if one of them gives no schedule."""
        statements: list[ast.stmt] = []
        for item in self._items(self._expand(loop.iter, {}, 0)):
            own = _bound(loop.target, item)
            for statement in loop.body:
                match statement:
                    case ast.Assign(targets=[ast.Name(id=name)], value=value):
                        own[name] = self._expand(value, own, 0)
                    case ast.Assign(
                        targets=[ast.Subscript(value=base, slice=key) as target], value=value
                    ) if self._is_schedule(statement):
                        own_key = self._expand(key, own, 0)
                        if not isinstance(own_key, ast.Constant):
                            raise _Unknown
                        place = ast.copy_location(
                            ast.Subscript(copy.deepcopy(base), own_key, ast.Store()), target
                        )
                        written = ast.Assign([place], self._expand(value, own, 0))
                        statements.append(ast.copy_location(written, statement))
                    case ast.Expr(value=ast.Call() as call) if self._is_schedule(statement):
                        statements.append(ast.copy_location(ast.Expr(self._copied(call, own, 0)), statement))
                    case _:
                        raise _Unknown
        return statements


def _of_module(statement: ast.stmt) -> Iterator[ast.AST]:
    """Yield the parts of a statement that run with its module."""
    waiting: list[ast.AST] = [statement]
    while waiting:
        node = waiting.pop()
        if not isinstance(node, _SCOPES):
            yield node
            waiting += children(node)


def _binds_name(statement: ast.stmt, name: str) -> bool:
    """Return whether a statement of a module may give a name a value, or take the value away."""
    return any(
        (isinstance(part, ast.Name) and part.id == name and not isinstance(part.ctx, ast.Load))
        or (isinstance(part, ast.alias) and (part.asname or part.name.partition(".")[0]) in (name, "*"))
        or getattr(part, "name", None) == name
        for part in ast.walk(statement)
    )


def _last_value(statement: ast.stmt, name: str) -> ast.expr | None:
    """Return the value that a statement gives a name in any case; None if only running the code would tell."""
    match statement:
        case (
            ast.Assign(targets=[ast.Name(id=own)], value=value)
            | ast.AnnAssign(target=ast.Name(id=own), value=ast.expr() as value)
        ):
            return value if own == name else None
        case ast.If(body=first, orelse=second):
            values = [
                next((_last_value(part, name) for part in reversed(block) if _binds_name(part, name)), None)
                for block in (first, second)
            ]
            if values[0] is not None and values[1] is not None and _is_same(values[0], values[1]):
                return values[0]
    return None


def _binds(node: ast.AST, name: str) -> bool:
    """Return whether a loop or a comprehension binds a name itself."""
    targets = [node.target] if isinstance(node, ast.For) else []
    targets += [part.target for part in getattr(node, "generators", ())]
    return any(
        isinstance(part, ast.Name) and part.id == name for target in targets for part in ast.walk(target)
    )


def _blocks(tree: ast.Module) -> Iterator[list[ast.stmt]]:
    for node in walk(tree):
        if isinstance(node, ast.Module | ast.If | ast.With | ast.Try | ast.FunctionDef):
            for name in ("body", "orelse", "finalbody"):
                if isinstance(block := getattr(node, name, None), list):
                    yield block


def _is_same(first: ast.expr, second: ast.expr) -> bool:
    return ast.dump(first) == ast.dump(second)


def _tuple(items: Collection[ast.expr], place: ast.expr) -> ast.Tuple:
    return ast.copy_location(ast.Tuple(list(items), ast.Load()), place)


def _bound(target: ast.expr, item: ast.expr) -> dict[str, ast.expr]:
    """Return the names that a loop gives an item, or the parts of the item."""
    match target, item:
        case ast.Name(id=name), _:
            return {name: item}
        case ast.Tuple(elts=targets) | ast.List(elts=targets), ast.Tuple(elts=parts) | ast.List(elts=parts):
            if len(targets) == len(parts) and not any(
                isinstance(part, ast.Starred) for part in [*targets, *parts]
            ):
                bound: dict[str, ast.expr] = {}
                for inner, part in zip(targets, parts, strict=True):
                    bound |= _bound(inner, part)
                return bound
    raise _Unknown


def _pairs(node: ast.Dict) -> list[tuple[ast.expr, ast.expr]]:
    """Return the items of a dict of literal keys. The last one of equal keys counts, at the place of the first."""
    pairs: dict[Any, tuple[ast.expr, ast.expr]] = {}
    for key, value in zip(node.keys, node.values, strict=True):
        if not isinstance(key, ast.Constant):
            raise _Unknown
        pairs[key.value] = (pairs[key.value][0] if key.value in pairs else key, value)
    return list(pairs.values())


def _spread(call: ast.Call) -> ast.Call:
    """Return a call in which literals behind `*` and `**` are arguments."""
    args: list[ast.expr] = []
    for part in call.args:
        is_spread = isinstance(part, ast.Starred) and isinstance(part.value, ast.List | ast.Tuple)
        args += part.value.elts if is_spread else [part]  # type: ignore[attr-defined]
    words: list[ast.keyword] = []
    for word in call.keywords:
        keys = word.value.keys if word.arg is None and isinstance(word.value, ast.Dict) else [None]
        names = [getattr(key, "value", None) for key in keys]
        if isinstance(word.value, ast.Dict) and all(isinstance(name, str) for name in names):
            pairs = zip(names, word.value.values, strict=True)
            words += [ast.copy_location(ast.keyword(name, value), value) for name, value in pairs]
        else:
            words.append(word)
    return ast.copy_location(ast.Call(call.func, args, words), call)


def _dict_of(call: ast.Call) -> ast.Dict | None:
    """Return the dict that `dict([("often", {...})], late={...})` makes; None if only running the code would tell it."""
    keys: list[ast.expr | None] = []
    values: list[ast.expr] = []
    if len(call.args) > 1 or any(word.arg is None for word in call.keywords):
        return None
    for part in call.args:
        if isinstance(part, ast.Dict):
            keys += part.keys
            values += part.values
            continue
        for pair in part.elts if isinstance(part, ast.List | ast.Tuple) else [part]:
            if not isinstance(pair, ast.List | ast.Tuple) or len(pair.elts) != 2:
                return None
            keys.append(pair.elts[0])
            values.append(pair.elts[1])
    keys += [ast.copy_location(ast.Constant(word.arg), word.value) for word in call.keywords]
    values += [word.value for word in call.keywords]
    return ast.copy_location(ast.Dict(keys, values), call)


def _means_the_same(holder: ast.Module, node: ast.expr) -> bool:
    """Return whether an expression of another module has only names of Celery, of `datetime` and of Python in it."""
    names = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
    own = {name for name in names if bound_names(holder)[name]} - {"crontab", "timedelta"}
    return not own and other_time(holder, node) is None


def _truth(node: ast.expr) -> bool | None:
    """Return whether an expression counts as true; None if only running the code would tell."""
    match node:
        case ast.Constant(value=value):
            return bool(value)
        case ast.Dict(keys=items) | ast.List(elts=items) | ast.Tuple(elts=items):
            return (
                bool(items)
                if not any(item is None or isinstance(item, ast.Starred) for item in items)
                else None
            )
        case ast.Compare(
            left=left, ops=[ast.Is() | ast.IsNot() as operator], comparators=[ast.Constant(value=None)]
        ):
            if isinstance(left, ast.Constant | ast.Dict | ast.List | ast.Tuple | ast.JoinedStr):
                is_none = isinstance(left, ast.Constant) and left.value is None
                return is_none is isinstance(operator, ast.Is)
        case ast.UnaryOp(op=ast.Not(), operand=operand) if (truth := _truth(operand)) is not None:
            return not truth
    return None


def _settled(node: ast.BoolOp) -> ast.expr:
    """Return what `and` or `or` gives, as far as its parts tell."""
    is_or, parts = isinstance(node.op, ast.Or), list(node.values)
    while len(parts) > 1 and (truth := _truth(parts[0])) is not None:
        if truth is is_or:
            return parts[0]
        del parts[0]
    return parts[0] if len(parts) == 1 else ast.copy_location(ast.BoolOp(node.op, parts), node)


def _text(part: ast.expr) -> str:
    """Return the text of a part of an f-string. Raises _Unknown for any part but a literal."""
    match part:
        case ast.Constant(value=str(text)):
            return text
        case ast.FormattedValue(value=ast.Constant(value=value), conversion=-1, format_spec=None):
            return format(value)
        case ast.FormattedValue(
            value=ast.Constant(value=value), conversion=-1, format_spec=ast.Constant(value=str(form))
        ):
            if not _WIDE.search(form):
                return format(value, form)
    raise _Unknown


_NUMBERS: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Sub: lambda first, second: first - second,
    ast.Mult: lambda first, second: first * second,
    ast.Div: lambda first, second: first / second,
    ast.FloorDiv: lambda first, second: first // second,
    ast.Mod: lambda first, second: first % second,
}
_COMPARED: Mapping[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: lambda first, second: first == second,
    ast.NotEq: lambda first, second: first != second,
    ast.Lt: lambda first, second: first < second,
    ast.LtE: lambda first, second: first <= second,
    ast.Gt: lambda first, second: first > second,
    ast.GtE: lambda first, second: first >= second,
    ast.In: lambda first, second: first in second,
    ast.NotIn: lambda first, second: first not in second,
}

__all__ = ["write_out_schedules"]
