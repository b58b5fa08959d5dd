"""The applications of a source, and its own decorators that make tasks with options of their own."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator, Mapping

from penstock_import.celery_calls import (
    absolute_path,
    called,
    children,
    imported_names,
    once,
    root_name,
    walk,
)
from penstock_import.celery_scopes import bindings_at

_IMPORTED = frozenset({"app", "celery_app", "current_app"})
"""The names under which modules import an application."""
_OF_WEB = frozenset(
    {"aiohttp", "bottle", "chalice", "connexion", "dash", "falcon", "fastapi", "flask", "litestar", "quart"}
    | {"sanic", "slack_bolt", "starlette", "tornado", "typer"}
)
"""Packages with an `app` or a `current_app` that is not Celery's."""
_DECORATORS = frozenset({"shared_task", "periodic_task"})


_OF_SIGNALS = frozenset({"connect", "connect_via"})
"""Methods of each signal of Django and blinker. A maker of such a name counts alone, or as a member of its module."""


_OTHER_CLASSES = frozenset({"AsyncResult", "EagerResult", "GroupResult", "Queue", "ResultSet", "Signature"})
"""The classes of Celery that other modules pass on, and that are not applications."""


class Applications:
    """The names by which each module of a source knows a Celery application. `modules` are the modules of the source, by each
    name that they may be imported by, and by their paths behind a dot."""

    def __init__(
        self, trees: Mapping[str, ast.Module], modules: Mapping[str, ast.Module] | None = None
    ) -> None:
        classes = [node for tree in trees.values() for node in walk(tree) if isinstance(node, ast.ClassDef)]
        bases: dict[str, set[str]] = {}
        for node in classes:
            bases.setdefault(node.name, set()).update(last_name(base) for base in node.bases)
        self._own = set(bases)
        self._functions = {
            f"{file.removesuffix('.py').replace('/', '.').removesuffix('.__init__')}.{node.name}"
            for file, tree in trees.items()
            for node in tree.body
            if isinstance(node, ast.FunctionDef)
        }
        """The paths of the functions of the sources."""
        self.classes = {"Celery"}
        while below := {name for name in bases if bases[name] & self.classes} - self.classes:
            self.classes |= below
        self.parts = set(self.classes)
        """The classes of applications, and those that they extend: `task` of a mixin makes tasks, too."""
        while above := {base for name in self.parts for base in bases.get(name, ())} - self.parts:
            self.parts |= above
        self._modules = {
            file.removesuffix(".py").replace("/", ".").removesuffix(".__init__"): tree
            for file, tree in trees.items()
        }
        self._all = {name for tree in trees.values() for name in self._made(tree)}
        self._sources = modules or {}
        self._names = {id(tree): self._known(file, tree) for file, tree in trees.items()}
        self.are_known = bool(self._all)
        """True if a file makes an application."""

    def names(self, tree: ast.Module) -> set[str]:
        """Return the names under which a module knows a Celery application."""
        return self._names.get(id(tree), set())

    def own_decorators(self, tree: ast.Module) -> list[ast.FunctionDef]:
        """Return the methods `task` of the classes of applications in a module, which make each task in their own way."""
        return [
            part
            for node in walk(tree)
            if isinstance(node, ast.ClassDef) and node.name in self.parts
            for part in node.body
            if isinstance(part, ast.FunctionDef) and part.name in ("task", "_task_from_fun")
        ]

    def own_parts(self, tree: ast.Module) -> list[tuple[str, ast.stmt]]:
        """Return the statements in the classes of applications of a module that do not make tasks, each with the name
        of its class."""
        return [
            (node.name, part)
            for node in walk(tree)
            if isinstance(node, ast.ClassDef) and node.name in self.classes
            for part in node.body
            if not isinstance(part, ast.Pass | ast.Expr)
            and getattr(part, "name", "") not in ("task", "_task_from_fun")
        ]

    def foreign(self, tree: ast.Module) -> list[tuple[ast.Call, str]]:
        """Return the calls in a module that make an application of a foreign class, each with the path of the class. A foreign
        class is defined neither by the sources nor by Celery."""
        paths = {name: path for name, path in imported_names(tree) if path.partition(".")[0] != "celery"}
        return [
            (node.value, path)
            for node in walk(tree)
            if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Call)
            if (path := paths.get(called(node.value), "")) and called(node.value) not in self._own
            if "celery" in path.lower() and called(node.value)[:1].isupper() and ".models." not in path
            if path.rpartition(".")[2] not in _OTHER_CLASSES
        ]

    def is_function(self, path: str) -> bool:
        """Return whether a path is that of a function of the sources."""
        return any(_is_same(function, path) for function in self._functions)

    def calls_of(self, tree: ast.Module) -> list[ast.Call]:
        """Return the calls in a module that make an application. A function of the sources has such a call of its own."""
        foreign = [call for call, path in self.foreign(tree) if not self.is_function(path)]
        return [
            node.value
            for node in walk(tree)
            if isinstance(node, ast.Assign | ast.AnnAssign)
            and isinstance(node.value, ast.Call)
            and (called(node.value) in self.classes or node.value in foreign)
        ]

    def _is_module(self, path: str) -> bool:
        """Return whether a path is that of a module of the sources, in a package that has no other value by its name."""
        package, _, name = path.rpartition(".")
        modules = [stem for stem in self._modules if "." in stem and _is_same(stem, path)]
        packages = [tree for stem, tree in self._modules.items() if _is_same(stem, package)]
        return bool(modules and packages) and not any(bindings_at(tree, tree, name) for tree in packages)

    def _made(self, tree: ast.Module) -> set[str]:
        foreign = [call for call, _ in self.foreign(tree)]
        return {
            target.id
            for node in walk(tree)
            if isinstance(node, ast.Assign | ast.AnnAssign)
            and isinstance(node.value, ast.Call)
            and (called(node.value) in self.classes or node.value in foreign)
            for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
            if isinstance(target, ast.Name)
        }

    def _of_web(self, file: str, tree: ast.Module) -> set[str]:
        """Return the names that a module imports of objects which a module of the sources makes of another framework."""
        names: set[str] = set()
        for node in walk(tree):
            if isinstance(node, ast.ImportFrom):
                path = absolute_path(file, node)
                source = self._sources.get(f".{path or '__init__'}" if node.level else path)
                source = source or self._sources.get(f"{path}.")
                names |= {
                    alias.asname or alias.name
                    for alias in node.names
                    if source is not None and source is not tree and _makes_of_web(source, alias.name)
                }
        return names

    def _known(self, file: str, tree: ast.Module) -> set[str]:
        of_web = self._of_web(file, tree)
        imported = {
            name
            for name, path in imported_names(tree)
            if (name in _IMPORTED and path.partition(".")[0] not in _OF_WEB)
            or ("." in path and path.rpartition(".")[2] in self._all and not self._is_module(path))
        }
        return (imported - of_web) | self._made(tree)


