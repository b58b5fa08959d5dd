"""The uses of Celery in a module. A use that is not mapped becomes a gap."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from penstock_import.celery_calls import (
    called,
    children,
    imported_names,
    namespace_node,
    namespace_of,
    root_name,
    walk,
)
from penstock_import.celery_entries import beat_models
from penstock_import.celery_pools import is_of_pool
from penstock_import.celery_setting_names import OF_ANY, TASK_SETTINGS, advice_of, is_known, is_setting
from penstock_import.celery_settings import CHANGING

_PACKAGES = (
    "celery",
    "kombu",
    "billiard",
    "django_celery_beat",
    "django_celery_results",
    "flower",
    "celery_once",
)
OF_MEMBER = "See what it should do, and write that into the action."
SIGNATURE_BY_HAND = "Write it as a workflow, or as `client.start(...)`."
_CALLS: Mapping[str, str] = {
    "delay": "Write `client.start(...)`.",
    "apply_async": "Write `client.start(...)`.",
    "apply_async_on_commit": "Write `client.start(...)` where the transaction has committed.",
    "delay_on_commit": "Write `client.start(...)` where the transaction has committed.",
    "apply": "Call the function itself.",
    "s": SIGNATURE_BY_HAND,
    "si": SIGNATURE_BY_HAND,
    "signature": SIGNATURE_BY_HAND,
    "subtask": SIGNATURE_BY_HAND,
    "retry": "Write `raise Retry(after=...)`.",
    "map": "Write a workflow with `each`.",
    "AsyncResult": "Write `client.result(id)`.",
    "send_event": "Write a log line, or publish an event.",
    "signature_from_request": "Write `raise Retry(after=...)`, or a workflow.",
    "chunks": "Write a workflow with `each`.",
    "starmap": "Write a workflow with `each`.",
    "send_task": "Write `client.start(...)` with the ref of the action.",
    "add_periodic_task": "Write it as a schedule.",
    "update_state": "Write `current().progress(...)`, or a log line.",
    "replace": "Write it as a workflow.",
    "add_to_chord": "Write it as a workflow.",
}
_CALL_OPTIONS: Mapping[str, str] = {
    "countdown": "give `delay`",
    "eta": "give `at`",
    "expires": "give `expires_at`",
    "priority": "give `priority`",
    "queue": "write `route` of the action, or a workflow of one task with a `route`",
    "routing_key": "write `route` of the action, or a workflow of one task with a `route`",
    "exchange": "write `route` of the action, or a workflow of one task with a `route`",
    "link": "write a workflow, or `on_success` of the action",
    "link_error": "write `on_failure` of the action",
    "task_id": "pass `key`, so that a second call starts nothing",
    "time_limit": "write `timeout` of the action",
    "soft_time_limit": "write `timeout` of the action",
    "retry": "a failed call has started nothing: let the caller try again",
    "retry_policy": "a failed call has started nothing: let the caller try again",
    "headers": "give `labels`",
    "max_retries": "write `retry` of the action",
    "ignore_result": "results are kept in any case",
    "serializer": "parameters are JSON",
    "compression": "there is none",
    "track_started": "leave it out",
}
"""The work by hand for each option of a call that starts a task."""
_WITH_OPTIONS = frozenset({"apply_async", "send_task", "retry", "signature", "subtask", "apply"})
_OF_ARGUMENTS = frozenset({"args", "kwargs", "name", "exc", "throw", "immutable", "options"})
_OF_RETRY = _OF_ARGUMENTS | {
    "countdown",
    "eta",
    "max_retries",
    "queue",
    "priority",
    "expires",
    "time_limit",
    None,
}
_ALWAYS = frozenset({"delay", "apply_async", "send_task", "add_periodic_task", "subtask", "si"})
_TASK_ONLY = frozenset(_CALLS) - _ALWAYS
_ADVICE: Mapping[str, str] = {
    "celery.signals": "Do it in the function, in `on_success`, in `on_failure`, or at the start of the worker.",
    "django_celery_beat": "Write its effect as a schedule: the import reads only rows that are made of literals.",
    **dict.fromkeys(
        ("celery.Task", "celery.app.task.Task", "celery.task.Task"),
        "Move the code of the class into the functions.",
    ),
    "celery.chain": "Write it as a workflow.",
    "celery.group": "Write it as a workflow with `each`, or with several tasks.",
    "celery.chord": "Write it as a workflow: a task that `needs` several tasks.",
    "celery.Celery": "The pack replaces it; its settings are named one by one.",
    "celery.result": "Write `client.result(id)`.",
    "celery.schedules": "Write it as a schedule.",
    "celery.exceptions": "Raise Retry or NonRetryable of Penstock.",
    "celery.utils.log": "Use Python's logging.",
    "kombu": "See what it should do: Penstock has its own messages.",
    "kombu.Exchange": "Routes are names: write `route` of the actions.",
    "kombu.Queue": "Routes are names: write `route` of the actions.",
    "kombu.exceptions": "Catch the errors of the client: `penstock.errors`.",
    "kombu.serialization": "Parameters and results are JSON.",
    "kombu.utils": "Use Python's own modules and types for it: json, uuid, str.",
}
_ARGUMENTS: Mapping[str, str] = {
    "backend": "Results are kept in PostgreSQL.",
    "changes": "The settings that it gives are mapped or named one by one.",
    "broker": "Set PENSTOCK_BROKER_URL, or use PostgreSQL as the transport.",
    "config_source": "The settings that it takes are mapped or named one by one.",
    "main": "Nothing is to be done: each task is mapped under the name that this gives it.",
    "set_as_current": "Nothing is to be done: there is one application.",
    "strict_typing": "Celery's worker fails a call with wrong parameters. Penstock refuses to start it.",
    "task_cls": "Move the code of the class into the functions, and write its attributes into the actions.",
}
"""The work by hand for each argument of `Celery(...)` that is not a setting."""
_OF_APPLICATION: Mapping[str, str] = {
    "Task": "A class of tasks: write an action with the options of the class for each task, and move `run` into its function.",
    "register_task": "A task that is an object of a class: write an action for it, with the options that the class gives.",
    "send_task": "Write `client.start(...)` with the ref of the action.",
    "on_after_configure": "The schedules that its receiver makes are mapped or named; see what else the receiver should do.",
    "on_after_finalize": "The schedules that its receiver makes are mapped or named; see what else the receiver should do.",
    "add_periodic_task": "Write each call of it as a schedule.",
    "autodiscover_tasks": "Name the modules with `--module`.",
    "config_from_object": "The settings that it takes are mapped or named one by one.",
    "control": "See what it changes in running workers: `penstock cancel` ends an execution, limits belong to the actions, and "
    "Penstock has no command that removes all waiting work.",
}


_OF_DICT = (
    "A dict of settings, which an application may be given: each setting in it is mapped or named by itself."
)
ADVICE_OF_REQUEST = "Read them from `penstock.current()`: the execution, its attempt, its parameters."


@dataclass(frozen=True, slots=True)
class Use:
    """A use of Celery in a module."""

    node: ast.AST
    subject: str
    by_hand: str


def uses(
    tree: ast.Module,
    tasks: Collection[str],
    apps: Collection[str],
    is_config: bool,
    foreign: Collection[str] = (),
    classes: Collection[str] = ("Celery",),
) -> Iterator[Use]:
    """Yield all uses of Celery in a module. `tasks` are names of tasks, and `apps` names of applications. With
    `is_config`, plain names in the module are settings. `foreign` are the names from outside of the sources, among
    them those of packages that extend Celery. `classes` are those of applications."""
    names = {
        name: path
        for name, path in imported_names(tree)
        if path.partition(".")[0] in _PACKAGES or (name in foreign and _extends_celery(path))
    }
    names |= beat_models(tree)
    yield from _reads_of_servers(tree)  # its advice says more than that for a member of an application
    tasks_here = set(tasks) | {"self"}
    retries = {id(call) for call in _retries_of_parameters(tree)}
    paths = dict(imported_names(tree))
    modules = set(paths)
    annotations = {id(part) for part in _annotations(tree)}
    for node, parent in _outermost(tree):
        if id(node) in annotations:
            continue
        if isinstance(node, ast.Call) and is_of_pool(node):
            continue
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            attribute, root = node.func.attr, root_name(node.func.value)
            last = node.func.value.attr if isinstance(node.func.value, ast.Attribute) else root
            if (
                id(node) in retries
                or (attribute == "signature" and bool(root) and root not in modules)
                or attribute in _ALWAYS
                or (
                    attribute in _TASK_ONLY
                    and (last in tasks_here or root in names)
                    and not _is_of_self(node.func.value)
                )
            ):
                yield Use(node, f"the call {ast.unparse(node)}", advice_of_start(node, attribute))
                continue
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            continue
        if (
            isinstance(node, ast.Attribute)
            and isinstance(node.ctx, ast.Store)
            and setting_of(node) is not None
        ):
            continue  # reported as a setting, with its advice
        is_called = isinstance(parent, ast.Call) and parent.func is node
        name = getattr(node, "attr", getattr(node, "value", None))
        if isinstance(node, ast.Attribute | ast.Constant) and name == "add_periodic_task" and not is_called:
            advice = _OF_APPLICATION["add_periodic_task"]
            yield Use(node, f"{ast.unparse(node)}, which is called by another name", advice)
        elif isinstance(node, ast.Name | ast.Attribute):
            root = root_name(node)
            if root in names and isinstance(node, ast.Name | ast.Attribute):
                path = names[root]
                yield Use(
                    node,
                    f"{ast.unparse(node)} of {path}",
                    _advice(path + ast.unparse(node).removeprefix(root)),
                )
            elif root in foreign and _extends_celery(path := _path_of(node, paths)):
                yield Use(node, f"{ast.unparse(node)} of {path}", _advice(path))
            elif root in apps and isinstance(node, ast.Attribute) and node.attr == "task":
                yield Use(node, f"a task that {ast.unparse(node)} makes", "Write an action for it.")
            elif root in apps and isinstance(node, ast.Attribute) and node.attr != "conf":
                yield of_application(node, ast.unparse(node).split(".")[1])
        elif isinstance(node, ast.Constant) and isinstance(parent, ast.Dict):
            continue
    yield from _installed_applications(tree)
    yield from _settings(tree, apps, is_config, classes)
    yield from _of_tasks(tree, tasks)


_AROUND = re.compile(r"(?:\w+\.)+celery\w*(?:\.\w+)*|\w*celery\w*(?:\.\w+)*")
_BEAT_AND_RESULTS = frozenset({"django_celery_beat", "django_celery_results", "djcelery"})
"""The applications of Django whose uses are named one by one."""
SERVER_SETTINGS = frozenset({"BROKER_URL", "CELERY_BROKER_URL", "CELERY_RESULT_BACKEND"})
"""The settings with the address of a server that holds Celery's messages or results."""
_OF_CONF = frozenset({"broker_read_url", "broker_url", "broker_write_url", "result_backend"})
_OF_MODELS = frozenset({"pydantic", "pydantic_settings"})
_KEYS_OF_RESULTS = ("celery-task-meta", "celery-taskset-meta")
READ_SERVER = (
    "In Penstock that server has no messages and no results: ask the client, or `penstock queues`. "
    "If the code keeps values of its own there, give it a setting of its own."
)


