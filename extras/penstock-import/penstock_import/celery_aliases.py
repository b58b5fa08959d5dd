"""Other names by which code reaches the configuration of an application, the application itself, or a task. If code
sets a member of such a name, the member may be a setting or an option. So each such place becomes a gap."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from penstock_import.celery_calls import bound_names, called, forget, root_name, walk
from penstock_import.celery_options import RETRY_OPTIONS, TASK_OPTIONS
from penstock_import.celery_scopes import parents_of
from penstock_import.celery_setting_names import TASK_SETTINGS, advice_of, today
from penstock_import.celery_uses import Use
from penstock_import.celery_values import is_namespace

_OPTIONS = TASK_OPTIONS | RETRY_OPTIONS
_WITHOUT_MEANING = frozenset({"backend"})
"""The options that change nothing here, and that objects of many other classes have. A proven task is named with them."""
_OF_ACTION = "If it is a task, write it into the action."
_LOOK_WHERE = (
    "It may change a task, an application or its settings: see what the code does, and write that by hand."
)


class _Plain(ast.NodeTransformer):
    def __init__(self, aliases: dict[str, ast.expr]) -> None:
        self._aliases = aliases

    def visit_Name(self, node: ast.Name) -> ast.expr:
        value = self._aliases.get(node.id)
        if value is None or not isinstance(node.ctx, ast.Load):
            return node
        return ast.copy_location(ast.Attribute(value.value, "conf", ast.Load()), node)  # type: ignore[attr-defined]

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        is_getattr = isinstance(node.func, ast.Name) and node.func.id == "getattr" and len(node.args) > 1
        if is_getattr and getattr(node.args[1], "value", None) == "conf":
            return ast.copy_location(ast.Attribute(node.args[0], "conf", ast.Load()), node)
        return node


def with_plain_configuration(tree: ast.Module) -> ast.Module:
    """Return a module in which another name for `app.conf` is replaced by `app.conf`, if only one statement of the
    module binds that name. `getattr(app, "conf")` is replaced too."""
    tree = _replaced(tree, _Plain({}))
    bound = bound_names(tree)
    aliases = {
        node.targets[0].id: node.value
        for node in walk(tree)
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name)
        if bound[node.targets[0].id] == 1 and _is_configuration(node.value)
    }
    return _replaced(tree, _Plain(aliases)) if aliases else tree


def _replaced(tree: ast.Module, plain: _Plain) -> ast.Module:
    replaced = plain.visit(tree)
    forget(tree)
    assert isinstance(replaced, ast.Module)
    return replaced


def _is_configuration(node: ast.AST) -> bool:
    """Return whether an expression is the member `conf` of a name."""
    return isinstance(node, ast.Attribute) and node.attr == "conf" and bool(root_name(node))


def uses_by_name(tree: ast.Module) -> Iterator[Use]:
    """Yield each place that may change a task or a configuration under another name:

    - an option that is set on an object that may be a task;
    - a text that is run as code (`eval`, `exec`), and a name of the module that is computed;
    - a setting that is set on an object that is not called `conf`.
    """
    parents = parents_of(tree)
    yield from _of_options(tree, parents)
    yield from _of_unread_text(tree)
    yield from _of_settings(tree)


def _of_settings(tree: ast.Module) -> Iterator[Use]:
    """Yield each assignment of a setting as a member of a name that is not called `conf`."""
    for node in walk(tree):
        for target in _targets(node):
            if isinstance(target, ast.Attribute) and today(target.attr) in TASK_SETTINGS | {"beat_schedule"}:
                yield Use(node, f"the setting {ast.unparse(target)}", advice_of(target.attr))


def _of_unread_text(tree: ast.Module) -> Iterator[Use]:
    """Yield each place that runs a text as code, or reads a name of the module that is computed."""
    for node in walk(tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in ("eval", "exec")
        ):
            yield Use(node, f"{ast.unparse(node)}, which runs a text as code", _LOOK_WHERE)
        elif isinstance(node, ast.Subscript) and is_namespace(node.value):
            is_known = isinstance(node.slice, ast.Constant)
            yield from (
                () if is_known else [Use(node, f"{ast.unparse(node)}, with a computed name", _LOOK_WHERE)]
            )


def _targets(node: ast.AST) -> list[ast.expr]:
    if isinstance(node, ast.Assign):
        return [part for target in node.targets for part in ast.walk(target) if isinstance(part, ast.expr)]
    return [node.target] if isinstance(node, ast.AugAssign | ast.AnnAssign) else []


def _of_options(tree: ast.Module, parents: dict[int, ast.AST]) -> Iterator[Use]:
    """Yield each option that is set on an object that may be a task."""
    for node in walk(tree):
        for target in _targets(node):
            if (
                isinstance(target, ast.Attribute)
                and target.attr in _OPTIONS - _WITHOUT_MEANING
                and not _is_other(tree, target.value, parents)
            ):
                yield Use(node, f"the option {ast.unparse(target)}, which is set later", _OF_ACTION)
        if isinstance(node, ast.Call) and called(node) in ("setattr", "__setattr__"):
            names = node.args[-2:-1]
            owner = node.args[0] if len(node.args) == 3 else getattr(node.func, "value", None)
            is_option = bool(names) and getattr(names[0], "value", None) in _OPTIONS
            if not is_option or owner is None or ast.unparse(owner).endswith("conf"):
                continue
            if not _is_other(tree, owner, parents):
                yield Use(node, f"{ast.unparse(node)}, which sets an option later", _OF_ACTION)


def _is_other(tree: ast.Module, owner: ast.expr, parents: dict[int, ast.AST]) -> bool:
    """Return whether an expression is certainly not a task: an object of a class that is not a task, or a new object."""
    if not isinstance(owner, ast.Name):
        return False
    around: ast.AST | None = parents.get(id(owner))
    while around is not None and not isinstance(around, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        around = parents.get(id(around))
    if around is None:
        around = tree
    elif owner.id == "self":
        holder = parents.get(id(around))
        return isinstance(holder, ast.ClassDef) and not any(
            "Task" in ast.unparse(base) for base in holder.bases
        )
    stores = [
        node
        for node in ast.walk(around)
        if (isinstance(node, ast.Name) and node.id == owner.id and not isinstance(node.ctx, ast.Load))
        or (isinstance(node, ast.arg) and node.arg == owner.id)
    ]
    return bool(stores) and all(_is_new(parents.get(id(store)), store) for store in stores)


def _is_new(statement: ast.AST | None, store: ast.AST) -> bool:
    """Return whether a statement gives a name an object of a class: `Job()`, or `Job.objects.get()`."""
    if not isinstance(statement, ast.Assign) or store not in statement.targets:
        return False
    root = root_name(statement.value)
    return isinstance(statement.value, ast.Call) and root[:1].isupper() and "Task" not in root
