"""The values that the names of a source may have: applications, their configurations and tasks, by scope and across files."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from penstock_import.celery_calls import absolute_path, called, children, walk

APP, CONF, RESULT, SETTING, SIGNATURE, TASK = "app", "conf", "result", "setting", "signature", "task"
"""The kinds of values: an application, its configuration, the result of a start, a dict or a list within a configuration, a
signature, and a task."""
MAYBE_RESULT = "maybe result"
"""The kind of a value that a member of any object has: a result, or the value of another class's member of that name."""
RESULT_CLASS = "class of results"
"""The kind of a class that makes results of starts, such as `AsyncResult`."""
IN = "in "
"""The mark in the kind of a container or a function: its contents, or its return values, have the kind that follows the
mark."""
Function = ast.FunctionDef | ast.AsyncFunctionDef
Key = tuple[str, int, str]
"""The key of a variable: the file, the scope and the name. A member of any object has an empty file."""
_NAMED = (
    ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.ExceptHandler | ast.MatchAs | ast.MatchStar
)
_SCOPES = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda


@dataclass(slots=True)
class Names:
    """The names of one module: where each is bound, and where it is read."""

    tree: ast.Module
    parents: dict[int, ast.AST] = field(default_factory=dict)
    loads: dict[str, list[ast.expr]] = field(default_factory=dict)
    bound: dict[int, set[str]] = field(default_factory=dict)
    """The names that are bound in a scope, by scope."""
    classes: set[int] = field(default_factory=set)
    lambdas: dict[str, list[ast.Assign]] = field(default_factory=dict)
    """The statements that assign a lambda to a name, by name."""
    imported_as: dict[str, str] = field(default_factory=dict)
    """The original name of an import, by the name that the statement gives it."""
    modules_as: dict[str, set[str]] = field(default_factory=dict)
    """The other names of an import, by the last part of its path."""
    outer: dict[int, set[str]] = field(default_factory=dict)
    """The names that `global` or `nonlocal` takes from an outer scope, by scope."""

    def __post_init__(self) -> None:
        for node in walk(self.tree):
            for child in children(node):
                self.parents[id(child)] = node
        for node in walk(self.tree):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                self.loads.setdefault(node.id, []).append(node)
            elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
                if isinstance(node.slice, ast.Constant) and is_namespace(node.value):
                    self.loads.setdefault(str(node.slice.value), []).append(node)
            elif isinstance(node, ast.Global | ast.Nonlocal):
                self.outer.setdefault(id(self.scope(node)), set()).update(node.names)
            elif isinstance(node, ast.ClassDef):
                self.classes.add(id(node))
            elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Lambda):
                for target in node.targets:
                    if isinstance(target, ast.Name):
                        self.lambdas.setdefault(target.id, []).append(node)
            elif isinstance(node, ast.Import | ast.ImportFrom):
                for alias in node.names:
                    if alias.asname:
                        self.modules_as.setdefault(alias.name.rpartition(".")[2], set()).add(alias.asname)
                        if isinstance(node, ast.ImportFrom):
                            self.imported_as.setdefault(alias.asname, alias.name)
            for name in _names_bound(node):
                self.bound.setdefault(id(self.scope(node)), set()).add(name)

    def scope(self, node: ast.AST) -> ast.AST:
        """Return the scope of a statement or a name. Defaults and decorators belong to the outer scope."""
        inner, outer = node, self.parents.get(id(node), self.tree)
        while not isinstance(outer, ast.Module):
            if isinstance(outer, _SCOPES) and (
                isinstance(node, ast.arg) or inner in _body(outer) or isinstance(outer, ast.Lambda)
            ):
                return outer
            inner, outer = outer, self.parents.get(id(outer), self.tree)
        return self.tree

    def resolved(self, node: ast.AST, name: str) -> ast.AST:
        """Return the scope of a name as a place of the module sees it."""
        scope = self.scope(node)
        first = scope
        while not isinstance(scope, ast.Module):
            is_visible = scope is first or not isinstance(scope, ast.ClassDef)
            own = self.bound.get(id(scope), set()) - self.outer.get(id(scope), set())
            if is_visible and name in own:
                return scope
            scope = self.scope(scope)
        return scope


