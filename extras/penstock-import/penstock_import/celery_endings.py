"""The calls with which a module may end its process while it is imported, before its application has tasks and schedules."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from penstock_import.celery_calls import absolute_path, bound_names, children, imported_names, walk

_ENDINGS = frozenset({"exit", "quit", "os._exit", "os.abort", "sys.exit"})
_FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef
BY_HAND = (
    "Where it ends the process, Celery has no task and no schedule of the module. The import takes them as if it never did: do "
    "not apply them there, or disable the schedules."
)


@dataclass(frozen=True, slots=True)
class Ending:
    """A place that ends the process while a module is imported. `caller` is the place that calls its function, or empty."""

    file: str
    node: ast.AST
    conditions: tuple[str, ...]
    caller: str

    @property
    def subject(self) -> str:
        """Return the text of the place, with its conditions."""
        caller = f" in a function that {self.caller} calls" if self.caller else ""
        conditions = f" {' and '.join(self.conditions)}" if self.conditions else ""
        return f"{ast.unparse(self.node)}{caller}, which ends the import of a module{conditions}"


def endings(
    trees: Mapping[str, ast.Module], roots: Collection[str], modules: Mapping[str, ast.Module]
) -> list[Ending]:
    """Return the places that may end the process while one of the modules `roots` is imported, or a module that it imports.
    `modules` are the modules of the sources by path."""
    files = {id(tree): file for file, tree in trees.items()}
    by_place: dict[int, Ending] = {}
    reached, waiting = set[str](), list(roots)
    while waiting:
        file = waiting.pop()
        if file in reached:
            continue
        reached.add(file)
        for ending in _of_module(file, trees[file], files, modules):
            by_place.setdefault(id(ending.node), ending)
        for path in _imported_at_start(file, trees[file]):
            parts = path.split(".")
            paths = [".".join(parts[:number]) for number in range(1, len(parts) + 1)]
            waiting += [files[id(modules[name])] for name in paths if name in modules]
    return sorted(by_place.values(), key=lambda ending: (ending.file, getattr(ending.node, "lineno", 0)))


def _of_module(
    file: str, tree: ast.Module, files: Mapping[int, str], modules: Mapping[str, ast.Module]
) -> Iterator[Ending]:
    """Yield the endings of a module, and of the functions that it calls while it is imported."""
    waiting: list[tuple[str, ast.Module, ast.AST, tuple[str, ...], str]] = [(file, tree, tree, (), "")]
    entered: set[int] = set()
    while waiting:
        place, module, scope, above, caller = waiting.pop()
        if id(scope) in entered:
            continue
        entered.add(id(scope))
        imported = dict(imported_names(module))
        own = bound_names(module).keys() - imported.keys()
        for node, conditions in _running(scope, above):
            if _ends(node, imported, own):
                yield Ending(place, node, conditions, caller)
            if isinstance(node, ast.Call):
                for other_module, function in _functions_of(place, module, node.func, modules):
                    line = f"{place}:{node.lineno}"
                    waiting.append((files[id(other_module)], other_module, function, conditions, line))


def _ends(node: ast.AST, imported: Mapping[str, str], own: Collection[str]) -> bool:
    """Return whether a statement or a call ends the process. `own` are the names that the module binds itself."""
    if isinstance(node, ast.Raise) and node.exc is not None:
        raised = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
        return ast.unparse(raised) in ("SystemExit", "builtins.SystemExit")
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name | ast.Attribute):
        return False
    text = ast.unparse(node.func)
    root, dot, members = text.partition(".")
    return root not in own and f"{imported.get(root, root)}{dot}{members}" in _ENDINGS


def _running(scope: ast.AST, above: tuple[str, ...]) -> Iterator[tuple[ast.AST, tuple[str, ...]]]:
    """Yield the parts that run with a scope, each with its conditions: not those of functions and scripts within it."""
    waiting: list[tuple[ast.AST, tuple[str, ...]]] = [(child, above) for child in _own_parts(scope)]
    while waiting:
        node, conditions = waiting.pop()
        if isinstance(node, _FUNCTIONS):
            waiting += [(part, conditions) for part in node.decorator_list]
            continue
        if isinstance(node, ast.Lambda):
            continue
        yield node, conditions
        if isinstance(node, ast.If | ast.IfExp | ast.While):
            test = ast.unparse(node.test)
            if "__name__" in test and "__main__" in test:
                waiting += [(part, conditions) for part in _listed(node.orelse)]
                continue
            waiting.append((node.test, conditions))
            waiting += [(part, (*conditions, f"where {test}")) for part in _listed(node.body)]
            is_plain = isinstance(node.test, ast.Name | ast.Attribute | ast.Call | ast.Subscript)
            denied = f"where not {test}" if is_plain else f"where not ({test})"
            waiting += [(part, (*conditions, denied)) for part in _listed(node.orelse)]
        elif isinstance(node, ast.BoolOp):
            word = "where" if isinstance(node.op, ast.And) else "where not"
            for number, value in enumerate(node.values):
                tests = tuple(f"{word} {ast.unparse(part)}" for part in node.values[:number])
                waiting.append((value, (*conditions, *tests)))
        elif isinstance(node, ast.ExceptHandler):
            error = ast.unparse(node.type) if node.type is not None else "any error"
            waiting += [(part, (*conditions, f"after {error}")) for part in node.body]
        elif isinstance(node, ast.match_case):
            waiting += [
                (part, (*conditions, f"in the case {ast.unparse(node.pattern)}")) for part in node.body
            ]
        elif isinstance(node, ast.For | ast.AsyncFor):
            waiting.append((node.iter, conditions))
            waiting += [(part, (*conditions, f"for each of {ast.unparse(node.iter)}")) for part in node.body]
            waiting += [(part, conditions) for part in node.orelse]
        else:
            waiting += [(child, conditions) for child in children(node)]


def _own_parts(scope: ast.AST) -> Sequence[ast.AST]:
    return scope.body if isinstance(scope, _FUNCTIONS) else children(scope)


def _listed(part: ast.expr | list[ast.stmt]) -> Sequence[ast.AST]:
    return part if isinstance(part, list) else [part]


def _functions_of(
    file: str, tree: ast.Module, called: ast.expr, modules: Mapping[str, ast.Module]
) -> Iterator[tuple[ast.Module, ast.AST]]:
    """Yield the functions of the sources that a called name means, each with its module."""
    text = ast.unparse(called) if isinstance(called, ast.Name | ast.Attribute) else ""
    paths = [(tree, text)] if text.isidentifier() else []
    root, dot, members = text.partition(".")
    for node in walk(tree):
        if isinstance(node, ast.ImportFrom):
            package = absolute_path(file, node)
            names = [(alias.asname or alias.name, f"{package}.{alias.name}") for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [
                (alias.asname or alias.name.partition(".")[0], alias.name if alias.asname else "")
                for alias in node.names
            ]
            names = [(name, path or name) for name, path in names]
        else:
            continue
        for name, path in names:
            if name == root:
                package, _, function = f"{path}{dot}{members}".rpartition(".")
                paths += [
                    (modules[prefix], function) for prefix in (package, f".{package}") if prefix in modules
                ]
    for module, name in paths:
        for part in module.body:
            if isinstance(part, ast.FunctionDef) and part.name == name:
                yield module, part


def _imported_at_start(file: str, tree: ast.Module) -> Iterator[str]:
    """Yield the paths that a module imports when it is imported itself, also those that are names of a module."""
    for node, _ in _running(tree, ()):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            package = absolute_path(file, node)
            yield from (f"{package}.{alias.name}".lstrip(".") for alias in node.names)