def _makes_of_web(tree: ast.Module, name: str) -> bool:
    """Return whether the only statements of a module that give a name a value call a class of another framework."""
    of_web = {own for own, path in imported_names(tree) if path.partition(".")[0] in _OF_WEB}
    values = [
        node.value
        for node in walk(tree)
        if isinstance(node, ast.Assign | ast.AnnAssign)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name) and target.id == name
    ]
    return bool(values) and all(
        isinstance(value, ast.Call) and root_name(value.func) in of_web for value in values
    )


def _is_same(stem: str, path: str) -> bool:
    return stem == path or stem.endswith(f".{path}") or path.endswith(f".{stem}")


def is_extension(node: ast.Call | ast.Subscript) -> bool:
    """Return whether an expression reads an extension of a web application with Celery in its name:
    `current_app.extensions["celery"]`."""
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
        holder, key = node.value, node.slice
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get":
        holder, key = node.func.value, next(iter(node.args), node)
    else:
        return False
    is_held = isinstance(holder, ast.Attribute) and holder.attr == "extensions"
    return is_held and isinstance(key, ast.Constant) and "celery" in str(key.value).lower()


def task_makers(trees: Mapping[str, ast.Module], applications: Applications) -> dict[str, str]:
    """Return the functions, classes and objects of a source that make tasks, by name, each with its place."""
    places: dict[str, str] = {}
    for file, tree in trees.items():
        apps = applications.names(tree) | {"celery"}
        imported = {name for name, path in imported_names(tree) if path.startswith("celery.")}
        unreachable = _unreachable(tree)
        for node in walk(tree):
            if id(node) in unreachable:
                continue
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and any(
                _makes_task(part, apps, imported) for child in node.body for part in ast.walk(child)
            ):
                places.setdefault(node.name, f"{file}:{node.lineno}")
            elif isinstance(node, ast.Assign | ast.AnnAssign) and any(
                _makes_task(part, apps, imported) for part in _kept_decorator(node.value)
            ):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                places |= {last_name(target): f"{file}:{node.lineno}" for target in targets}
        for name, path in imported_names(tree):
            if path.startswith("celery.") and path.rpartition(".")[2] in _DECORATORS - {name}:
                places.setdefault(name, f"{file}:1")
        for name, plain in tree.__dict__.get(
            "renamed", {}
        ).items():  # another file may import the decorator by this name
            if plain in _DECORATORS:
                places.setdefault(name, f"{file}:1")
    places.pop("", None)
    while further := _made_of(trees, places):
        places |= further
    return places