class Values:
    """The kinds of values that each expression and each variable may have. `waiting` are the uses that were not
    followed yet."""

    def __init__(self, trees: Mapping[str, ast.Module]) -> None:
        self._trees = trees
        self._modules: dict[str, Names] = {}
        self._kinds: dict[int, set[str]] = {}
        self._variables: dict[Key, set[str]] = {}
        self.waiting: list[tuple[str, ast.expr, str]] = []
        self._members: dict[str, list[tuple[str, ast.Attribute | ast.Call]]] = {}
        self._imports: dict[str, list[tuple[str, ast.ImportFrom, ast.alias]]] = {}
        for file, tree in trees.items():
            for node in walk(tree):
                if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                    self._members.setdefault(node.attr, []).append((file, node))
                elif isinstance(node, ast.Call) and called(node) == "getattr" and len(node.args) > 1:
                    text = getattr(node.args[1], "value", None)
                    self._members.setdefault(str(text), []).append((file, node))
                elif isinstance(node, ast.ImportFrom):
                    for alias in node.names:
                        self._imports.setdefault(alias.name, []).append((file, node, alias))

    def names(self, file: str) -> Names:
        if file not in self._modules:
            self._modules[file] = Names(self._trees[file])
        return self._modules[file]

    def add(self, file: str, node: ast.expr, kind: str) -> None:
        """Note that an expression may have a value of a kind."""
        kinds = self._kinds.setdefault(id(node), set())
        if kind not in kinds:
            kinds.add(kind)
            self.waiting.append((file, node, kind))

    def add_all(self, file: str, node: ast.expr, kinds: Iterable[str]) -> None:
        for kind in kinds:
            self.add(file, node, kind)

    def bind(self, file: str, place: ast.AST, name: str, kind: str) -> None:
        self.give((file, id(self.names(file).resolved(place, name)), name), kind)

    def give(self, key: Key, kind: str) -> None:
        """Note that a variable may have a value of this kind, at all places that read it."""
        if kind in self._variables.setdefault(key, set()):
            return
        self._variables[key].add(kind)
        file, scope, name = key
        if not file:
            for place, member in self._members.get(name, ()):
                self.add(place, member, kind)
            return
        names = self.names(file)
        for node in names.loads.get(name, ()):
            is_namespaced = isinstance(node, ast.Subscript) and scope == id(names.tree)
            if is_namespaced or id(names.resolved(node, name)) == scope:
                self.add(file, node, kind)
        if scope == id(names.tree):
            self._export(file, name, kind)
        elif scope in names.classes:
            self.give(("", 0, name), kind)

    def is_read(self, member: str) -> bool:
        """Return whether any code reads a member of this name."""
        return member in self._members

    def store(self, file: str, target: ast.AST, kinds: Iterable[str]) -> None:
        """Note that the target of an assignment gets a value of these kinds."""
        for kind in kinds:
            match target:
                case ast.Name(id=variable):
                    self.bind(file, target, variable, kind)
                case ast.Attribute(attr=member):
                    self.give(("", 0, member), _of_any_object(kind))
                case ast.Subscript(
                    value=ast.Call(func=ast.Name(id="globals" | "locals")),
                    slice=ast.Constant(value=str(text)),
                ):
                    self.bind(file, target, text, kind)
                    self.give((file, id(self._trees[file]), text), kind)
                case ast.Subscript(value=holder):
                    self.hold(file, holder, kind)
                case ast.Starred(value=inner):
                    self.store(file, inner, [IN + kind.removeprefix(IN)])
                case ast.Tuple(elts=parts) | ast.List(elts=parts):
                    for part in parts:
                        self.store(file, part, [*within(kind)])

    def hold(self, file: str, holder: ast.expr, kind: str) -> None:
        """Note that a container holds a value."""
        while isinstance(holder, ast.Subscript):
            holder = holder.value
        if isinstance(holder, ast.Call):  # as in globals()["name"], vars(x)["name"] and d.setdefault(k, [])
            holder = (
                holder.func.value
                if isinstance(holder.func, ast.Attribute)
                else next(iter(holder.args), holder)
            )
        self.store(file, holder, [IN + kind.removeprefix(IN)])

    def give_back(self, file: str, place: ast.AST, kind: str) -> None:
        """Note that the function around a place returns a value of this kind."""
        function = self.names(file).scope(place)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            is_property = any("property" in ast.unparse(part) for part in function.decorator_list)
            result = kind if is_property else IN + kind.removeprefix(IN)
            is_method = isinstance(self.names(file).scope(function), ast.ClassDef)
            result = _of_any_object(result) if is_method else result
            self.bind(file, function, function.name, result)
            if is_method:
                self.give(("", 0, function.name), result)

    def _export(self, file: str, name: str, kind: str) -> None:
        """Pass the kind of a module's variable to the modules that import it."""
        for place, statement, alias in [*self._imports.get(name, ()), *self._imports.get("*", ())]:
            if place != file and _is_module(file, absolute_path(place, statement)):
                self.bind(place, statement, name if alias.name == "*" else alias.asname or name, kind)
        stem = file.removesuffix(".py").removesuffix("/__init__").rpartition("/")[2]
        for place, member in self._members.get(name, ()):
            holder = member.value if isinstance(member, ast.Attribute) else member.args[0]
            last = holder.attr if isinstance(holder, ast.Attribute) else getattr(holder, "id", "")
            is_module = last == stem or last in self.names(place).modules_as.get(stem, ())
            if (place != file and is_module) or _may_import(holder, stem):
                self.add(place, member, kind)


