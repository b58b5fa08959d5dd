"""The schedules that calls create: `add_periodic_task`, and rows of django-celery-beat. Each becomes an entry in the
form of `beat_schedule`."""

from __future__ import annotations

import ast
import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from penstock_import.celery_calls import (
    NotLiteral,
    called,
    children,
    imported_names,
    literal,
    once,
    root_name,
    walk,
)
from penstock_import.celery_scopes import parents_of
from penstock_import.wanted_text import NotMapped

_Scope = ast.Module | ast.FunctionDef | ast.AsyncFunctionDef
SETUPS = ("on_after_configure.connect", "on_after_finalize.connect")
_WRITES = ("create", "get_or_create", "update_or_create")
_ROW_SAYS = frozenset(
    {"name", "task", "interval", "crontab", "args", "kwargs", "enabled", "description"}
    | {"queue", "priority", "expire_seconds"}
)
_LIKE_NOTHING = (None, "", False)
_REPEATING = ast.For | ast.While | ast.IfExp | ast.comprehension | ast.Match | ast.BoolOp | ast.ExceptHandler
"""The parts of code in which a call may run never, or more than once."""
BEAT_MODELS = "django_celery_beat.models"


@dataclass(slots=True)
class Entry:
    """A schedule that a call creates. `entry` is a dict in the form of `beat_schedule`; if it is None, `reason` says
    why."""

    key: str
    place: ast.Call
    entry: ast.Dict | None = None
    reason: str = ""
    zone: str | None = None
    """The zone that the row itself names."""
    condition: str = ""
    """The condition under which the call runs; empty for a call that always runs."""
    places: list[ast.AST] = field(default_factory=list)
    """The places from which the entry was made."""
    receiver: str = ""
    """The name of the application that the call, or the signal of its function, names. Empty for a row."""


def periodic_tasks(
    tree: ast.Module, apps: Collection[str], constants: Mapping[str, ast.expr], starting: Collection[int] = ()
) -> list[Entry]:
    """Return the schedules that calls of `add_periodic_task` create. `starting` are the methods that Django calls as it
    starts."""
    entries: list[Entry] = []
    for scope, call in _calls(tree):
        if not isinstance(call.func, ast.Attribute) or call.func.attr != "add_periodic_task":
            continue
        entry = Entry("", call, places=[call, call.func], receiver=_receiver(scope, call))
        try:
            is_start = id(scope) in starting
            if not isinstance(scope, ast.Module) and not is_start and not _is_setup(tree, scope, apps):
                raise NotMapped(f"a call in {scope.name}, which the sources may never call")
            if is_start and root_name(call.func) not in apps:
                raise NotMapped(f"{ast.unparse(call.func.value)} is not an application of this file")
            entry.condition = _condition(scope, call, call.func.value, apps)
            _of_periodic_task(entry, call, _visible(scope, constants) | _local_times(scope, call))
            _name_registered(entry, scope, apps)
            _check_names(entry, scope)
        except (NotMapped, NotLiteral) as error:
            entry.entry, entry.reason = None, str(error)
        entries.append(entry)
    return _unique(entries, "which stands twice: in Celery the later entry replaces the earlier entry")


def _receiver(scope: _Scope, call: ast.Call) -> str:
    """Return the name of the application that a call names, or else the signal that its function is connected to."""
    decorators = [] if isinstance(scope, ast.Module) else scope.decorator_list
    return root_name(decorators[0]) if decorators else root_name(call.func)


def _of_periodic_task(entry: Entry, call: ast.Call, constants: Mapping[str, ast.expr]) -> None:
    supplied = _arguments(call, ("schedule", "sig", "args", "kwargs", "name"))
    if "schedule" not in supplied or "sig" not in supplied:
        raise NotMapped("a call without a time or a task")
    signature, own_args, own_kwargs = supplied["sig"], supplied.get("args"), supplied.get("kwargs")
    task, args, kwargs, options = _signature(signature)
    if task is signature:
        args, kwargs = own_args, own_kwargs
    elif own_args is not None or own_kwargs is not None:
        raise NotMapped("arguments beside those of a signature")
    options |= {name: value for name, value in supplied.items() if name not in
                ("schedule", "sig", "args", "kwargs", "name")}  # fmt: skip
    parts = {
        "task": task,
        "schedule": _resolved(supplied["schedule"], constants),
        "args": args,
        "kwargs": kwargs,
    }
    parts |= {"options": _dict(options, call)} if options else {}
    entry.entry = _dict({name: value for name, value in parts.items() if value is not None}, call)
    name = literal(supplied["name"], constants) if "name" in supplied else None
    entry.key = str(name or f"{ast.unparse(task).rpartition('.')[2]} {ast.unparse(_dict({}, call) if args is None else args)}"
                    f"{ast.unparse(kwargs) if kwargs is not None else ''}")  # fmt: skip