def _reads_of_servers(tree: ast.Module) -> Iterator[Use]:
    """Yield each place where code reads the address of Celery's server, and does not give it Celery again."""
    inside: set[int] = set()
    for node in walk(tree):  # parents come before their children
        if _is_read_by_name(node):
            yield Use(node, f"{ast.unparse(node)}, which code reads", READ_SERVER)
        elif isinstance(node, ast.Constant) and str(node.value).startswith(_KEYS_OF_RESULTS):
            yield Use(node, f"{node.value!r}, a key of Celery's results", READ_SERVER)
        elif _gives_server(node):
            inside |= {id(part) for part in ast.walk(node)}
        elif id(node) in inside:
            continue
        elif isinstance(node, ast.Attribute | ast.Name) and isinstance(node.ctx, ast.Load):
            is_of_conf = (
                isinstance(node, ast.Attribute) and node.attr in _OF_CONF and _is_configuration(node.value)
            )
            if _last(node) in SERVER_SETTINGS or is_of_conf:
                yield Use(node, f"{ast.unparse(node)}, which code reads", READ_SERVER)


def _is_read_by_name(node: ast.AST) -> bool:
    """Return whether a call of `getattr` reads the address of Celery's server."""
    if not isinstance(node, ast.Call) or called(node) != "getattr" or len(node.args) < 2:
        return False
    name = node.args[1]
    return isinstance(name, ast.Constant) and name.value in SERVER_SETTINGS