def maker_of(
    function: ast.FunctionDef | ast.AsyncFunctionDef,
    makers: Mapping[str, str],
    apps: Collection[str],
    imported: Mapping[str, str],
) -> ast.expr | None:
    """Return the decorator of a function that is one of the makers of its source. `imported` are the paths of the names that
    the module imports."""
    for decorator in function.decorator_list:
        named = decorator.func if isinstance(decorator, ast.Call) else decorator
        is_celerys = isinstance(named, ast.Attribute) and root_name(named) in {*apps, "celery"}
        if is_celerys or last_name(named) not in makers:
            continue
        if isinstance(named, ast.Attribute) and named.attr in _OF_SIGNALS:
            module = makers[named.attr].partition(":")[0].removesuffix(".py").removesuffix("/__init__")
            holder = last_name(named.value)
            path = imported.get(holder, holder) if isinstance(named.value, ast.Name) else holder
            if path.rpartition(".")[2] != module.rpartition("/")[2]:
                continue
        return decorator
    return None


def last_name(node: ast.expr) -> str:
    """Return the last name of a dotted name; an empty text for any other expression."""
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _makes_task(node: ast.AST, apps: Collection[str], imported: Collection[str]) -> bool:
    """Return whether an expression is a decorator of Celery."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "task":
        # Only running the code would tell the application.
        return any(word.arg is None for word in node.keywords)
    if isinstance(node, ast.Attribute):
        return node.attr in {"task", *_DECORATORS} and root_name(node) in apps
    if not isinstance(node, ast.Name) or not isinstance(node.ctx, ast.Load):
        return False
    return node.id in imported and node.id in {"task", *_DECORATORS}


_DEFINITIONS = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def _targets(node: ast.AST) -> set[str]:
    """Return the names that an assignment gives a value."""
    targets = node.targets if isinstance(node, ast.Assign) else []
    targets = [node.target] if isinstance(node, ast.AnnAssign) else targets
    return {target.id for target in targets if isinstance(target, ast.Name)}


@once
def _unreachable(tree: ast.AST) -> set[int]:
    """Return the statements that give a function's local names a value, and the functions and classes within a function. No
    decorator outside of that function means one of them, and a decorator within it keeps its name reachable."""
    local: set[int] = set()
    for function in walk(tree):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        inner = [part for statement in function.body for part in ast.walk(statement)]
        decorators = _names(
            decorator
            for part in inner
            if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef)
            for decorator in part.decorator_list
        )
        outer = {name for part in inner if isinstance(part, ast.Global) for name in part.names}
        for part in inner:
            names = {part.name} if isinstance(part, _DEFINITIONS) else _targets(part)
            if names and not names & (decorators | outer):
                local.add(id(part))
    return local


def _kept_decorator(value: ast.expr | None) -> Iterator[ast.AST]:
    """Yield the expressions that make a value a decorator of Celery: `app.task`, `shared_task(acks_late=True)`, the
    first argument of `partial`, and the call in a lambda. A call with a function as its argument makes a task, and not
    a decorator."""
    if isinstance(value, ast.Lambda):
        yield from ast.walk(value.body)
    elif isinstance(value, ast.Call) and called(value) == "partial":
        yield from value.args[:1]
    elif isinstance(value, ast.Call) and not value.args:
        yield value.func
    elif isinstance(value, ast.Name | ast.Attribute):
        yield value


def _made_of(trees: Mapping[str, ast.Module], makers: Collection[str]) -> dict[str, str]:
    """Return further makers of tasks: classes that extend a maker, objects of a maker, and functions that return a
    maker. `makers` are left out."""
    places: dict[str, str] = {}
    for file, tree in trees.items():
        unreachable = _unreachable(tree)
        for node in walk(tree):
            place = f"{file}:{getattr(node, 'lineno', 1)}"
            if id(node) in unreachable:
                continue
            if isinstance(node, ast.ClassDef) and _names(node.bases) & set(makers):
                places[node.name] = place
            elif isinstance(node, ast.Assign) and _names([node.value]) & set(makers):
                places |= {last_name(target): place for target in node.targets}
            elif isinstance(node, ast.FunctionDef) and _returns_maker(node, makers, {}):
                places[node.name] = place
    return {name: place for name, place in places.items() if name and name not in makers}


_Local = Mapping[str, list[ast.AST]]
"""The values of the local names around a place, by name. A parameter has none."""


def _returns_maker(function: ast.FunctionDef, makers: Collection[str], around: _Local) -> bool:
    """Return whether a function returns a maker, what a maker returns, or a function of its own that does so."""
    local: dict[str, list[ast.AST]] = {**around, **{part.arg: [] for part in _arguments(function)}}
    returned: list[ast.expr] = []
    waiting: list[ast.AST] = [*function.body]
    own: dict[str, list[ast.AST]] = {}
    while waiting:
        part = waiting.pop()
        if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            own.setdefault(part.name, []).append(part)
            continue
        if isinstance(part, ast.Assign):
            for target in part.targets:
                own.setdefault(last_name(target) if isinstance(target, ast.Name) else "", []).append(
                    part.value
                )
        elif isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
            own.setdefault(part.id, [])
        elif isinstance(part, ast.Return) and part.value is not None:
            returned.append(part.value)
        waiting.extend(children(part))
    return any(_is_maker(value, makers, local | own) for value in returned)


def _is_maker(value: ast.AST, makers: Collection[str], local: _Local) -> bool:
    """Return whether a value is a maker, or what a maker returns. A local name hides a maker of its name."""
    if isinstance(value, ast.FunctionDef):
        return _returns_maker(value, makers, local)
    named = value.func if isinstance(value, ast.Call) else value
    if isinstance(named, ast.Name) and named.id in local:
        further = {name: values for name, values in local.items() if name != named.id}
        return any(_is_maker(part, makers, further) for part in local[named.id])
    return isinstance(named, ast.expr) and last_name(named) in makers


def _arguments(function: ast.FunctionDef) -> list[ast.arg]:
    arguments = function.args
    further = [part for part in (arguments.vararg, arguments.kwarg) if part is not None]
    return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, *further]


def _names(nodes: Iterable[ast.expr]) -> set[str]:
    """Return the last names of classes, or of the functions that calls call."""
    return {last_name(node.func if isinstance(node, ast.Call) else node) for node in nodes} - {""}
