"""The flow of applications, their configurations and tasks through the names of a source. Code may change such a value by any
name. Each use of a value by a name of its own is harmless, or leads to a further name, or is a gap."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TypeGuard

from penstock_import.celery_calls import called, imported_names, root_name, walk
from penstock_import.celery_classes import names_of_task_classes
from penstock_import.celery_entries import SETUPS
from penstock_import.celery_makers import Applications, is_extension
from penstock_import.celery_options import RETRY_OPTIONS, TASK_OPTIONS
from penstock_import.celery_results import (
    HARMLESS_OF_RESULT,
    PARTS,
    PASSED_ON,
    advice_of_result,
    is_class_of_results,
    is_start,
    may_be_of_result,
)
from penstock_import.celery_setting_names import OF_ANY, OF_ZONE, ZONES, advice_of, is_setting, today
from penstock_import.celery_uses import (
    ADVICE_OF_REQUEST,
    Use,
    advice_of_call,
    advice_of_member,
    advice_of_start,
    of_application,
)
from penstock_import.celery_values import (
    APP,
    CONF,
    IN,
    MAYBE_RESULT,
    RESULT,
    RESULT_CLASS,
    SETTING,
    SIGNATURE,
    TASK,
    Function,
    Values,
    within,
)

_HELD_SETTINGS = frozenset({"beat_schedule", "task_annotations", "task_queues", "task_routes"})
_HELD_NAMES = frozenset({"CELERYBEAT_SCHEDULE", "CELERY_ANNOTATIONS", "CELERY_ROUTES"}) | {
    f"CELERY_{name.upper()}" for name in _HELD_SETTINGS
}
_TEXTS = frozenset({"enabled", "expires", "priority", "queue", "relative", "routing_key", "task"})
"""The items of an entry of a schedule or a route whose values are texts or numbers."""
_OPTIONS = TASK_OPTIONS | RETRY_OPTIONS | {"__call__", "run"}
_READING = frozenset({"copy", "get", "humanize", "items", "keys", "table", "values", "without_defaults"})
_PUTTING = frozenset({"add", "append", "appendleft", "extend", "insert", "put", "setdefault", "update"})
_TAKING = frozenset({"copy", "get", "items", "pop", "popitem", "popleft", "values", "setdefault", "union"})
HARMLESS = frozenset(
    {
        "all", "any", "bool", "callable", "format", "hasattr", "hash", "id",
        "isinstance", "issubclass", "len", "print", "repr", "str", "super",
    }
)  # fmt: skip
"""Functions of Python that set nothing, or that another rule handles."""
_PASSING = frozenset(
    {
        "chain", "cast", "cycle", "dict", "deque", "enumerate", "filter", "frozenset", "iter", "list",
        "map", "max", "min", "next", "reversed", "set", "sorted", "tuple", "zip",
    }
)  # fmt: skip
"""Functions of Python that return their argument, or a part of it."""
_LOGGING = frozenset({"critical", "debug", "error", "exception", "info", "log", "warning"})
_SIGNING = frozenset({"s", "si", "signature", "subtask"})
NAMES_OF_TASK = frozenset({"__doc__", "__module__", "__name__", "__qualname__", "name"})
"""The members of a task that have nothing but its name."""
MEMBERS_OF_TASK = RETRY_OPTIONS | TASK_OPTIONS | frozenset(
    {
        "AsyncResult", "__wrapped__", "add_to_chord", "add_trail", "after_return", "annotate", "apply", "apply_async",
        "backend", "before_start", "bind", "chunks", "delay", "map", "on_bound", "on_failure", "on_replace", "on_retry",
        "on_success", "push_request", "replace", "request", "request_stack", "retry", "run", "s", "send_event",
        "shadow_name", "si", "signature", "signature_from_request", "starmap", "start_strategy", "subtask",
        "subtask_from_request", "update_state",
    }
)  # fmt: skip
_SUBJECTS = {
    APP: "the application", CONF: "the configuration", SETTING: "a setting", SIGNATURE: "a signature", TASK: "a task",
    RESULT: "a result",
}  # fmt: skip
_OF_RUN = (
    "A run cannot change its own start in Penstock. Where it ends a chain or removes a callback, write a condition (`when`) into "
    "the next task of the workflow."
)
_SEE = "See what it should do, and write that into the actions and schedules."
_OF_APP = frozenset({"conf", "current_task", "main", "name", "task", "tasks"})
_LOOK = "Code outside of the sources may change settings, options and schedules: look there, and write its changes by hand."
_OF_ACTION = "If it is a task, write it into the action."
_LOOK_WHERE = "Code may set settings and options by that name: follow the name, and write them into the actions and schedules."
_KEPT = "Other code may start the task, change its options or ask it for a retry: see what the code does, and write that by hand."
_Place = tuple[str, Function | ast.ClassDef | ast.Lambda]


def _is_of_setup(decorator: ast.expr) -> bool:
    named = decorator.func if isinstance(decorator, ast.Call) else decorator
    return ast.unparse(named).endswith(SETUPS)


class Flow:
    """The places that a value reaches. `apps` are the names of applications in a module."""

    def __init__(
        self, trees: Mapping[str, ast.Module], relevant: Collection[str], applications: Applications,
        foreign: Callable[[str], frozenset[str]],
    ) -> None:  # fmt: skip
        self._trees, self._relevant, self._foreign = trees, relevant, foreign
        self._apps, self._app_classes = applications.names, applications.parts
        self._made_of = applications.classes
        relevant_trees = {file: tree for file, tree in trees.items() if file in relevant}
        self._task_classes = names_of_task_classes(
            relevant_trees, {file: applications.names(tree) for file, tree in relevant_trees.items()}
        )
        self._values = Values(trees)
        self._uses: dict[tuple[str, int], Use] = {}
        self._functions: dict[str, list[tuple[str, Function]]] = {}
        self._classes: dict[str, list[tuple[str, ast.ClassDef]]] = {}
        self._foreign_values: dict[str, frozenset[str]] = {}
        for file, tree in trees.items():
            for node in walk(tree):
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                    self._functions.setdefault(node.name, []).append((file, node))
                elif isinstance(node, ast.ClassDef):
                    self._classes.setdefault(node.name, []).append((file, node))

    def _apps_of_modules(self) -> dict[str, set[str]]:
        """Return the variables with an application that the modules assign, by the last part of each module's path."""
        variables: dict[str, set[str]] = {}
        for file, tree in self._trees.items():
            assigned = {
                target.id
                for part in tree.body
                if isinstance(part, ast.Assign) and isinstance(part.value, ast.Call)
                for target in part.targets
                if isinstance(target, ast.Name)
            }
            stem = file.removesuffix(".py").removesuffix("/__init__").rpartition("/")[2]
            if file in self._relevant and (own := assigned & self._apps(tree)):
                variables.setdefault(stem, set()).update(own)
        return variables

    def uses(self, tasks: Iterable[tuple[str, Function]], bound: Collection[int]) -> dict[str, list[Use]]:
        """Return, by file, the uses that may set something through another name. `tasks` are the functions of tasks.
        `bound` are those with the task as their first argument."""
        for file, function in tasks:
            names = self._values.names(file)
            self._values.bind(file, function, function.name, TASK)
            if isinstance(names.scope(function), ast.ClassDef):
                self._values.give(("", 0, function.name), TASK)
            first = [*function.args.posonlyargs, *function.args.args][:1]
            if id(function) in bound and first:
                self._values.give((file, id(function), first[0].arg), TASK)
            elif id(function) in bound and function.args.vararg is not None:
                self._values.give((file, id(function), function.args.vararg.arg), IN + TASK)
        in_modules = self._apps_of_modules()
        for file, tree in self._trees.items():
            apps = self._apps(tree)
            modules = {name: path.rpartition(".")[2] for name, path in imported_names(tree)}
            for node in walk(tree):
                if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                    stem = modules.get(node.value.id, "")
                    if node.value.id not in apps and node.attr in in_modules.get(stem, ()):
                        self._values.add(file, node, APP)
                        continue
                if isinstance(node, ast.Attribute | ast.Name) and is_class_of_results(node):
                    if not _is_called(node, self._values.names(file).parents.get(id(node))):
                        self._values.add(file, node, RESULT_CLASS)
                elif _is_application(node, apps):
                    self._values.add(file, node, APP)
                elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                    is_app = file in self._relevant or root_name(node) in apps
                    if (
                        node.attr == "conf"
                        and is_app
                        and ast.unparse(node.value) not in ("", "django", "self")
                    ):
                        self._values.add(file, node, CONF)
                    elif node.attr in _HELD_NAMES:
                        self._values.add(file, node, SETTING)
                elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in _HELD_NAMES:
                    self._values.add(file, node, SETTING)
                elif isinstance(node, ast.Call) and file in self._relevant and is_start(node):
                    self._values.add(file, node, RESULT)
                elif isinstance(node, ast.Call) and file in self._relevant and called(node) in self._made_of:
                    # A variable with an application is one of `apps`. A member is not.
                    if not _is_variable(self._values.names(file).parents.get(id(node))):
                        self._values.add(file, node, APP)
                elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(SETUPS) and node.args:
                    self._follow_receiver(file, tree, node.args[0])
                elif isinstance(node, ast.FunctionDef) and any(map(_is_of_setup, node.decorator_list)):
                    self._follow_receiver(file, tree, node)
                elif isinstance(node, ast.ClassDef) and node.name in self._app_classes:
                    for part in node.body:
                        if isinstance(part, ast.FunctionDef) and part.args.args:
                            self._values.give((file, id(part), part.args.args[0].arg), APP)
                elif isinstance(node, ast.ClassDef) and node.name in self._task_classes:
                    for inner in walk(node):
                        if isinstance(inner, ast.Attribute) and ast.unparse(inner) in ("self.app", "cls.app"):
                            self._values.add(file, inner, APP)
        while self._values.waiting:
            self._follow(*self._values.waiting.pop())
        uses_by_file: dict[str, list[Use]] = {}
        for (file, _), use in self._uses.items():
            uses_by_file.setdefault(file, []).append(use)
        return uses_by_file

    def _follow_receiver(self, file: str, tree: ast.Module, receiver: ast.expr | ast.FunctionDef) -> None:
        """Note that the first argument of a receiver of a signal of an application is the application."""
        name = receiver.attr if isinstance(receiver, ast.Attribute) else getattr(receiver, "id", "")
        functions = (
            [receiver]
            if isinstance(receiver, ast.FunctionDef)
            else [part for part in walk(tree) if isinstance(part, ast.FunctionDef) and part.name == name]
        )
        for function in functions:
            names = [part.arg for part in [*function.args.posonlyargs, *function.args.args]]
            if isinstance(receiver, ast.Attribute) and names[:1] == ["self"]:
                names = names[1:]
            if names:
                self._values.give((file, id(function), names[0]), APP)

    # -- uses of a value -------------------------------------------------------------------------------------------------

    def _follow(self, file: str, node: ast.expr, kind: str) -> None:
        """Follow a value from an expression to the expression or the statement around it."""
        parents = self._values.names(file).parents
        parent = parents.get(id(node), self._trees[file])
        match parent:
            case ast.Attribute():
                self._of_member(file, parent, kind)
            case ast.Subscript(value=value) if value is node:
                self._of_item(file, parent, kind)
            case ast.Call(func=function) if function is node:
                if kind in (CONF, SETTING):
                    self._gap(file, parent, f"the call {ast.unparse(parent)} of a setting", _LOOK_WHERE)
                self._values.add_all(file, parent, [RESULT] if kind == RESULT_CLASS else within(kind))
            case ast.Call():
                self._of_argument(file, parent, node, kind)
            case ast.keyword():
                call = parents.get(id(parent))
                if isinstance(call, ast.Call):
                    self._of_argument(file, call, parent, kind)
            case ast.Starred():
                self._values.add_all(file, parent, [kind])
            case ast.Tuple() | ast.List() | ast.Set():
                if (pair := _pair(parent, node, parents)) is not None:
                    self._values.store(file, pair, [kind])
                else:
                    inner = within(kind) if isinstance(node, ast.Starred) else [kind]
                    self._values.add_all(file, parent, [IN + part.removeprefix(IN) for part in inner])
            case ast.Dict():
                is_spread = any(
                    key is None and value is node
                    for key, value in zip(parent.keys, parent.values, strict=True)
                )
                if not (is_spread and kind in (CONF, SETTING)):
                    self._values.add_all(file, parent, [IN + kind.removeprefix(IN)])
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
                self._values.add_all(file, parent, [IN + kind.removeprefix(IN)])
            case ast.comprehension(target=target, iter=iterated) if iterated is node:
                self._values.store(file, _without_key(target, iterated, kind), within(kind))
            case ast.For(target=target, iter=iterated) | ast.AsyncFor(target=target, iter=iterated) if (
                iterated is node
            ):
                self._values.store(file, _without_key(target, iterated, kind), within(kind))
            case ast.withitem(optional_vars=target):
                if target is not None:
                    self._values.store(file, target, [kind, *within(kind)])
            case ast.Assign(targets=targets):
                for target in targets:
                    self._values.store(file, target, [kind])
                    self._of_keeping(file, parent, target, kind)
            case ast.AnnAssign(target=target, value=value) | ast.AugAssign(target=target, value=value) if (
                value is node
            ):
                self._values.store(file, target, [kind])
            case ast.NamedExpr(target=target):
                self._values.store(file, target, [kind])
                self._values.add_all(file, parent, [kind])
            case ast.BinOp() if kind in (CONF, SETTING):
                pass  # the result is a copy, so it changes no setting
            case ast.Await() | ast.BoolOp() | ast.BinOp() | ast.Yield() | ast.YieldFrom():
                self._values.add_all(file, parent, [kind])
                if isinstance(parent, ast.Yield | ast.YieldFrom):
                    is_whole = isinstance(parent, ast.YieldFrom)
                    self._values.give_back(file, parent, kind if is_whole else IN + kind.removeprefix(IN))
            case ast.IfExp(test=test):
                if test is not node:
                    self._values.add_all(file, parent, [kind])
            case ast.Lambda():
                self._values.add_all(file, parent, [IN + kind.removeprefix(IN)])
            case ast.Return():
                self._values.give_back(file, parent, kind)
            case ast.arguments():
                self._of_default(file, parent, node, kind)
            case ast.ClassDef() if kind == RESULT_CLASS:
                self._values.bind(file, parent, parent.name, kind)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                for part in within(kind):
                    self._values.bind(file, parent, parent.name, part)
            case ast.Match():
                for capture in ast.walk(parent):
                    if isinstance(capture, ast.MatchAs | ast.MatchStar) and capture.name:
                        for captured in [kind, *within(kind)]:
                            self._values.bind(file, capture, capture.name, captured)
            case ast.Delete() | ast.AugAssign():
                pass
            case (
                ast.Compare() | ast.UnaryOp() | ast.FormattedValue() | ast.JoinedStr() | ast.Subscript() | ast.Slice()
                | ast.Expr() | ast.Assert() | ast.If() | ast.While() | ast.comprehension()
            ):  # fmt: skip
                pass  # the value is only read: as a truth value, a text, a key or a part of a comparison
            case _:
                self._gap(file, node, f"{ast.unparse(node)}, which code binds to another name", _LOOK_WHERE)

    def _of_member(self, file: str, node: ast.Attribute, kind: str) -> None:
        """Follow the member of a value, or record a gap if the member is set."""
        if isinstance(node.ctx, ast.Load):
            self._read(file, node, node.value, node.attr, kind)
            return
        text, statement = ast.unparse(node), _statement(node, self._values.names(file).parents)
        is_deleted = isinstance(node.ctx, ast.Del)
        if kind == TASK and node.attr in _OPTIONS:
            self._gap(file, statement, f"the option {text}, which is set later", _OF_ACTION)
        elif kind == CONF and (is_deleted or not ast.unparse(node.value).endswith("conf")):
            self._gap(file, statement, f"the setting {text}", advice_of(node.attr))
        elif kind in _SUBJECTS and kind != CONF:
            self._gap(file, statement, f"{text}, which is set on {_SUBJECTS[kind]}", _SEE)

    def _read(self, file: str, node: ast.expr, holder: ast.expr, member: str, kind: str) -> None:
        """Follow the member of a value that an expression reads, or record a gap for its use."""
        parents = self._values.names(file).parents
        above = parents.get(id(node))
        if kind in (MAYBE_RESULT, RESULT):
            self._of_result(file, node, holder, member, kind)
        elif member == "__class__":
            self._values.add(file, node, kind)
        elif member == "__dict__":
            place = above if isinstance(above, ast.expr) else node
            self._gap(file, place, f"{ast.unparse(node)}, which may set options", _OF_ACTION)
        elif kind == APP and member in ("conf", "tasks", "current_task"):
            self._values.add(file, node, {"conf": CONF, "tasks": IN + TASK, "current_task": TASK}[member])
        elif kind == CONF and today(member) in _HELD_SETTINGS:
            self._values.add(file, node, SETTING)
        elif kind == TASK and member in ("app", "_app"):
            self._values.add(file, node, APP)
        elif isinstance(above, ast.Call) and above.func is node:
            self._of_method(file, above, holder, member, kind)
        elif kind == TASK and member not in NAMES_OF_TASK and _may_be_of_task(holder, member):
            while isinstance(above := parents.get(id(node)), ast.Attribute):
                node = above
            if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
                statement = _statement(node, parents)
                self._gap(file, statement, f"{ast.unparse(node)}, which is set on a task as it runs", _OF_RUN)
                return
            advice = ADVICE_OF_REQUEST if member == "request" else advice_of_member(member)
            self._gap(file, node, f"{ast.unparse(node)}, which is read from a task", advice)
        elif kind == CONF and not (is_setting(member, plain=True) or member in _READING):
            self._gap(file, node, f"{ast.unparse(node)}, which is read from the configuration", _LOOK_WHERE)
        elif kind == APP and member not in _OF_APP and root_name(node) not in self._apps(self._trees[file]):
            self._name(file, of_application(node, member))

    def _of_result(self, file: str, node: ast.expr, holder: ast.expr, member: str, kind: str) -> None:
        """Record a gap for a member of a result that code reads or calls. Follow the parts of a result."""
        above = self._values.names(file).parents.get(id(node))
        call = above if isinstance(above, ast.Call) and above.func is node else None
        advice = advice_of_result(member)
        is_certain = kind == RESULT and not isinstance(holder, ast.Attribute)
        if member in HARMLESS_OF_RESULT or advice is None or not may_be_of_result(is_certain, member, call):
            return
        place = call or node
        if member in PARTS:
            self._values.add(file, place, kind)
        subject = f"the call {ast.unparse(place)}" if call else f"{ast.unparse(place)}, which is read"
        self._gap(file, place, f"{subject} of a result", advice)

    def _of_method(self, file: str, call: ast.Call, holder: ast.expr, name: str, kind: str) -> None:
        """Follow a call of a method of a value, or record a gap for the call."""
        text = ast.unparse(call)
        is_direct = _is_direct(holder)
        first = call.args[0] if call.args else None
        if kind.startswith(IN):
            if name in _TAKING or name.startswith("__get"):
                self._values.add_all(file, call, [kind, *within(kind)])
        elif name in ("__setattr__", "__setitem__", "__delattr__", "__delitem__") or (
            kind == CONF and name not in _READING and not (name == "update" and _is_plain_conf(call))
        ):
            subject = {CONF: "settings", SETTING: "settings"}.get(kind, "options")
            words = {getattr(part, "arg", getattr(part, "value", None)) for part in ast.walk(call)}
            advice = OF_ZONE if words & ZONES else advice_of_call(call, 0) if kind != TASK else _OF_ACTION
            self._gap(file, call, f"{text}, which may set {subject}", advice)
        elif kind == CONF:
            is_held = not isinstance(first, ast.Constant) or today(str(first.value)) in _HELD_SETTINGS
            self._values.add_all(file, call, [SETTING] if is_held and name == "get" else [IN + SETTING])
        elif kind == SETTING and name in ("get", "items", "values", "pop", "setdefault", "popitem"):
            above = self._values.names(file).parents.get(id(call))
            if name == "get" and first is not None and _is_text(holder, first, above):
                return
            self._values.add(file, call, SETTING)
            if name not in ("get", "items", "values") and not is_direct:
                self._gap(file, call, f"{text}, which changes a setting", _LOOK_WHERE)
        elif kind == SETTING and name not in _READING and not is_direct:
            self._gap(file, call, f"{text}, which changes a setting", _LOOK_WHERE)
        elif kind == APP and name in ("register_task", "task"):
            self._values.add(file, call, TASK if call.args else IN + TASK)
            is_named = root_name(holder) in self._apps(
                self._trees[file]
            )  # as a direct use of the application
            if call.args and not is_named:
                self._name(
                    file, Use(call, f"a task that {ast.unparse(call.func)} makes", "Write an action for it.")
                )
        elif kind == TASK and _may_be_of_task(holder, name) and name not in NAMES_OF_TASK:
            if name in _SIGNING:
                self._values.add(file, call, SIGNATURE)
            self._gap(file, call, f"the call {text}", advice_of_start(call, name))
        elif kind == SIGNATURE:
            if name in ("set", "clone", "link", "on_error"):
                self._values.add(file, call, SIGNATURE)
            self._gap(file, call, f"the call {text}", advice_of_start(call, name))
        elif kind == APP and root_name(holder) not in self._apps(self._trees[file]) and name not in _OF_APP:
            self._name(file, of_application(call.func, name))

    def _of_item(self, file: str, node: ast.Subscript, kind: str) -> None:
        """Follow an item of a value, or record a gap if the item is set."""
        if isinstance(node.ctx, ast.Load):
            above = self._values.names(file).parents.get(id(node))
            if kind == SETTING and _is_text(node.value, node.slice, above):
                return
            self._values.add_all(
                file, node, [kind] if kind in (MAYBE_RESULT, RESULT, SETTING) else within(kind)
            )
            key = node.slice
            if kind == CONF and (
                not isinstance(key, ast.Constant) or today(str(key.value)) in _HELD_SETTINGS
            ):
                self._values.add(file, node, SETTING)
            return
        statement = _statement(node, self._values.names(file).parents)
        text = ast.unparse(node)
        name = getattr(node.slice, "value", None)
        is_direct = _is_direct(node.value)
        is_deleted = isinstance(node.ctx, ast.Del)
        if kind == CONF and (is_deleted or not ast.unparse(node.value).endswith("conf")):
            advice = advice_of(name) if isinstance(name, str) else OF_ANY
            self._gap(file, statement, f"the setting {text}", advice)
        elif kind == SETTING and not is_direct:
            self._gap(file, statement, f"{text}, which changes a setting", _LOOK_WHERE)
        elif kind in (APP, TASK, SIGNATURE):
            self._gap(file, statement, f"{text}, which is set on {_SUBJECTS[kind]}", _SEE)

    def _of_keeping(self, file: str, statement: ast.Assign, target: ast.expr, kind: str) -> None:
        """Record a gap for a task that an object keeps where no code of the sources reads it."""
        if kind != TASK or not isinstance(target, ast.Attribute | ast.Subscript):
            return
        is_foreign = root_name(target) in self._foreign(file)
        if is_foreign or (isinstance(target, ast.Attribute) and not self._values.is_read(target.attr)):
            self._gap(file, statement, f"{ast.unparse(statement)}, which keeps a task", _KEPT)

    def _of_argument(self, file: str, call: ast.Call, node: ast.expr | ast.keyword, kind: str) -> None:
        """Follow an argument of a call into the function's parameter, or record a gap for the call."""
        name, text = called(call), ast.unparse(call)
        value = node.value if isinstance(node, ast.keyword) else node
        is_plain = isinstance(call.func, ast.Name)
        plain_kind = kind.removeprefix(IN)
        if name == "setattr" and is_plain and node is call.args[0] and len(call.args) == 3:
            return self._of_setattr(file, call, kind)
        if name == "setattr" and is_plain and len(call.args) == 3 and node is call.args[2]:
            key = getattr(call.args[1], "value", None)
            return self._values.give(("", 0, key), kind) if isinstance(key, str) else None
        if name == "getattr" and is_plain and node is call.args[0]:
            return self._of_getattr(file, call, kind)
        if name == "getattr" and is_plain:
            return self._values.add(file, call, kind)
        if name == "type" and is_plain and len(call.args) == 1:
            return self._values.add(file, call, kind)
        if name == "delattr" and is_plain and kind in _SUBJECTS:
            return self._gap(file, call, f"{text}, which takes something from {_SUBJECTS[kind]}", _SEE)
        if kind == SIGNATURE:
            return None  # the call makes a canvas, which is mapped or reported elsewhere
        if isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Constant | ast.JoinedStr):
            return None  # a method of a text returns a text
        if (is_plain and name in HARMLESS) or root_name(call.func) == "inspect" or is_log(call):
            return None
        if name == "__init__":
            return self._of_base(file, call, value, node, kind)
        if name in _PASSING and (is_plain or root_name(call.func) in self._foreign(file)):
            if plain_kind in (CONF, SETTING) and plain_kind == kind:
                return None if name != "enumerate" else self._values.add(file, call, kind)
            if name in ("map", "filter") and len(call.args) > 1 and node is not call.args[0]:
                self._to_function(file, call, call.args[0], within(kind))
            inner = [kind, *within(kind)] if name in ("next", "max", "min", "cast") else [kind]
            inner = [IN + plain_kind] if isinstance(node, ast.keyword) and node.arg else inner
            return self._values.add_all(file, call, inner)
        own = self._named(file, call.func)
        if isinstance(call.func, ast.Attribute) and name in _PUTTING:
            # These two methods only read the configuration.
            if not (kind in (CONF, SETTING) and name in ("update", "extend")):
                self._values.hold(file, call.func.value, kind)
            if not own and root_name(call.func) not in self._foreign(file):
                return None
        if name == "partial" and call.args and node is not call.args[0]:
            position = call.args.index(value) - 1 if value in call.args else 0
            return self._to_parameters(file, call, self._named(file, call.args[0]), position, node, kind)
        if name == "partial":
            return self._values.add_all(file, call, [kind])
        if own:
            position = call.args.index(value) if value in call.args else 0
            return self._to_parameters(file, call, own, position, node, kind)
        if isinstance(call.func, ast.Attribute) and root_name(call.func) in self._apps(self._trees[file]):
            return None
        if plain_kind == SETTING and name == "Celery":
            return None
        if plain_kind in (MAYBE_RESULT, RESULT_CLASS) or (plain_kind == RESULT and kind != RESULT):
            return None
        advice = OF_ANY if name == "vars" and kind == CONF else PASSED_ON if kind == RESULT else _LOOK
        self._gap(file, call, f"the call {text}, which is given {ast.unparse(value)}", advice)
        return None

    def _of_getattr(self, file: str, call: ast.Call, kind: str) -> None:
        """Follow `getattr` of a value as the member that it reads. One with a computed name may be any member."""
        key = call.args[1] if len(call.args) > 1 else None
        if isinstance(key, ast.Constant) and isinstance(key.value, str):
            self._read(file, call, call.args[0], key.value, kind)
        elif kind in (APP, TASK, SIGNATURE):
            self._values.add_all(file, call, [CONF, IN + TASK] if kind == APP else [])
            self._gap(file, call, f"{ast.unparse(call)}, a computed member of {_SUBJECTS[kind]}", _LOOK_WHERE)
        elif kind == CONF:
            self._values.add(file, call, SETTING)

    def _of_setattr(self, file: str, call: ast.Call, kind: str) -> None:
        if kind in (TASK, SIGNATURE, SETTING):
            self._gap(file, call, f"{ast.unparse(call)}, which sets an option later", _OF_ACTION)
        elif kind == CONF:
            self._gap(file, call, f"{ast.unparse(call)}, which sets a setting", advice_of_call(call, 1))
        elif kind == APP:
            self._gap(file, call, f"{ast.unparse(call)}, which is set on the application", _LOOK_WHERE)

    # -- functions -------------------------------------------------------------------------------------------------------

    def _of_base(
        self, file: str, call: ast.Call, value: ast.expr, node: ast.expr | ast.keyword, kind: str
    ) -> None:
        """Pass an argument of `super().__init__` to the base classes of the class around the call."""
        parents = self._values.names(file).parents
        class_ = parents.get(id(call))
        while class_ is not None and not isinstance(class_, ast.ClassDef):
            class_ = parents.get(id(class_))
        bases = [pair for base in class_.bases for pair in self._classes.get(called(ast.Call(base, [], [])), ())
                 if pair[1] is not class_] if class_ is not None else []  # fmt: skip
        position = call.args.index(value) if value in call.args else 0
        self._to_parameters(file, call, [*bases], position, node, kind)

    def _named(self, file: str, node: ast.expr) -> list[_Place] | None:
        """Return the functions and classes of the sources that an expression may mean; None if it means foreign code."""
        if isinstance(node, ast.Lambda):
            return [(file, node)]
        last = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
        if isinstance(node, ast.Name):
            names = self._values.names(file)
            scope = names.resolved(node, last)
            for part in names.lambdas.get(last, ()):
                if isinstance(part.value, ast.Lambda) and names.scope(part) is scope:
                    return [(file, part.value)]
            last = names.imported_as.get(last, last)
        if root_name(node) in self._foreign(file) | self._made_by_foreign(file):
            return None
        places = [*self._functions.get(last, ()), *self._classes.get(last, ())]
        return places or None

    def _made_by_foreign(self, file: str) -> frozenset[str]:
        """Return the names of a file that have a value of foreign code, and no other."""
        if file not in self._foreign_values:
            values: dict[str, list[bool]] = {}
            for node in walk(self._trees[file]):
                for target in node.targets if isinstance(node, ast.Assign) else ():
                    if isinstance(target, ast.Name):
                        is_call = isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
                        root = root_name(node.value) if isinstance(node, ast.Assign) else ""
                        values.setdefault(target.id, []).append(is_call and root in self._foreign(file))
            self._foreign_values[file] = frozenset(name for name, parts in values.items() if all(parts))
        return self._foreign_values[file]

    def _to_function(self, file: str, call: ast.Call, function: ast.expr, kinds: Iterable[str]) -> None:
        """Pass the first argument of a call such as `map(function, values)` to the parameter of `function`."""
        own = self._named(file, function)
        for kind in kinds:
            if own:
                self._to_parameters(file, call, own, 0, call.args[1], kind)
            elif not (isinstance(function, ast.Name) and function.id in HARMLESS | _PASSING):
                advice = PASSED_ON if kind.removeprefix(IN) == RESULT else _LOOK
                text = f"the call {ast.unparse(call)}, which is given a value of {kind}"
                self._gap(file, call, text, advice)

    def _to_parameters(
        self, file: str, call: ast.Call, own: list[_Place] | None,
        position: int, node: ast.expr | ast.keyword, kind: str,
    ) -> None:  # fmt: skip
        """Pass an argument to the parameters of functions that are in the source."""
        if not own:
            advice = PASSED_ON if kind.removeprefix(IN) == RESULT else _LOOK
            self._gap(file, call, f"the call {ast.unparse(call)}, which is given {ast.unparse(node)}", advice)
            return
        word = node.arg if isinstance(node, ast.keyword) else None
        is_spread = isinstance(node, ast.Starred) or (isinstance(node, ast.keyword) and word is None)
        is_late = any(isinstance(part, ast.Starred) for part in call.args[:position])
        is_taken = False
        for place, function in own:
            if isinstance(function, ast.ClassDef):
                is_taken = True
                self._to_class(place, function, position, word, kind, is_spread or is_late)
                continue
            arguments = function.args
            names = [part.arg for part in [*arguments.posonlyargs, *arguments.args]]
            names = names[1:] if names[:1] in (["self"], ["cls"]) else names
            all_names = [*names, *(part.arg for part in arguments.kwonlyargs)]
            if is_spread or is_late:
                targets, kinds = all_names, [kind, *within(kind)]
            elif word is not None:
                targets, kinds = [name for name in all_names if name == word], [kind]
            else:
                targets, kinds = names[position : position + 1], [kind]
            for name in targets:
                for part in kinds:
                    self._values.give((place, id(function), name), part)
            variadic = arguments.kwarg if word is not None else arguments.vararg
            for further in (arguments.kwarg, arguments.vararg) if is_spread else (variadic,):
                is_taken |= bool(targets) or further is not None
                if further is not None and (is_spread or not targets):
                    self._values.give((place, id(function), further.arg), IN + kind.removeprefix(IN))
        if not is_taken:  # the name means another function
            advice = PASSED_ON if kind.removeprefix(IN) == RESULT else _LOOK
            self._gap(file, call, f"the call {ast.unparse(call)}, which is given {ast.unparse(node)}", advice)

    def _to_class(
        self, file: str, class_: ast.ClassDef, position: int, word: str | None, kind: str, is_any: bool,
        below: frozenset[int] = frozenset(),
    ) -> None:  # fmt: skip
        """Pass an argument of a new object to the parameter of its `__init__`. For a class without an `__init__`, pass
        it to the field."""
        constructors: list[_Place] = [
            (file, part) for part in class_.body
            if isinstance(part, ast.FunctionDef) and part.name in ("__init__", "__new__")
        ]  # fmt: skip
        if constructors:
            inner = ast.Call(class_, [], [])  # type: ignore[arg-type]
            argument: ast.expr | ast.keyword = (
                ast.keyword(word, ast.Constant(0)) if word or is_any else ast.Constant(0)
            )
            self._to_parameters(file, inner, constructors, position, argument, kind)
            return
        fields = [part.target.id for part in class_.body
                  if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name)]  # fmt: skip
        chosen_fields = [word] if word else fields if is_any else fields[position : position + 1]
        for name in chosen_fields:
            self._values.give(("", 0, name), kind)
        bases = [called(ast.Call(base, [], [])) for base in class_.bases]
        for base in bases:
            for place, above in self._classes.get(base, ()):
                if id(above) not in below:
                    self._to_class(
                        place, above, position, word, kind, is_any, below | {id(class_), id(above)}
                    )

    def _of_default(self, file: str, arguments: ast.arguments, node: ast.expr, kind: str) -> None:
        """Pass a default to its parameter."""
        positional = [*arguments.posonlyargs, *arguments.args]
        pairs = [*zip(reversed(positional), reversed(arguments.defaults), strict=False),
                 *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)]  # fmt: skip
        function = self._values.names(file).parents.get(id(arguments))
        for argument, default in pairs:
            if default is node and function is not None:
                self._values.give((file, id(function), argument.arg), kind)

    def _gap(self, file: str, node: ast.AST, subject: str, by_hand: str) -> None:
        self._name(file, Use(node, subject, by_hand))

    def _name(self, file: str, use: Use) -> None:
        self._uses.setdefault((file, id(use.node)), use)