def _installed_applications(tree: ast.Module) -> Iterator[Use]:
    """Yield each text in `INSTALLED_APPS`, or in a part of it, that names an application of Django for Celery."""
    for node in walk(tree):
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        is_list = isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign) and node.value is not None
        if is_list and any(target is not None and _last(target).endswith("_APPS") for target in targets):
            for part in ast.walk(node):
                text = part.value if isinstance(part, ast.Constant) else None
                if isinstance(text, str) and text not in _BEAT_AND_RESULTS and _AROUND.fullmatch(text):
                    yield Use(part, f"{text}, an application of Django for Celery", "See what it should do.")


def _gives_server(node: ast.AST) -> bool:
    """Return whether a statement or a call gives Celery the address of its server, or only tests or shows it."""
    if isinstance(node, ast.Assign | ast.AnnAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        return any(setting_of(part) is not None or is_known(_last(part)) for part in targets)
    if isinstance(node, ast.Call):
        return called(node) in ("Celery", "add_defaults", "print") or ast.unparse(node.func).endswith(
            "conf.update"
        )
    if isinstance(node, ast.keyword):
        return node.arg is not None and is_known(node.arg)
    return isinstance(node, ast.Compare | ast.JoinedStr | ast.Delete)


def _annotations(tree: ast.Module) -> Iterator[ast.AST]:
    """Yield the parts of the annotations of a module. Celery reads none of them as an option or a setting."""
    for node in walk(tree):
        if isinstance(node, ast.arg | ast.AnnAssign) and node.annotation is not None:
            yield from ast.walk(node.annotation)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.returns is not None:
            yield from ast.walk(node.returns)


def _path_of(node: ast.expr, paths: Mapping[str, str]) -> str:
    """Return the dotted path of a name or a member, as in `a.b.celery.C` after `import a.b.celery`; else an empty text."""
    text = ast.unparse(node)
    root, _, member = text.partition(".")
    return f"{paths.get(root, root)}.{member}" if member and text.replace(".", "").isidentifier() else ""


def _extends_celery(path: str) -> bool:
    """Return whether a path is that of a package around Celery: `django_structlog.celery.signals`, `celery_progress`."""
    parts = path.split(".")
    return "celery" in parts[0] or "celery" in parts


def of_application(node: ast.AST, member: str) -> Use:
    """Return the use that a member of an application is."""
    advice = _OF_APPLICATION.get(member, "See what it should do.")
    return Use(node, f"{ast.unparse(node)} of the application", advice)


def _retries_of_parameters(tree: ast.Module) -> Iterator[ast.Call]:
    """Yield the calls of `retry` on a parameter of the function around them: a bound task under any name, or one that a task
    hands on."""
    for function in walk(tree):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        arguments = function.args
        names = {part.arg for part in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]}
        for call in walk(function):
            if (
                not isinstance(call, ast.Call)
                or not isinstance(call.func, ast.Attribute)
                or call.func.attr != "retry"
            ):
                continue
            receiver = call.func.value
            is_task = isinstance(receiver, ast.Name) and receiver.id in names
            is_base = isinstance(receiver, ast.Call) and called(receiver) == "super"
            if is_base or (is_task and {word.arg for word in call.keywords} <= _OF_RETRY):
                yield call