def _name_registered(entry: Entry, scope: _Scope, apps: Collection[str]) -> None:
    """Replace `app.tasks["depot.weigh"]` in an entry by the name of the task. A name of the function or the module may be
    given that value by one statement."""
    assert entry.entry is not None
    node = entry.entry.values[0]
    if isinstance(node, ast.Name):
        stored = [part for part in walk(scope) if isinstance(part, ast.Name) and part.id == node.id
                  and not isinstance(part.ctx, ast.Load)]  # fmt: skip
        values = [
            part.value
            for part in walk(scope)
            if isinstance(part, ast.Assign) and len(part.targets) == 1 and part.targets[0] in stored
        ]
        if len(stored) != 1 or len(values) != 1 or id(values[0]) in conditional(scope):
            return
        node = values[0]
    if not isinstance(node, ast.Subscript) or not isinstance(node.value, ast.Attribute):
        return
    own = () if isinstance(scope, ast.Module) else [*scope.args.posonlyargs, *scope.args.args][:1]
    is_app = isinstance(node.value.value, ast.Name) and (
        node.value.value.id in apps or node.value.value.id in {argument.arg for argument in own}
    )
    if node.value.attr == "tasks" and is_app and isinstance(node.slice, ast.Constant):
        entry.places.append(node)
        entry.entry.values[0] = ast.copy_location(ast.Constant(node.slice.value), entry.entry.values[0])


def _signature(
    node: ast.expr,
) -> tuple[ast.expr, ast.expr | None, ast.expr | None, dict[str, ast.expr]]:
    """Return the task of a signature, its arguments and its options."""
    if isinstance(node, ast.Name | ast.Attribute | ast.Subscript):
        return node, None, None, {}
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        raise NotMapped(f"the task {ast.unparse(node)}")
    if node.func.attr in ("s", "si"):
        if any(word.arg is None for word in node.keywords):
            raise NotMapped("arguments that are spread with **")
        args = ast.copy_location(ast.Tuple(elts=list(node.args), ctx=ast.Load()), node)
        return node.func.value, args, _dict({str(word.arg): word.value for word in node.keywords}, node), {}
    if node.func.attr in ("signature", "subtask"):
        supplied = _arguments(node, ("args", "kwargs"))
        options = {
            name: value for name, value in supplied.items() if name not in ("args", "kwargs", "immutable")
        }
        return node.func.value, supplied.get("args"), supplied.get("kwargs"), options
    raise NotMapped(f"the task {ast.unparse(node)}")


def rows(tree: ast.Module, constants: Mapping[str, ast.expr], is_aware: bool) -> list[Entry]:
    """Return the schedules that a module writes to the tables of django-celery-beat. `is_aware`: the times of a crontab
    are in the zone of its row."""
    models = beat_models(tree)
    entries: list[Entry] = []
    for scope, call in _calls(tree):
        if _model_written(call, models) != "PeriodicTask":
            continue
        entry = Entry("", call, places=[call])
        try:
            if id(call) in conditional(tree):
                raise NotMapped("a row that is written under a condition")
            _of_row(entry, call, scope, models, _visible(scope, constants), is_aware)
            _check_names(entry, scope)
        except (NotMapped, NotLiteral) as error:
            entry.entry, entry.reason = None, str(error)
        entries.append(entry)
    return _unique(entries, "whose row is written twice")


