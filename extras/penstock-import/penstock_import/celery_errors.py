"""The names of the errors for which Celery retries a task, resolved as Python resolves them. Penstock compares names of
classes, and the source may use another name for a class."""

from __future__ import annotations

import ast
import builtins
import importlib
import sys
from collections.abc import Callable, Iterator, Mapping

from penstock_import.celery_calls import NotLiteral, absolute_path, walk

Doubt = Callable[[str], None]
"""A function that records an error whose class is in no file, by its path."""
_NEVER_IMPORTED = frozenset({"antigravity", "this", "idlelib", "turtledemo", "test", "__main__"})
"""Modules of Python that do something when they are imported."""
_OF_CELERY = frozenset({"billiard", "celery", "kombu"})
_DEEPEST = 20


class ErrorNames:
    """The error classes in the files of a folder, by the names that the files use for them."""

    def __init__(self, trees: Mapping[str, ast.Module]) -> None:
        self._trees = trees

    def of(self, file: str, node: ast.expr, doubt: Doubt) -> list[str]:
        """Return the names of the classes that an expression lists. Raises NotLiteral if a name can stand for several
        classes."""
        return sorted(dict.fromkeys(self._classes(file, node, doubt, _DEEPEST)))

    def _classes(self, file: str, node: ast.expr, doubt: Doubt, depth: int) -> Iterator[str]:
        if isinstance(node, ast.Tuple | ast.List):
            for item in node.elts:
                yield from self._classes(file, item, doubt, depth)
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            yield from self._classes(file, node.left, doubt, depth)
            yield from self._classes(file, node.right, doubt, depth)
        else:
            yield from self._path(file, _parts(node), doubt, depth)

    def _path(self, file: str, parts: list[str], doubt: Doubt, depth: int) -> list[str]:
        """Return the classes to which a path in a file leads. Raises NotLiteral if its bindings lead to different
        classes."""
        if not parts or depth == 0:
            raise NotLiteral(".".join(parts))
        tree = self._trees.get(file)
        bindings = list(_bindings(tree, parts[0])) if tree is not None else []
        if not bindings:
            if tree is not None and (whole := _whole_imports(tree)):
                return self._of_whole_imports(file, whole, parts, doubt, depth)
            return [_built_in(parts)]
        results = [self._bound(file, binding, parts, doubt, depth - 1) for binding in bindings]
        if any(result != results[0] for result in results):
            raise NotLiteral(".".join(parts))
        return results[0]

    def _bound(self, file: str, binding: ast.AST, parts: list[str], doubt: Doubt, depth: int) -> list[str]:
        match binding:
            case ast.ClassDef():
                return [self._member(binding, parts, doubt)]
            case ast.Assign(targets=[ast.Name()], value=value) | ast.AnnAssign(value=ast.expr() as value):
                # Statements further down may append to a list.
                if len(parts) == 1 and not isinstance(value, ast.List):
                    return list(self._classes(file, value, doubt, depth))
                return self._path(file, [*_parts(value), *parts[1:]], doubt, depth)
            case ast.Import(names=[alias]):
                path = alias.name.split(".") if alias.asname else [parts[0]]
                return self._imported([*path, *parts[1:]], doubt, depth)
            case ast.ImportFrom(names=[alias]):
                module = absolute_path(file, binding)
                return self._imported([*module.split("."), alias.name, *parts[1:]], doubt, depth)
        raise NotLiteral(".".join(parts))

    def _member(self, class_: ast.ClassDef, parts: list[str], doubt: Doubt) -> str:
        """Return the name of the class at the end of a dotted path into `class_`: `Outer.Inner` gives `Inner`."""
        for name in parts[1:]:
            inner = [part for part in class_.body if isinstance(part, ast.ClassDef) and part.name == name]
            assigned = [
                part for part in ast.walk(class_) if isinstance(part, ast.Name | ast.FunctionDef)
                and getattr(part, "id", getattr(part, "name", "")) == name
            ]  # fmt: skip
            if len(inner) != 1 or assigned:
                if assigned or not name[:1].isupper():
                    raise NotLiteral(".".join(parts))
                doubt(".".join(parts))
                return parts[-1]
            class_ = inner[0]
        if hasattr(builtins, class_.name):
            doubt(f"{class_.name}, the name of an error of Python")
        return class_.name

    def _imported(self, path: list[str], doubt: Doubt, depth: int) -> list[str]:
        """Return the classes to which a path from the root of all modules leads."""
        is_celerys = path[0] in _OF_CELERY and not any(
            file.partition("/")[0].removesuffix(".py") == path[0] for file in self._trees
        )
        for count in range(len(path) - 1, 0, -1):
            # `celery.exceptions` is not a member of `shop/celery.py`.
            files = [file for file in self._trees if not is_celerys and _is_module(file, path[:count])]
            if len(files) > 1:
                raise NotLiteral(".".join(path))
            if files:
                return self._path(files[0], path[count:], doubt, depth)
        if path[0] in sys.stdlib_module_names:
            return [_of_python(path)]
        if not path[-1][:1].isupper() or path[-1].isupper():
            raise NotLiteral(".".join(path))
        doubt(".".join(path))
        return [path[-1]]

    def _of_whole_imports(
        self, file: str, imports: list[ast.ImportFrom], parts: list[str], doubt: Doubt, depth: int
    ) -> list[str]:
        for statement in imports:
            module = absolute_path(file, statement).split(".")
            files = [name for name in self._trees if _is_module(name, module)]
            if len(files) != 1:
                raise NotLiteral(".".join(parts))
            if list(_bindings(self._trees[files[0]], parts[0])) or _whole_imports(self._trees[files[0]]):
                return self._path(files[0], parts, doubt, depth - 1)
        return [_built_in(parts)]