def advice_of_start(call: ast.Call, attribute: str) -> str:
    """Return the work by hand for a call that starts a task, with a sentence on each of its options."""
    if attribute not in _WITH_OPTIONS:
        return advice_of_member(attribute)
    names = [word.arg or "**options" for word in call.keywords if word.arg not in _OF_ARGUMENTS]
    if attribute == "retry":
        names = [name for name in names if name not in ("countdown", "eta")]
        if "max_retries" in names:
            names.remove("max_retries")
            return f"{_CALLS['retry']} Its max_retries takes precedence over the task's: write `max_attempts` of the action."
    hints = [f"{name}: {_CALL_OPTIONS.get(name, 'see what it should do')}" for name in names]
    return " ".join([_CALLS[attribute], *([f"Of its options, {'; '.join(hints)}."] if hints else [])])


def advice_of_member(member: str) -> str:
    """Return the work by hand for a member of a task."""
    return _CALLS.get(member, OF_MEMBER)


def _advice(path: str) -> str:
    best = max(
        (
            package
            for package in _ADVICE
            if path == package or path.startswith((f"{package}.", f"{package}("))
        ),
        key=len,
        default="",
    )
    if not best and "signals" in path.split("."):
        return _ADVICE["celery.signals"]
    return _ADVICE.get(best, "See what it should do.")