def _of_row(
    entry: Entry,
    call: ast.Call,
    scope: _Scope,
    models: Mapping[str, str],
    constants: Mapping[str, ast.expr],
    is_aware: bool,
) -> None:
    supplied = _fields(call)
    entry.key = str(literal(supplied["name"], constants)) if "name" in supplied else ""
    for name in supplied.keys() - _ROW_SAYS:
        if not (isinstance(supplied[name], ast.Constant) and supplied[name].value in _LIKE_NOTHING):  # type: ignore[attr-defined]
            raise NotMapped(f"{name} of a row")
    if "task" not in supplied or not entry.key:
        raise NotMapped("a row without a name or a task")
    times = [name for name in ("interval", "crontab") if name in supplied and not _is_nothing(supplied[name])]
    if len(times) != 1:
        raise NotMapped("a row without exactly one time")
    written = _row_of(supplied[times[0]], scope, models)
    entry.places.append(written)
    fields = _fields(written)
    if times[0] == "interval":
        schedule: ast.expr = _interval(fields, written, constants)
    else:
        schedule, entry.zone = _crontab(fields, written, constants)
        if entry.zone is not None and not is_aware:
            raise NotMapped("the zone of a crontab without DJANGO_CELERY_BEAT_TZ_AWARE")
    parts = {"task": supplied["task"], "schedule": schedule}
    for name, empty in (("args", []), ("kwargs", {})):
        if name in supplied and not _is_nothing(supplied[name]):
            parts[name] = _json(supplied[name], type(empty), constants)
    options = {
        option: supplied[name]
        for name, option in (("queue", "queue"), ("priority", "priority"), ("expire_seconds", "expires"))
        if name in supplied and not _is_nothing(supplied[name])
    }
    if options:
        parts["options"] = _dict(options, call)
    if "enabled" in supplied:
        parts["enabled"] = ast.copy_location(ast.Constant(literal(supplied["enabled"], constants)), call)
    entry.entry = _dict(parts, call)


def _interval(fields: Mapping[str, ast.expr], place: ast.Call, constants: Mapping[str, ast.expr]) -> ast.expr:
    if fields.keys() != {"every", "period"}:
        raise NotMapped("an interval with more fields than `every` and `period`")
    period = fields["period"]
    named = period.attr.lower() if isinstance(period, ast.Attribute) else literal(period, constants)
    if named not in ("days", "hours", "minutes", "seconds"):
        raise NotMapped(f"the period {ast.unparse(period)}")
    words = [ast.keyword(arg=str(named), value=fields["every"])]
    return ast.copy_location(ast.Call(func=ast.Name("timedelta", ast.Load()), args=[], keywords=words), place)


def _crontab(
    fields: Mapping[str, ast.expr], place: ast.Call, constants: Mapping[str, ast.expr]
) -> tuple[ast.expr, str | None]:
    words = [ast.keyword(arg=name, value=value) for name, value in fields.items() if name != "timezone"]
    cron = ast.copy_location(ast.Call(func=ast.Name("crontab", ast.Load()), args=[], keywords=words), place)
    zone = fields.get("timezone")
    if zone is None:
        return cron, None
    if isinstance(zone, ast.Call) and called(zone) in ("ZoneInfo", "timezone") and len(zone.args) == 1:
        zone = zone.args[0]
    named = literal(zone, constants)
    if not isinstance(named, str):
        raise NotLiteral(ast.unparse(zone))
    return cron, named


def _row_of(node: ast.expr, scope: _Scope, models: Mapping[str, str]) -> ast.Call:
    """Return the call that writes the row of a time. A name refers to the single assignment of its function."""
    if isinstance(node, ast.Name):
        values: list[ast.expr] = []
        for statement in walk(scope):
            if isinstance(statement, ast.Assign):
                for target in statement.targets:
                    first = target.elts[0] if isinstance(target, ast.Tuple) and target.elts else target
                    if isinstance(first, ast.Name) and first.id == node.id:
                        values.append(statement.value)
        stored = [part for part in walk(scope) if isinstance(part, ast.Name) and part.id == node.id
                  and isinstance(part.ctx, ast.Store)]  # fmt: skip
        if len(values) != 1 or len(stored) != 1:
            raise NotLiteral(node.id)
        node = values[0]
    if isinstance(node, ast.Subscript):
        node = node.value
    if not isinstance(node, ast.Call) or _model_written(node, models) not in (
        "IntervalSchedule",
        "CrontabSchedule",
    ):
        raise NotLiteral(ast.unparse(node))
    return node


def _fields(call: ast.Call) -> dict[str, ast.expr]:
    """Return the fields of a row by name. Raises NotMapped for values by position and for `create_defaults`, and
    NotLiteral if `defaults` is not written as a dict."""
    fields: dict[str, ast.expr] = {}
    if call.args:
        raise NotMapped("a row with values by position")
    for word in call.keywords:
        if word.arg in ("defaults", "create_defaults") and isinstance(word.value, ast.Dict):
            if word.arg == "create_defaults":
                raise NotMapped("a row whose values differ when it is new")
            for key, value in zip(word.value.keys, word.value.values, strict=True):
                fields[str(literal(key)) if key is not None else "**"] = value
        elif word.arg in ("defaults", "create_defaults"):
            raise NotLiteral(ast.unparse(word.value))
        else:
            fields[word.arg or "**"] = word.value
    return fields


