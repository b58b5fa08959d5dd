"""The tasks that may ask Celery for a retry: by a call of `retry`, or because they hand the task or its `retry` on."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TypeGuard

from penstock_import.celery_calls import called, imported_names, once, root_name, walk
from penstock_import.celery_flow import HARMLESS, MEMBERS_OF_TASK, NAMES_OF_TASK, is_log
from penstock_import.celery_makers import last_name
from penstock_import.celery_scopes import bindings_at, parents_of

_RETRYING = frozenset({"backoff", "retry", "retrying", "tenacity"})
"""Packages with a `retry` of their own, which asks nothing of Celery."""
_ASKING = frozenset(
    {"bind", "on_bound", "retry", "run", "signature_from_request", "subtask_from_request", "__wrapped__"}
)
_PLAIN_MEMBERS = (MEMBERS_OF_TASK | NAMES_OF_TASK | {"app", "__class__"}) - _ASKING
"""The members of a task that ask for no retry, and hand the task to no other code."""
_READING_BY_NAME = frozenset({"attrgetter", "getattr", "methodcaller"})
_CURRENT = frozenset({"current_task", "get_current_task"})
_OF_CELERY = frozenset({"Task", "app.Task", "celery.Task"})
_Function = ast.FunctionDef | ast.AsyncFunctionDef


class Retries:
    """The places of a source that may ask for a retry. `foreign` returns the names that a file takes from packages
    outside of the sources."""

    def __init__(self, trees: Mapping[str, ast.Module], foreign: Callable[[str], Collection[str]]) -> None:
        self._trees, self._foreign = trees, foreign
        self._definitions: dict[str, list[tuple[str, ast.AST]]] = {}
        for file, tree in trees.items():
            for statement in tree.body:
                for name in _names_defined(statement):
                    self._definitions.setdefault(name, []).append((file, statement))
        self._of_current = self._reaching(lambda file, node: self._asks(file, node, frozenset(), False))
        """Names of code that asks for a retry of the task that runs, whatever task that is."""
        self._of_any = self._reaching(self._asks_of_any)
        """Names of code that asks for a retry of a task that it is given."""

    def may_ask(self, file: str, task: _Function, is_bound: bool) -> bool:
        """Return whether a task may ask for a retry."""
        spread = [task.args.vararg] if task.args.vararg is not None else []
        arguments = [*task.args.posonlyargs, *task.args.args, *spread][:1]
        objects = {argument.arg for argument in arguments if is_bound}
        if any(self._asks(file, part, frozenset({*objects, task.name}), True, task) for part in task.body):
            return True
        if objects and any(_is_locals(node) for part in task.body for node in walk(part)):
            return True
        if _words(task.body) & self._of_current:
            return True
        return bool(
            _words(task.decorator_list) & self._of_any
        )  # a class of tasks, or a decorator beside Celery's

    def _reaching(self, asks: Callable[[str, ast.AST], bool]) -> set[str]:
        """Return the names of all definitions that ask for a retry, or that name another one which does."""
        names = {
            name
            for name, places in self._definitions.items()
            if any(asks(file, node) for file, node in places)
        }
        words = {
            name: set[str]().union(*(_words([node]) for _, node in places))
            for name, places in self._definitions.items()
            if name not in names
        }
        users: dict[str, list[str]] = {}
        for name, own in words.items():
            for word in own & self._definitions.keys():
                users.setdefault(word, []).append(name)
        waiting = list(names)
        while waiting:
            further = [name for name in users.get(waiting.pop(), ()) if name not in names]
            names |= set(further)
            waiting += further
        return names

    def _asks_of_any(self, file: str, node: ast.AST) -> bool:
        """Return whether code asks for a retry of any task: a class of tasks, or a function around a task."""
        parameters = {part.arg for part in walk(node) if isinstance(part, ast.arg) and part.arg == "self"}
        is_class = isinstance(node, ast.ClassDef)
        return self._asks(file, node, frozenset(parameters if is_class else ()), True)

    def _asks(
        self,
        file: str,
        root: ast.AST,
        objects: frozenset[str],
        has_others: bool,
        task: _Function | None = None,
    ) -> bool:
        """Return whether code asks for a retry, or hands a task on. `objects` are the names of the task. With `has_others`,
        a `retry` of any other object counts too."""
        tree = self._trees[file]
        if not objects and not _mentioned(tree) & (_CURRENT | {"retry"} if has_others else _CURRENT):
            return False
        parents = parents_of(tree)
        current = {name for name, path in imported_names(tree) if path.rpartition(".")[2] in _CURRENT}
        for node in walk(root):
            above = parents.get(id(node))
            if isinstance(node, ast.Call) and has_others:
                name = called(node)
                if name == "retry" and self._is_of_task(file, node, node.func):
                    return True
                if name in _READING_BY_NAME and any(
                    getattr(part, "value", "") == "retry" for part in node.args
                ):
                    return True
            elif has_others and _is_held_retry(node, above) and self._is_of_task(file, node, node):
                return True
            if self._is_task(node, objects | current, task) and self._is_handed_on(file, node, parents, task):
                return True
        return False

    def _is_of_task(self, file: str, place: ast.AST, node: ast.expr) -> bool:
        """Return whether a `retry` may be that of a task, and is not that of another package."""
        bindings = bindings_at(self._trees[file], place, root_name(node))
        imported = [part for part in bindings if isinstance(part, ast.Import | ast.ImportFrom)]
        if isinstance(node, ast.Name):
            functions = [
                part for part in bindings if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef)
            ]
            return not bindings or len(imported) + len(functions) < len(bindings)
        paths = [path for part in imported for name, path in imported_names(part) if name == root_name(node)]
        if isinstance(place, ast.Attribute) and paths and len(imported) == len(bindings):
            packages = {path.partition(".")[0] for path in paths}
            return not (root_name(node) in self._foreign(file) and "celery" not in packages)
        return not paths or any(path.partition(".")[0] not in _RETRYING for path in paths)

    def _is_task(self, node: ast.AST, names: Collection[str], task: _Function | None) -> bool:
        """Return whether an expression is the running task, or a task from the registry of an application (`app.tasks[...]`)."""
        if isinstance(node, ast.Name):
            is_other = task is not None and node.id == task.name and _is_bound_within(task, node.id)
            return node.id in names and isinstance(node.ctx, ast.Load) and not is_other
        if isinstance(node, ast.Attribute):
            return node.attr in _CURRENT and isinstance(node.ctx, ast.Load)
        return (
            isinstance(node, ast.Subscript)
            and getattr(node.value, "attr", "") == "tasks"
            and task is not None
        )

    def _is_handed_on(
        self, file: str, node: ast.AST, parents: Mapping[int, ast.AST], task: _Function | None
    ) -> bool:
        """Return whether other code gets a task, or asks it for a retry. A member of Celery's tasks hands nothing on."""
        above = parents.get(id(node))
        while isinstance(above, ast.Call) and above.func is node and _is_current(node):
            node, above = above, parents.get(id(above))  # get_current_task()
        match above:
            case ast.Attribute(attr=member):
                if member in _CURRENT:
                    return False  # the member is looked at by itself
                if member in _PLAIN_MEMBERS or isinstance(above.ctx, ast.Store):
                    return False
                return member in _ASKING or not (task is not None and self._has_quiet_base(task))
            case ast.Call(func=function) if function is node:
                return False
            case ast.Call():
                is_plain = isinstance(above.func, ast.Name) and above.func.id in HARMLESS
                return not (is_plain or is_log(above))
            case ast.Compare() | ast.FormattedValue() | ast.If() | ast.IfExp() | ast.UnaryOp() | ast.Expr():
                return isinstance(above, ast.IfExp) and above.test is not node
            case _:
                return True

    def _has_quiet_base(self, task: _Function) -> bool:
        """Return whether all classes that a task extends are in the sources, and ask for no retry."""
        words = [word for part in task.decorator_list if isinstance(part, ast.Call) for word in part.keywords]
        waiting, names = [word.value for word in words if word.arg == "base"], set[str]()
        if not waiting or any(word.arg is None for word in words):
            return False
        while waiting:
            base = waiting.pop()
            name = last_name(base)
            if name in names or ast.unparse(base) in _OF_CELERY or name == "Task":
                continue
            names.add(name)
            classes = [node for _, node in self._definitions.get(name, ()) if isinstance(node, ast.ClassDef)]
            if not classes or name in self._of_any:
                return False
            waiting += [above for class_ in classes for above in class_.bases]
        return True