def _outermost(tree: ast.Module) -> Iterator[tuple[ast.AST, ast.AST]]:
    """Yield the outermost calls, names and members: `a.b.c` without its part `a.b`, and without the name in a task's
    decorator."""
    waiting: list[tuple[ast.AST, ast.AST]] = [(tree, tree)]
    while waiting:
        node, parent = waiting.pop()
        if not isinstance(node, ast.Import | ast.ImportFrom):
            yield node, parent
        inner: list[ast.AST] = children(node)
        if isinstance(node, ast.Attribute):
            base: ast.AST = node
            while isinstance(base, ast.Attribute):
                base = base.value
            inner = [] if isinstance(base, ast.Name) else [base]
        waiting.extend((child, node) for child in inner)


def _settings(
    tree: ast.Module, apps: Collection[str], is_config: bool, classes: Collection[str] = ("Celery",)
) -> Iterator[Use]:
    """Yield each setting that a module assigns: by Celery's name, on an application's `conf`, or in a settings
    module."""
    fields = _fields_of_models(tree) if not is_config else set()
    functions = [part for part in walk(tree) if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef)]
    local = {id(part) for function in functions if is_config for part in walk(function)}
    for node in walk(tree):
        if id(node) in fields:
            continue
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                if isinstance(target, ast.Name) and id(node) in local and not is_known(target.id):
                    continue  # a variable of a function that only begins like a setting
                name = setting_of(target)
                base = target.value if isinstance(target, ast.Subscript) else target
                if name is not None:
                    yield Use(node, f"the setting {ast.unparse(target)}", advice_of(name))
                elif isinstance(target, ast.Subscript) and _is_telling(getattr(target.slice, "value", None)):
                    # The dict has another name, and may still be the configuration.
                    yield Use(
                        node,
                        f"the setting {ast.unparse(target)}",
                        advice_of(str(getattr(target.slice, "value", ""))),
                    )
                elif (
                    isinstance(target, ast.Subscript)
                    and not isinstance(target.slice, ast.Constant)
                    and _is_configuration(target.value)
                ):
                    text = f"the setting {ast.unparse(target)}, with a computed name"
                    yield Use(node, text, OF_ANY)
                elif isinstance(base, ast.Name) and is_setting(base.id, plain=is_config):
                    has_settings = not is_known(base.id) and node.value and settings_within(node.value)
                    advice = _OF_DICT if has_settings else advice_of(base.id)
                    yield Use(node, f"the setting {ast.unparse(target)}", advice)
        elif isinstance(node, ast.Call):
            function = ast.unparse(node.func)
            if function.endswith("config_from_object"):
                yield from _of_namespace(node)
            is_update = function.endswith("conf.update") or function.rpartition(".")[2] == "add_defaults"
            if is_update or function.rpartition(".")[2] in classes:
                yield from () if is_update else _of_namespace(node)
                for keyword in node.keywords:
                    name = keyword.arg or "**"
                    if name == "namespace" and not is_update:
                        continue
                    advice = "" if is_update else _ARGUMENTS.get(name, "")
                    subject = f"the {'argument' if advice else 'setting'} {name}"
                    yield Use(keyword.value, subject, advice or (advice_of(name) if keyword.arg else OF_ANY))
                for argument in node.args:
                    if is_update and not isinstance(argument, ast.Dict):
                        text = f"settings of {ast.unparse(argument)}"
                        yield Use(argument, text, OF_ANY)
                    elif isinstance(argument, ast.Dict):
                        for key, value in zip(argument.keys, argument.values, strict=True):
                            text = "**" if key is None else str(getattr(key, "value", ast.unparse(key)))
                            advice = advice_of(text) if isinstance(key, ast.Constant) else OF_ANY
                            yield Use(value, f"the setting {text}", advice)
            if called(node) == "setattr" and len(node.args) == 3 and _is_configuration(node.args[0]):
                yield of_setattr(node)
            if isinstance(node.func, ast.Attribute) and node.func.attr in CHANGING:
                yield from _of_change(node, node.func.value, is_config)
        elif isinstance(node, ast.Delete):
            for target in node.targets:
                if isinstance(target, ast.Subscript):
                    yield from _of_change(target, target.value, is_config)
        for name, value in settings_within(node):
            yield Use(value, f"the setting {name}", advice_of(name))