def _json(node: ast.expr, kind: type, constants: Mapping[str, ast.expr]) -> ast.expr:
    """Return the literal of a text in JSON."""
    if isinstance(node, ast.Call) and called(node) == "dumps" and len(node.args) == 1 and not node.keywords:
        value = literal(node.args[0], constants)
        value = list(value) if isinstance(value, tuple) else value
    else:
        try:
            value = json.loads(literal(node, constants))
        except (ValueError, TypeError):
            raise NotMapped(f"{ast.unparse(node)} is not JSON") from None
    if not isinstance(value, kind):
        raise NotMapped(f"the arguments {ast.unparse(node)}")
    return ast.copy_location(ast.parse(repr(value), mode="eval").body, node)


def beat_models(tree: ast.Module) -> dict[str, str]:
    """Return the names of a module for models of django-celery-beat."""
    names = {name: path for name, path in imported_names(tree) if path.startswith("django_celery_beat")}
    for node in walk(tree):
        if (
            isinstance(node, ast.Assign)
            and isinstance(node.value, ast.Call)
            and called(node.value) == "get_model"
        ):
            texts = [str(part.value) for part in node.value.args if isinstance(part, ast.Constant)]
            app, _, model = ".".join(texts).partition(".")
            if app == "django_celery_beat":
                names |= {
                    target.id: f"{BEAT_MODELS}.{model}"
                    for target in node.targets
                    if isinstance(target, ast.Name)
                }
    return names