def _is_application(node: ast.AST, apps: Collection[str]) -> TypeGuard[ast.expr]:
    """Return whether an expression reads an application: a variable, or an extension of a web application."""
    if isinstance(node, ast.Name):
        return isinstance(node.ctx, ast.Load) and node.id in apps
    return isinstance(node, ast.Call | ast.Subscript) and is_extension(node)


def _is_called(node: ast.expr, parent: ast.AST | None) -> bool:
    return isinstance(parent, ast.Call) and parent.func is node


def _is_variable(parent: ast.AST | None) -> bool:
    """Return whether the node around a value assigns it to variables, and to no member or item."""
    if isinstance(parent, ast.AnnAssign):
        return isinstance(parent.target, ast.Name)
    return isinstance(parent, ast.Assign) and all(isinstance(target, ast.Name) for target in parent.targets)


def _pair(
    parent: ast.Tuple | ast.List | ast.Set, node: ast.AST, parents: Mapping[int, ast.AST]
) -> ast.expr | None:
    """Return the name that `a, b = x, y` gives a part of the right side."""
    above = parents.get(id(parent))
    if not isinstance(above, ast.Assign) or above.value is not parent or len(above.targets) != 1:
        return None
    target = above.targets[0]
    if not isinstance(target, ast.Tuple | ast.List) or len(target.elts) != len(parent.elts):
        return None
    if any(isinstance(part, ast.Starred) for part in [*target.elts, *parent.elts]):
        return None
    return target.elts[next(number for number, part in enumerate(parent.elts) if part is node)]


