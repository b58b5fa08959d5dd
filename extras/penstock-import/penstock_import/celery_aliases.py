"""Other names by which code reaches the configuration of an application, the application itself, or a task. What is set by such
a name is not proven to be no setting and no option, so that each place is named."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass

from penstock_import.celery_calls import bound_names, called, root_name, walk
from penstock_import.celery_options import RETRY_OPTIONS, TASK_OPTIONS
from penstock_import.celery_setting_names import TASK_SETTINGS, advice_of, today
from penstock_import.celery_uses import Use, advice_of_call, of_setattr, setting_of

_OPTIONS = TASK_OPTIONS | RETRY_OPTIONS
_READING = frozenset({"get", "keys", "values", "items", "copy", "table", "humanize", "update"})
"""The methods of a configuration that set nothing, and the one whose arguments are read."""
_SETTING = frozenset({"setattr", "setdefault", "update", "__setattr__", "__setitem__"})
_HARMLESS = frozenset(
    {"callable", "getattr", "hasattr", "id", "isinstance", "len", "print", "repr", "setattr", "str", "type"}
)
"""Functions of Python that set nothing, or that are named by another rule."""
_LOOK = "Code outside of the sources may change settings, options and schedules: look there, and write what it sets by hand."
ZONES = frozenset({"CELERY_TIMEZONE", "timezone"})
OF_ZONE = advice_of("timezone")
LOOK_CONF = (
    "Settings may be given by that name: look where it goes, and write them of the actions and schedules."
)
_OF_ACTION = "Write it of the action, unless it is no task."


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
    """Return a module in which a name for `app.conf` is replaced by it, where one statement of the module binds that name.
    So is `getattr(app, "conf")`."""
    tree = _replaced(tree, _Plain({}))
    bound = Counter(bound_names(tree))
    aliases = {
        node.targets[0].id: node.value
        for node in walk(tree)
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name)
        if bound[node.targets[0].id] == 1 and _is_configuration(node.value)
    }
    tree.__dict__["aliases_of_conf"] = frozenset(aliases)
    return _replaced(tree, _Plain(aliases)) if aliases else tree


def _replaced(tree: ast.Module, plain: _Plain) -> ast.Module:
    replaced = plain.visit(tree)
    tree.__dict__.pop("walked", None)
    assert isinstance(replaced, ast.Module)
    return replaced


def _is_configuration(node: ast.AST) -> bool:
    """Return whether an expression is the member `conf` of a name."""
    return isinstance(node, ast.Attribute) and node.attr == "conf" and bool(root_name(node))


@dataclass(frozen=True, slots=True)
class Aliases:
    """The names in one module. `apps` are those of applications. `own` are the functions and classes of all sources.
    `reachable` are the names that modules import, and those of members. `is_task` tells whether an expression names a task."""

    tree: ast.Module
    apps: Collection[str]
    own: Collection[str]
    reachable: frozenset[str]
    is_task: Callable[[ast.expr], bool]
    functions: Mapping[str, list[ast.FunctionDef | ast.AsyncFunctionDef]]
    foreign: Collection[str]
    """The names that are imported from outside of the sources."""

    def uses(self) -> Iterator[Use]:
        """Yield each place that may set something by another name."""
        parents = {id(child): node for node in walk(self.tree) for child in ast.iter_child_nodes(node)}
        for node in walk(self.tree):
            yield from self.of_conf(node, parents)
            if isinstance(node, ast.Call):
                yield from self._of_call(node)
            if isinstance(node, ast.Attribute) and node.attr == "__dict__" and self._reaches(node.value):
                yield Use(node, f"{ast.unparse(node)}, which may set options", _OF_ACTION)
        yield from _of_options(self.tree, parents, self._reaches)
        yield from _of_settings(self.tree)

    def zones(self) -> Iterator[Use]:
        """Yield each assignment of a zone to a member of a name, which counts where a configuration has another name."""
        for node in walk(self.tree):
            for target in _targets(node):
                name = getattr(target, "attr", None) or getattr(getattr(target, "slice", None), "value", None)
                if name in ZONES and isinstance(target, ast.expr) and setting_of(target) is None:
                    yield Use(node, f"the setting {ast.unparse(target)}", OF_ZONE)
            if isinstance(node, ast.Call) and called(node) in _SETTING:
                words = {word.arg for word in node.keywords}
                words |= {
                    getattr(part, "value", None) for part in node.args[:2] if isinstance(part, ast.Constant)
                }
                if words & ZONES:
                    yield Use(node, f"{ast.unparse(node)}, which may set settings", OF_ZONE)

    def _is_conf(self, node: ast.AST) -> bool:
        return (
            _is_configuration(node)
            and isinstance(getattr(node, "ctx", None), ast.Load)
            and not (isinstance(node, ast.Attribute) and ast.unparse(node.value) in ("django", "self"))
        )

    def of_conf(self, node: ast.AST, parents: dict[int, ast.AST]) -> Iterator[Use]:
        """Yield a place where a configuration is given another name, or a method of it sets a setting."""
        if not self._is_conf(node):
            return
        parent = parents.get(id(node), self.tree)
        above = parents.get(id(parent), self.tree)
        text = ast.unparse(node)
        if isinstance(parent, ast.Attribute):
            is_call = isinstance(above, ast.Call) and above.func is parent
            if parent.attr == "__dict__" or (is_call and parent.attr not in _READING):
                yield Use(above, f"{ast.unparse(above)}, which may set settings", advice_of_call(above, 0))
        elif _is_read(parent) or (
            isinstance(parent, ast.Assign) and all(map(self._is_known, parent.targets))
        ):
            return
        elif isinstance(parent, ast.Call) and called(parent) == "setattr" and len(parent.args) == 3:
            yield of_setattr(parent)
        elif not isinstance(parent, ast.Call) or called(parent) not in _HARMLESS:
            yield Use(
                parent if hasattr(parent, "lineno") else node, f"{text}, which gets another name", LOOK_CONF
            )

    def _is_known(self, target: ast.expr) -> bool:
        """Return whether all that is set by a name of a configuration is read."""
        if isinstance(target, ast.Name):
            is_alias = target.id in self.tree.__dict__.get("aliases_of_conf", ())
            return target.id.endswith("conf") or (is_alias and not {target.id, "*"} & self.reachable)
        return isinstance(target, ast.Attribute) and target.attr.endswith("conf")

    def _of_call(self, call: ast.Call) -> Iterator[Use]:
        """Yield a call of code outside of the sources with an application, its configuration or a task."""
        if self._is_own(call) or root_name(call.func) in self.apps:
            return
        if (isinstance(call.func, ast.Name) and call.func.id in _HARMLESS) or root_name(
            call.func
        ) == "inspect":
            return
        for value in [*call.args, *(word.value for word in call.keywords)]:
            if any(self._reaches(part) for part in _parts(value)):
                yield Use(call, f"the call {ast.unparse(call)}, which is given {ast.unparse(value)}", _LOOK)
                return

    def _is_own(self, call: ast.Call) -> bool:
        return called(call) in self.own and root_name(call.func) not in self.foreign

    def _reaches(self, node: ast.expr) -> bool:
        if isinstance(node, ast.Name) and (
            node.id in self.apps or id(node) in self.tree.__dict__.get("handed_on", ())
        ):
            return True
        return isinstance(node, ast.Name | ast.Attribute) and self.is_task(node)

    def handed(self) -> set[tuple[str, str]]:
        """Return function and parameter of each own function that is called with an application or a task."""
        return {
            (called(call), parameter)
            for call in walk(self.tree)
            if isinstance(call, ast.Call) and self._is_own(call)
            for number, value in enumerate([*call.args, *(word.value for word in call.keywords)])
            if any(self._reaches(part) or self._is_conf(part) for part in _parts(value))
            for parameter in self._parameters_of(call, number)
        }

    def _parameters_of(self, call: ast.Call, number: int) -> list[str]:
        if number >= len(call.args):
            return [str(call.keywords[number - len(call.args)].arg)]
        parameters = [
            [part.arg for part in [*function.args.posonlyargs, *function.args.args]]
            for function in self.functions.get(called(call), ())
        ]
        shifted = [names[1:] if names[:1] in (["self"], ["cls"]) else names for names in parameters]
        return [names[number] for names in shifted if number < len(names)]

    def note_handed(self, handed: Collection[tuple[str, str]]) -> None:
        """Note the names in functions of this module that are parameters with an application or a task."""
        places = self.tree.__dict__.setdefault("handed_on", set())
        for function in walk(self.tree):
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                names = {parameter for name, parameter in handed if name == function.name}
                places |= {
                    id(node)
                    for node in ast.walk(function)
                    if names and isinstance(node, ast.Name) and node.id in names
                }


def _parts(value: ast.expr) -> list[ast.expr]:
    """Return an argument, or what is in a list or a dict that is written as one."""
    if isinstance(value, ast.Starred):
        return _parts(value.value)
    if isinstance(value, ast.List | ast.Tuple | ast.Set):
        return value.elts
    return value.values if isinstance(value, ast.Dict) else [value]


def _is_read(parent: ast.AST) -> bool:
    return isinstance(
        parent,
        ast.Subscript
        | ast.Compare
        | ast.Expr
        | ast.JoinedStr
        | ast.FormattedValue
        | ast.BoolOp
        | ast.UnaryOp
        | ast.If,
    )


def _of_settings(tree: ast.Module) -> Iterator[Use]:
    """Yield each assignment of a setting as a member of a name that is not called `conf`."""
    for node in walk(tree):
        for target in _targets(node):
            if isinstance(target, ast.Attribute) and today(target.attr) in TASK_SETTINGS | {"beat_schedule"}:
                yield Use(node, f"the setting {ast.unparse(target)}", advice_of(target.attr))


def _targets(node: ast.AST) -> list[ast.expr]:
    if isinstance(node, ast.Assign):
        return [part for target in node.targets for part in ast.walk(target) if isinstance(part, ast.expr)]
    return [node.target] if isinstance(node, ast.AugAssign | ast.AnnAssign) else []


def _of_options(
    tree: ast.Module, parents: dict[int, ast.AST], reaches: Callable[[ast.expr], bool]
) -> Iterator[Use]:
    """Yield each option that is set on what is not proven to be no task."""
    for node in walk(tree):
        for target in _targets(node):
            if (
                isinstance(target, ast.Attribute)
                and target.attr in _OPTIONS
                and not _is_other(tree, target.value, parents)
            ):
                yield Use(node, f"the option {ast.unparse(target)}, which is set later", _OF_ACTION)
        if isinstance(node, ast.Call) and called(node) in ("setattr", "__setattr__"):
            names = node.args[-2:-1]
            owner = node.args[0] if len(node.args) == 3 else getattr(node.func, "value", None)
            is_computed = (
                bool(names)
                and not isinstance(names[0], ast.Constant)
                and owner is not None
                and reaches(owner)
            )
            is_option = is_computed or (bool(names) and getattr(names[0], "value", None) in _OPTIONS)
            if not is_option or owner is None or ast.unparse(owner).endswith("conf"):
                continue
            if not _is_other(tree, owner, parents):
                yield Use(node, f"{ast.unparse(node)}, which sets an option later", _OF_ACTION)


def _is_other(tree: ast.Module, owner: ast.expr, parents: dict[int, ast.AST]) -> bool:
    """Return whether an expression is proven to be no task: the object of a class that is no task, or a new object."""
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