def _model_written(call: ast.Call, models: Mapping[str, str]) -> str:
    """Return the model to which the row belongs that a call writes; an empty text for another call."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr not in _WRITES:
        return ""
    manager = call.func.value
    if (
        not isinstance(manager, ast.Attribute)
        or manager.attr != "objects"
        or root_name(manager) not in models
    ):
        return ""
    model = manager.value
    return model.attr if isinstance(model, ast.Attribute) else models[root_name(model)].rpartition(".")[2]


# -- scopes -------------------------------------------------------------------------------------------------------------


def _calls(tree: ast.Module) -> Iterator[tuple[_Scope, ast.Call]]:
    """Yield each call with the function around it, in the order of the source."""
    waiting: list[tuple[ast.AST, _Scope]] = [(tree, tree)]
    while waiting:
        node, scope = waiting.pop()
        if isinstance(node, ast.Call):
            yield scope, node
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            scope = node
        waiting.extend((child, scope) for child in reversed(children(node)))


def _condition(scope: _Scope, call: ast.Call, receiver: ast.expr, apps: Collection[str]) -> str:
    """Return the condition under which a call runs as the application starts; empty for a call that always runs. Raises
    NotMapped unless the call runs once where the condition is met."""
    conditions, ends_before = list[str](), list[str]()
    is_app = root_name(receiver) in apps
    if not isinstance(scope, ast.Module):
        first = [argument.arg for argument in [*scope.args.posonlyargs, *scope.args.args]][:1]
        is_app = is_app or [root_name(receiver)] == first
        ends = [
            part
            for part in walk(scope)
            if isinstance(part, ast.Return | ast.Raise) and part.lineno < call.lineno
        ]
        if any(isinstance(part, ast.Raise) or part in scope.body for part in ends):
            raise NotMapped(f"a call in {scope.name}, which may end before this call")
        ends_before += [f"where {scope.name} does not end at line {part.lineno}" for part in ends]
    if not is_app:
        raise NotMapped(f"{ast.unparse(receiver)} is not an application of this file")
    parents = parents_of(scope)
    part: ast.AST = call
    around = parents.get(id(call))
    while around is not None:
        if isinstance(around, ast.If) and part is not around.test:
            is_met = any(part is statement for statement in around.body)
            test = around.test if is_met else ast.UnaryOp(ast.Not(), around.test)
            conditions.append(f"where {ast.unparse(test)}")
        elif isinstance(around, ast.Try) and (part in around.body or part in around.orelse):
            is_first = part is around.body[0] and isinstance(part, ast.Expr) and part.value is call
            if not is_first:
                conditions.append(f"where the `try` at line {around.lineno} does not fail before it")
        elif isinstance(around, _REPEATING) or (isinstance(around, ast.Try) and part not in around.finalbody):
            raise NotMapped("a call under a condition")
        part, around = around, parents.get(id(around))
    return " and ".join([*ends_before, *reversed(conditions)])


def _is_setup(
    tree: ast.Module, function: ast.FunctionDef | ast.AsyncFunctionDef, apps: Collection[str]
) -> bool:
    """Return whether a function runs once as the application starts: by a decorator, or by one statement of the module. The
    statement connects it to a signal, or calls it with the application as its first argument."""
    decorators = [
        ast.unparse(decorator.func if isinstance(decorator, ast.Call) else decorator)
        for decorator in function.decorator_list
    ]
    if any(text.endswith(SETUPS) for text in decorators):
        return True
    loads = [part for part in walk(tree) if isinstance(part, ast.Name) and part.id == function.name]
    calls = [
        part.value for part in tree.body if isinstance(part, ast.Expr) and isinstance(part.value, ast.Call)
    ]
    if len(loads) != 1 or decorators or function not in tree.body:
        return False
    for call in calls:
        is_connected = ast.unparse(call.func).endswith(SETUPS) and call.args[:1] == loads
        first = call.args[0] if call.args else None
        is_called = call.func is loads[0] and isinstance(first, ast.Name) and first.id in apps
        if is_connected or is_called:
            return True
    return False


def _own_names(scope: _Scope) -> set[str]:
    """Return the names that a function binds itself; none for a module."""
    if isinstance(scope, ast.Module):
        return set()
    arguments = scope.args
    own = {argument.arg for argument in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]}
    own |= {part.arg for part in (arguments.vararg, arguments.kwarg) if part is not None}
    return own | {
        part.id for part in walk(scope) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)
    }


def _visible(scope: _Scope, constants: Mapping[str, ast.expr]) -> dict[str, ast.expr]:
    """Return the constants, except those with names that the function binds itself."""
    own = _own_names(scope)
    return {name: value for name, value in constants.items() if name.partition(".")[0] not in own}


def _local_times(scope: _Scope, call: ast.Call) -> dict[str, ast.expr]:
    """Return the names that one statement of a function gives a value before a call. The value has no name of the
    function in it."""
    if isinstance(scope, ast.Module):
        return {}
    own = _own_names(scope)
    stored = Counter(
        part.id for part in walk(scope) if isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Load)
    )
    return {
        target.id: statement.value
        for statement in scope.body
        if isinstance(statement, ast.Assign)
        and statement.lineno < call.lineno
        and len(statement.targets) == 1
        for target in statement.targets
        if isinstance(target, ast.Name)
        and stored[target.id] == 1
        and isinstance(statement.value, ast.Call | ast.Constant)
        if not {part.id for part in ast.walk(statement.value) if isinstance(part, ast.Name)} & own
    }


def _check_names(entry: Entry, scope: _Scope) -> None:
    """Raise NotLiteral if an entry reads a name that its function binds itself."""
    own = _own_names(scope)
    for part in ast.walk(entry.entry) if entry.entry is not None else ():
        if isinstance(part, ast.Name) and part.id in own:
            raise NotLiteral(part.id)


@once
def conditional(tree: ast.AST) -> set[int]:
    """Return the parts that run only under a condition, or possibly more than once."""
    parts: set[int] = set()
    for node in walk(tree):  # parents come before their children
        is_condition = isinstance(
            node, ast.If | ast.For | ast.While | ast.Try | ast.IfExp | ast.comprehension | ast.Match
        )
        if is_condition or id(node) in parts:
            parts.update(map(id, children(node)))
    return parts


def _arguments(call: ast.Call, names: tuple[str, ...]) -> dict[str, ast.expr]:
    if any(isinstance(argument, ast.Starred) for argument in call.args) or len(call.args) > len(names):
        raise NotMapped("arguments that are spread with *")
    supplied = dict(zip(names, call.args, strict=False))
    for word in call.keywords:
        if word.arg is None or word.arg in supplied:
            raise NotMapped("arguments that are spread with **")
        supplied[word.arg] = word.value
    return supplied


def _resolved(node: ast.expr, constants: Mapping[str, ast.expr]) -> ast.expr:
    return constants.get(node.id, node) if isinstance(node, ast.Name) else node


def _is_nothing(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value in _LIKE_NOTHING


def _dict(parts: Mapping[str, ast.expr], place: ast.AST) -> ast.Dict:
    written = ast.Dict(keys=[ast.Constant(name) for name in parts], values=list(parts.values()))
    for key in written.keys:
        assert key is not None
        ast.copy_location(key, place)
    return ast.copy_location(written, place)


def _unique(entries: list[Entry], reason: str) -> list[Entry]:
    """Return the entries, with entries of equal keys marked as not mapped."""
    counts = Counter((entry.key, entry.receiver) for entry in entries if entry.entry is not None)
    for entry in entries:
        if counts[entry.key, entry.receiver] > 1 and entry.entry is not None:
            entry.entry, entry.reason = None, f"{entry.key!r}, {reason}"
    return entries
