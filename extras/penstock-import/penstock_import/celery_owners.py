"""The application to which a module gives a setting by `app.conf`, for sources with several applications."""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping

from penstock_import.celery_calls import bound_names, called, root_name, walk


class Owners:
    """The applications of modules, each by its file and its name. `classes` are the classes of applications."""

    def __init__(self, trees: Mapping[str, ast.Module], classes: Collection[str]) -> None:
        self._apps = {id(tree): _applications(tree, classes) for tree in trees.values()}
        self._by_value: dict[int, str] = {}
        """The application by a value that a statement gives it, and by each entry of such a value."""
        self.are_several = sum(map(len, self._apps.values())) > 1
        for file, tree in trees.items() if self.are_several else ():
            for statement in walk(tree):
                if isinstance(statement, ast.Assign | ast.Expr) and (
                    app := self.of_statement(tree, statement)
                ):
                    self._own(tree, statement.value, f"{file}:{app}")

    def of_statement(self, tree: ast.AST, statement: ast.AST) -> str:
        """Return the name of the application with the configuration that a statement changes; empty for any other."""
        target: ast.AST | None = None
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            target = statement.targets[0]
        elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
            target = statement.value.func
        name = root_name(target) if target is not None else ""
        is_conf = target is not None and ast.unparse(target).startswith(f"{name}.conf")
        return name if is_conf and name in self._apps.get(id(tree), ()) else ""

    def of_call(self, file: str, tree: ast.Module, call: ast.Call) -> str:
        """Return the application with the `add_periodic_task` that is called, also in a receiver of its signal; or an empty
        text."""
        names = [root_name(call.func)]
        for function in walk(tree):
            if isinstance(function, ast.FunctionDef) and call in walk(function):
                own = [*function.args.posonlyargs, *function.args.args][:1]
                if [argument.arg for argument in own] == names:
                    names = [root_name(decorator) for decorator in function.decorator_list]
        return f"{file}:{names[0]}" if len(names) == 1 and names[0] in self._apps.get(id(tree), ()) else ""

    def of(self, value: ast.expr) -> str:
        """Return the application that a value of a setting, or an entry of such a value, belongs to; empty if only
        running the code would tell."""
        return self._by_value.get(id(value), "")

    def _own(self, tree: ast.Module, value: ast.expr, app: str) -> None:
        """Note the application of all dicts in a value, and of those that it names."""
        for part in walk(value):
            if isinstance(part, ast.expr):
                self._by_value[id(part)] = app
            if isinstance(part, ast.Name) and bound_names(tree)[part.id] == 1:
                loads = [
                    node
                    for node in walk(tree)
                    if isinstance(node, ast.Name) and node.id == part.id and isinstance(node.ctx, ast.Load)
                ]
                definitions = [
                    node.value
                    for node in tree.body
                    if isinstance(node, ast.Assign)
                    and [ast.unparse(name) for name in node.targets] == [part.id]
                ]
                if len(loads) == 1 and len(definitions) == 1 and definitions[0] is not value:
                    self._own(tree, definitions[0], app)


def _applications(tree: ast.Module, classes: Collection[str]) -> set[str]:
    """Return the names that one statement at the top of a module gives an application."""
    return {
        node.targets[0].id
        for node in tree.body
        if isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Call)
        and called(node.value) in classes
        and len(node.targets) == 1
        and isinstance(node.targets[0], ast.Name)
        and bound_names(tree)[node.targets[0].id] == 1
    }


def belong_apart(first: str, second: str) -> bool:
    """Return whether two places belong to different applications."""
    return bool(first and second) and first != second