@once
def _mentioned(tree: ast.AST) -> frozenset[str]:
    """Return all names, members and short texts of a module."""
    nodes = walk(tree)
    words = {node.id for node in nodes if isinstance(node, ast.Name)}
    words |= {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    words |= {node.name.rpartition(".")[2] for node in nodes if isinstance(node, ast.alias)}
    return frozenset(
        words | {str(node.value) for node in nodes if isinstance(node, ast.Constant)} & {"retry"}
    )


def _names_defined(statement: ast.stmt) -> Iterator[str]:
    """Yield the names that a statement of a module defines, also under a condition."""
    for node in walk(statement):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        if node is statement and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            return
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


def _words(nodes: Collection[ast.AST]) -> set[str]:
    """Return the names and the members of modules in some code."""
    words: set[str] = set()
    for part in nodes:
        for node in walk(part):
            if isinstance(node, ast.Name):
                words.add(node.id)
            elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                words.add(node.attr)
    return words


def _is_held_retry(node: ast.AST, above: ast.AST | None) -> TypeGuard[ast.Attribute]:
    """Return whether a member `retry` is kept or passed on. A called one is looked at as a call."""
    if not isinstance(node, ast.Attribute) or node.attr != "retry":
        return False
    is_called = isinstance(above, ast.Call) and above.func is node
    return isinstance(node.ctx, ast.Load) and not is_called and not isinstance(above, ast.Attribute)


def _is_current(node: ast.AST) -> bool:
    return getattr(node, "attr", getattr(node, "id", "")) == "get_current_task"


def _is_locals(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and called(node) in ("locals", "vars") and not node.args


def _is_bound_within(task: _Function, name: str) -> bool:
    """Return whether a task binds a name itself, so that the name is not the task."""
    return any(
        (isinstance(node, ast.Name) and node.id == name and not isinstance(node.ctx, ast.Load))
        or (isinstance(node, ast.arg) and node.arg == name)
        for node in walk(task)
    )