def _statement(node: ast.AST, parents: Mapping[int, ast.AST]) -> ast.AST:
    while not isinstance(node, ast.stmt | ast.comprehension) and id(node) in parents:
        node = parents[id(node)]
    return node


def _may_be_of_task(holder: ast.expr, member: str) -> bool:
    """Return whether a task has a member. Behind a member of an object, the value may be any other by that name."""
    return isinstance(holder, ast.Name | ast.Call | ast.Subscript) or member in MEMBERS_OF_TASK


def _is_plain_conf(call: ast.Call) -> bool:
    """Return whether a method is that of `app.conf` as it is written, so that the settings are read from it."""
    return isinstance(call.func, ast.Attribute) and ast.unparse(call.func.value).endswith("conf")


def is_log(call: ast.Call) -> bool:
    """Return whether a call writes a line of a log."""
    return called(call) in _LOGGING and "log" in ast.unparse(call.func).lower()


def _without_key(target: ast.expr, iterated: ast.expr, kind: str) -> ast.expr:
    """Return the target of a loop over `items()` of a setting without the key, which is a text."""
    is_items = isinstance(iterated, ast.Call) and called(iterated) == "items"
    if kind == SETTING and is_items and isinstance(target, ast.Tuple | ast.List) and len(target.elts) == 2:
        return target.elts[1]
    return target


def _is_text(holder: ast.expr, key: ast.expr, above: ast.AST | None) -> bool:
    """Return whether an item of an entry of a setting is a text or a number, so that nothing changes it."""
    is_entry = (holder.attr if isinstance(holder, ast.Attribute) else getattr(holder, "id", "")) not in (
        _HELD_NAMES | _HELD_SETTINGS
    )
    is_key = isinstance(key, ast.Constant) and key.value in _TEXTS
    return is_entry and is_key and not isinstance(above, ast.Attribute | ast.Subscript)


def _is_direct(node: ast.expr) -> bool:
    """Return whether an expression names a setting, so that the settings are read from it."""
    names = {getattr(part, "attr", getattr(part, "id", "")) for part in ast.walk(node)}
    return bool(names & (_HELD_NAMES | _HELD_SETTINGS))