def _parts(node: ast.expr) -> list[str]:
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.insert(0, node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        raise NotLiteral(ast.unparse(node))
    return [node.id, *names]


def _bindings(tree: ast.Module, name: str) -> Iterator[ast.AST]:
    """Yield each statement of a module that binds a name, in any scope except among the members of a class."""
    members = {
        id(part) for node in walk(tree) if isinstance(node, ast.ClassDef) for part in node.body
    }  # fmt: skip
    simple: set[int] = set()
    for node in walk(tree):
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            simple |= {id(target) for target in targets}
            if id(node) not in members and any(getattr(target, "id", "") == name for target in targets):
                yield node
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store | ast.Del) and node.id == name:
            if id(node) not in simple:
                yield node
        elif isinstance(node, ast.Import | ast.ImportFrom):
            for alias in node.names:
                if (alias.asname or alias.name.partition(".")[0]) == name:
                    yield _single(node, alias)
        elif isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            if node.name == name and id(node) not in members:
                yield node
        elif (isinstance(node, ast.arg) and node.arg == name) or (
            isinstance(node, ast.ExceptHandler) and node.name == name
        ):
            yield node


def _single(node: ast.Import | ast.ImportFrom, alias: ast.alias) -> ast.Import | ast.ImportFrom:
    if isinstance(node, ast.Import):
        return ast.Import([alias])
    return ast.ImportFrom(node.module, [alias], node.level)


def _whole_imports(tree: ast.Module) -> list[ast.ImportFrom]:
    return [
        node
        for node in walk(tree)
        if isinstance(node, ast.ImportFrom) and any(alias.name == "*" for alias in node.names)
    ]


def _is_module(file: str, path: list[str]) -> bool:
    stem = file.removesuffix(".py").replace("/", ".").removesuffix(".__init__")
    name = ".".join(path)
    return stem == name or stem.endswith(f".{name}") or name.endswith(f".{stem}")


def _built_in(parts: list[str]) -> str:
    if len(parts) == 1:
        return _class_name(getattr(builtins, parts[0], None), parts)
    raise NotLiteral(".".join(parts))


def _of_python(path: list[str]) -> str:
    """Return the name of a class in Python's own modules, some of which have several names for it."""
    if path[0] in _NEVER_IMPORTED or path[0].startswith("_"):
        raise NotLiteral(".".join(path))
    for count in range(len(path) - 1, 0, -1):
        try:
            value: object = importlib.import_module(".".join(path[:count]))
        except ImportError:
            continue
        for name in path[count:]:
            value = getattr(value, name, None)
        return _class_name(value, path)
    raise NotLiteral(".".join(path))


def _class_name(value: object, path: list[str]) -> str:
    if isinstance(value, type) and issubclass(value, BaseException):
        return value.__name__
    raise NotLiteral(".".join(path))