def _of_any_object(kind: str) -> str:
    """Return the kind of a value as the member of any object that has a member of its name."""
    return kind.replace(RESULT, MAYBE_RESULT) if kind.removeprefix(IN) == RESULT else kind


def is_namespace(node: ast.expr) -> bool:
    """Return whether an expression is the dict of all names of a module or a function."""
    return isinstance(node, ast.Call) and not node.args and called(node) in ("globals", "locals", "vars")


def _may_import(node: ast.expr, stem: str) -> bool:
    """Return whether an expression may be a module: `import_module("shop.tasks")`, `sys.modules[name]`."""
    if isinstance(node, ast.Call) and called(node) in ("__import__", "import_module"):
        path = next(iter(node.args), None)
    elif isinstance(node, ast.Subscript) and ast.unparse(node.value) == "sys.modules":
        path = node.slice
    else:
        return False
    return not isinstance(path, ast.Constant) or str(path.value).rpartition(".")[2] == stem


def within(kind: str) -> list[str]:
    """Return the kinds of the contents of a container, which may be containers too."""
    if kind.startswith(IN):
        return [kind.removeprefix(IN), kind]
    return [kind] if kind in (MAYBE_RESULT, RESULT, SETTING) else []


def _names_bound(node: ast.AST) -> Iterator[str]:
    """Yield the names that a node binds in its scope."""
    if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
        yield node.id
    elif isinstance(node, ast.Import | ast.ImportFrom):
        yield from ((alias.asname or alias.name).partition(".")[0] for alias in node.names)
    elif isinstance(node, ast.arg):
        yield node.arg
    elif isinstance(node, _NAMED) and node.name:
        yield node.name


def _body(scope: ast.AST) -> list[ast.stmt]:
    return scope.body if isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) else []


def _is_module(file: str, path: str) -> bool:
    stem = file.removesuffix(".py").replace("/", ".").removesuffix(".__init__")
    return bool(path) and (stem == path or stem.endswith(f".{path}") or path.endswith(f".{stem}"))