def _fields_of_models(tree: ast.Module) -> set[int]:
    """Return the fields of the models of Pydantic in a module. Celery reads none of them unless it is configured with it."""
    names = {name for name, path in imported_names(tree) if path.partition(".")[0] in _OF_MODELS}
    models: set[str] = set()
    fields: set[int] = set()
    for class_ in walk(tree):
        if isinstance(class_, ast.ClassDef) and any(
            root_name(base) in names or _last(base) in models for base in class_.bases
        ):
            models.add(class_.name)
            fields |= {id(part) for part in class_.body if isinstance(part, ast.AnnAssign)}
    return fields


def gives_any_setting(tree: ast.Module, apps: Collection[str], is_config: bool) -> bool:
    """Return whether a module gives settings with names that only running the code would tell."""
    return any(use.by_hand == OF_ANY for use in _settings(tree, apps, is_config))


def of_setattr(call: ast.Call) -> Use:
    """Return the use that a call of `setattr` on a configuration is."""
    return Use(call, f"{ast.unparse(call)}, which sets a setting", advice_of_call(call, 1))


def advice_of_call(node: ast.AST, number: int) -> str:
    """Return the work by hand for a call that sets the setting which argument `number` names."""
    arguments = node.args[number:] if isinstance(node, ast.Call) else []
    if arguments and isinstance(arguments[0], ast.Constant):
        return advice_of(str(arguments[0].value))
    return OF_ANY


def _of_change(node: ast.expr, base: ast.expr, is_config: bool) -> Iterator[Use]:
    """Yield a use for a call or a statement that changes a part of a setting."""
    while isinstance(base, ast.Subscript):
        base = base.value
    name = setting_of(base) if isinstance(base, ast.Attribute) else getattr(base, "id", "")
    if name and (isinstance(base, ast.Attribute) or is_setting(name, plain=is_config)):
        yield Use(node, f"{ast.unparse(node)}, which changes the setting {name}", advice_of(name))


def _of_tasks(tree: ast.Module, tasks: Collection[str]) -> Iterator[Use]:
    """Yield the calls of `setattr` on a task, and entries of schedules in any dict."""
    for node in walk(tree):
        is_set = isinstance(node, ast.Call) and called(node) == "setattr" and len(node.args) == 3
        if is_set and isinstance(node, ast.Call) and _last(node.args[0]) in tasks:
            yield Use(node, f"{ast.unparse(node)}, which sets an option later", "Write it into the action.")
        if isinstance(node, ast.Dict):
            keys = {key.value for key in node.keys if isinstance(key, ast.Constant)}
            if {"task", "schedule"} <= keys:
                yield Use(
                    node,
                    f"the entry {ast.unparse(node)} of a schedule",
                    "If other code reads the entry, write it as a schedule.",
                )


def _is_of_self(node: ast.expr) -> bool:
    """Return whether a value is one that `self` has, and no task: an upload, or a text that a call returns."""
    return (
        not isinstance(node, ast.Name)
        and root_name(node) == "self"
        and _last(node) == ""
        and "tasks" not in ast.unparse(node)
    )


def _last(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _is_configuration(node: ast.expr) -> bool:
    """Return whether an expression is the configuration of an application."""
    return ast.unparse(node).endswith("conf")


def setting_of(target: ast.expr) -> str | None:
    """Return the name of a setting that an assignment gives on an application's `conf`, or as an item of any
    configuration; None for anything else."""
    if isinstance(target, ast.Attribute) and ast.unparse(target.value).endswith("conf"):
        return target.attr
    if isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Constant):
        name, base = str(target.slice.value), ast.unparse(target.value)
        is_conf = base.endswith("conf") and (base.rpartition(".")[2] == "conf" or is_known(name))
        if is_conf or is_setting(name) or (base.endswith("config") and _is_telling(name)):
            return name
        return setting_of(target.value)
    return None


def _of_namespace(call: ast.Call) -> Iterator[Use]:
    """Yield the prefix of settings where it is one that no setting is recognized by."""
    node, prefix = namespace_node(call), namespace_of(call)
    if node is not None and prefix is None:
        text = f"settings with the prefix {ast.unparse(node)}, which is computed"
        yield Use(node, text, "The import reads only settings with CELERY_: check that this is the prefix.")
    elif node is not None and prefix not in ("", "CELERY"):
        text = f"settings with the prefix {prefix}_, which are not read"
        yield Use(node, text, "Rename them to CELERY_..., and import again.")


def settings_within(node: ast.AST) -> list[tuple[str, ast.expr]]:
    """Return the settings in a dict that holds at least one that can hardly be anything else."""
    pairs: list[tuple[str, ast.expr]] = []
    if isinstance(node, ast.Dict):
        items = zip(node.keys, node.values, strict=True)
        pairs = [(str(key.value), value) for key, value in items if isinstance(key, ast.Constant)]
    elif isinstance(node, ast.Call) and getattr(node.func, "id", "") == "dict":
        pairs = [(word.arg, word.value) for word in node.keywords if word.arg is not None]
    if not any(_is_telling(name) for name, _ in pairs):
        return []
    return [(name, value) for name, value in pairs if is_setting(name, plain=True)]


def _is_telling(name: object) -> bool:
    """Return whether a key is the name of a setting of Celery and can hardly be that of anything else."""
    return isinstance(name, str) and (
        name in TASK_SETTINGS or name == "beat_schedule" or (name.isupper() and is_setting(name))
    )
