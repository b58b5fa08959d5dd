"""The commands that start Celery in Python code, and the work by hand for each command."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from penstock_import.celery_calls import bound_names, called, walk
from penstock_import.celery_queues import Queues
from penstock_import.celery_scopes import parents_of
from penstock_import.command_lines import (
    COMMAND,
    OLD_PROGRAMS,
    OTHER_PARTS,
    PARTS,
    WITH_VALUES,
    is_command,
    is_program,
)
from penstock_import.command_variables import option_of

_WORKERS = frozenset({"WorkController", "Worker"})
_ARGUMENTS_OF_WORKERS = frozenset(
    {
        "autoscale", "beat", "concurrency", "exclude_queues", "hostname", "include", "logfile", "loglevel",
        "max_memory_per_child", "max_tasks_per_child", "no_color", "optimization", "pidfile", "pool", "pool_cls",
        "prefetch_multiplier", "purge", "queues", "quiet", "ready_callback", "redirect_stdouts", "redirect_stdouts_level",
        "schedule_filename", "scheduler", "send_events", "soft_time_limit", "statedb", "task_events", "time_limit",
        "without_gossip", "without_heartbeat", "without_mingle", None,
    }
)  # fmt: skip
"""The arguments of `app.Worker(...)`. Workers of other packages have others."""
_RUNNING = frozenset({"system", "popen", "run", "call", "check_call", "check_output", "Popen", "split"})
_FINDING = frozenset({"find_executable", "which"})
_GIVING = frozenset({"putenv", "setdefault", "setenv"})
_OPTIONS: Mapping[str, str] = {
    "-Q": "is `penstock worker --routes`",
    "-X": "is replaced by `penstock worker --routes` with the other routes",
    "-c": "is `penstock worker --concurrency`",
    "--autoscale": "is `penstock worker --concurrency` with the larger number",
    "-B": "needs nothing, as executors start what is due",
    "--time-limit": "is `timeout` and `executor: process` of each action without a `timeout` of its own",
    "--soft-time-limit": "is `timeout` of each action whose task has no soft limit of its own, instead of a longer `timeout`",
    "--max-memory-per-child": "is `memory_limit` of the executor `process` (docs/task-executors.md)",
    "--max-tasks-per-child": "is `jobs_per_child` of the executor `process` (docs/task-executors.md)",
    "-P": "is `executor` of the actions",
    "-S": "names a store of schedules. Those in a database are not read: write them as schedules",
    "--purge": "removes the waiting messages: Penstock has no such option",
}
"""The work by hand for each option of a command, as the end of a sentence."""
_LONG = {
    "--queues": "-Q",
    "--exclude-queues": "-X",
    "--concurrency": "-c",
    "--beat": "-B",
    "--pool": "-P",
    "--scheduler": "-S",
}


def of_variable(variable: str, value: str, queues: Queues) -> tuple[str, str]:
    """Return the subject and the work by hand for a variable that Celery reads as an option of its command."""
    part, option = option_of(variable) or ("", "")
    word = f"{option}={value}" if value else option
    hints = _hints([word], queues)
    text = (
        f" In Penstock, {'; '.join(hints.values())}."
        if hints
        else " See the settings of the worker in docs/configuration.md."
    )
    return (
        f"the variable {variable} of the environment, which is {word} of celery {part}",
        f"It counts if the command itself does not have this option.{text}",
    )


def variables_of_code(tree: ast.Module, queues: Queues) -> Iterator[tuple[ast.AST, str, str]]:
    """Yield the place, the subject and the work by hand for each variable that a module gives its environment or another
    one. Only variables that Celery reads as options of its commands count."""
    for node in walk(tree):
        pairs: list[tuple[ast.expr | None, ast.expr]] = []
        if isinstance(node, ast.Call) and called(node) in _GIVING and len(node.args) == 2:
            pairs = [(node.args[0], node.args[1])]
        elif isinstance(node, ast.Dict):
            pairs = list(zip(node.keys, node.values, strict=True))
        elif isinstance(node, ast.Assign):
            items = [target for target in node.targets if isinstance(target, ast.Subscript)]
            pairs = [
                (item.slice, node.value) for item in items if ast.unparse(item.value).endswith("environ")
            ]
        for key, value in pairs:
            name = getattr(key, "value", None)
            if isinstance(name, str) and option_of(name) is not None:
                yield node, *of_variable(name, _word(value), queues)


def commands_of_code(tree: ast.Module) -> Iterator[tuple[ast.AST, list[str]]]:
    """Yield the place and the words of each command in a module: a list, the arguments of a call, or a text."""
    comments = {id(node.value) for node in walk(tree) if isinstance(node, ast.Expr)}
    inside: set[int] = set()
    templates, programs = _templates(tree), _programs(tree)
    for node in walk(tree):
        if isinstance(node, ast.List | ast.Tuple):
            words = [programs.get(ast.unparse(part)) or _word(part) for part in node.elts]
        elif (formatted := _formatted(tree, node, templates)) is not None:
            words = formatted.split()
        elif isinstance(node, ast.Call):
            words = [_word(part) for part in node.args]
            if called(node) == "worker_main":
                parts = (
                    node.args[0]
                    if node.args
                    else next((word.value for word in node.keywords if word.arg == "argv"), None)
                )
                if isinstance(parts, ast.Name):
                    parts = _list_named(tree, parts.id) or parts
                if isinstance(parts, ast.List | ast.Tuple):
                    words = [_word(part) for part in parts.elts]
                else:
                    words = [_word(parts)] if parts is not None else []
                inside.add(id(parts))
                # Celery refuses any other words than those of a worker.
                yield node, ["celery", *([] if "worker" in words else ["worker"]), *words]
                continue
            if called(node) in _WORKERS and _is_worker(node):
                yield node, ["celery", "worker", *map(_option, node.keywords)]
                continue
            if called(node) in _RUNNING:
                texts = [part for part in node.args if COMMAND.match(_word(part))]
                inside |= {id(part) for part in texts}
                yield from ((part, _word(part).split()) for part in texts)
        elif isinstance(node, ast.Constant | ast.JoinedStr) and id(node) not in comments | inside:
            words = words_of_code(node)
        else:
            continue
        starts = [
            number
            for number, (previous, word) in enumerate(pairwise(["", *words]))
            if is_program(word) and previous not in WITH_VALUES
        ]
        if id(node) in inside or not starts:
            continue
        if is_command(words[starts[0] :]) or _is_of_manage(words, starts[0]):
            inside |= {id(part) for part in ast.walk(node)}
            yield node, [*words[starts[0] :], *_added_later(tree, node)]


def _is_of_manage(words: Sequence[str], start: int) -> bool:
    """Return whether the words of a text run a command of Celery by `manage.py`, also without an option."""
    return words[max(start - 1, 0)].endswith("manage.py") and bool(
        (PARTS | OTHER_PARTS) & set(words[start + 1 : start + 2])
    )


def _programs(tree: ast.Module) -> dict[str, str]:
    """Return the program of Celery by the text of each expression that gives it: a call of `which`, or a name of the
    program or of such a call."""
    programs: dict[str, str] = {}
    bound = bound_names(tree)
    for node in walk(tree):
        if (
            isinstance(node, ast.Call)
            and called(node) in _FINDING
            and node.args
            and is_program(_word(node.args[0]))
        ):
            programs[ast.unparse(node)] = _word(node.args[0])
    for node in walk(tree):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            value = programs.get(ast.unparse(node.value)) or _word(node.value)
            name = node.targets[0].id
            if bound[name] == 1 and is_program(value):
                programs[name] = value
    return programs


def _templates(tree: ast.Module) -> dict[str, str]:
    """Return the texts with places for words by the last name that a statement gives each of them, or its `format`."""
    templates: dict[str, str] = {}
    for node in walk(tree):
        if not isinstance(node, ast.Assign) or len(node.targets) != 1:
            continue
        value = node.value
        if isinstance(value, ast.Attribute) and value.attr == "format":
            value = value.value
        if (
            isinstance(value, ast.Constant)
            and isinstance(value.value, str)
            and re.search("[{%]", value.value)
        ):
            target = node.targets[0]
            name = target.attr if isinstance(target, ast.Attribute) else getattr(target, "id", "")
            templates[name] = value.value
    return templates


def _formatted(tree: ast.Module, node: ast.AST, templates: Mapping[str, str]) -> str | None:
    """Return the text that a template makes of the words of a call, or of `%`; None for any other expression. A word that is
    computed stands in braces."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
        template = _template(node.left, templates)
        values = node.right.elts if isinstance(node.right, ast.Tuple) else [node.right]
        if template is None or isinstance(node.right, ast.Dict):
            return None
        words = iter(_joined(tree, value) for value in values)
        return re.sub(r"%[a-z]", lambda _: next(words, "{}"), template)
    if not isinstance(node, ast.Call):
        return None
    function: ast.expr = node.func
    if isinstance(function, ast.Attribute) and function.attr == "format":
        function = function.value
    template = _template(function, templates)
    if template is None:
        return None
    by_place = iter([_joined(tree, value) for value in node.args])
    by_name = {word.arg: _joined(tree, word.value) for word in node.keywords}
    return re.sub(
        r"\{(\w*)[^{}]*\}",
        lambda part: by_name.get(part[1], part[0]) if part[1] else next(by_place, part[0]),
        template,
    )


def _template(node: ast.expr, templates: Mapping[str, str]) -> str | None:
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
    return templates.get(name)


def _joined(tree: ast.Module, node: ast.expr) -> str:
    """Return the text of a word, also of a list that `join` makes a text of."""
    if isinstance(node, ast.Call) and called(node) == "join" and len(node.args) == 1:
        parts: ast.expr | None = node.args[0]
        if isinstance(parts, ast.Name):
            parts = _list_named(tree, parts.id)
        if isinstance(parts, ast.List | ast.Tuple):
            return " ".join([*(_joined(tree, part) for part in parts.elts), *_added_later(tree, parts)])
    return _word(node)


def _is_worker(call: ast.Call) -> bool:
    """Return whether a call of a member `Worker` has arguments, and only those of Celery's workers."""
    names = {word.arg for word in call.keywords}
    return isinstance(call.func, ast.Attribute) and bool(names) and names <= _ARGUMENTS_OF_WORKERS


def _option(word: ast.keyword) -> str:
    """Return the option of a command for an argument of `app.Worker(...)`."""
    name = f"--{(word.arg or '**').replace('_', '-')}"
    if isinstance(word.value, ast.List | ast.Tuple):
        return f"{name}={','.join(map(_word, word.value.elts))}"
    return name if getattr(word.value, "value", None) is True else f"{name}={_word(word.value)}"


def _list_named(tree: ast.Module, name: str) -> ast.List | ast.Tuple | None:
    """Return the list that the one statement of a module gives a name."""
    values = [
        part.value
        for part in walk(tree)
        if isinstance(part, ast.Assign) and any(getattr(target, "id", "") == name for target in part.targets)
    ]
    if len(values) != 1 or bound_names(tree)[name] != 1:
        return None
    return values[0] if isinstance(values[0], ast.List | ast.Tuple) else None


def _added_later(tree: ast.Module, node: ast.AST) -> list[str]:
    """Return the words that statements add to the name that a list has."""
    parents = parents_of(tree)
    around = parents.get(id(node))
    if not isinstance(around, ast.Assign) or around.value is not node:
        return []
    name = ast.unparse(around.targets[0])
    functions: list[ast.AST] = []
    while (around := parents.get(id(around))) is not None:
        if isinstance(around, ast.FunctionDef | ast.AsyncFunctionDef):
            functions.insert(0, around)
    lists: list[ast.expr] = []
    for part in (part for function in functions for part in walk(function)):
        if isinstance(part, ast.AugAssign) and ast.unparse(part.target) == name:
            lists.append(part.value)
        elif isinstance(part, ast.Call) and called(part) in ("append", "extend") and part.args:
            lists += part.args if ast.unparse(getattr(part.func, "value", part.func)) == name else []
    return [
        _word(word)
        for value in lists
        for word in (value.elts if isinstance(value, ast.List | ast.Tuple) else [value])
    ]


def _word(node: ast.expr) -> str:
    """Return a text, in which each part that is computed stands in braces."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(map(_word, node.values))
    return f"{{{ast.unparse(node.value if isinstance(node, ast.FormattedValue) else node)}}}"


def words_of_code(node: ast.AST) -> list[str]:
    """Return the words of a list, a tuple or a text; none for any other expression."""
    if isinstance(node, ast.List | ast.Tuple):
        return [_word(part) for part in node.elts]
    if isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str)):
        return [word.strip("\"'") for word in _word(node).split()]
    return []


def names_within(words: Sequence[str]) -> set[str]:
    """Return the names in the computed words of a command."""
    return {name for word in words if word.startswith("{") for name in re.findall(r"\w+", word)}


_OLD_WORKERS = OLD_PROGRAMS - {"celerybeat"}


def _hints(words: Sequence[str], queues: Queues) -> dict[str, str]:
    """Return the work by hand for the options of a command, by option."""
    hints: dict[str, str] = {}
    for word, following in pairwise([*words, ""]):
        named, is_assigned, value = word.partition("=")
        if not word.startswith("--") and word[:2] in _OPTIONS and word[2:]:
            named, is_assigned, value = word[:2], "=", word[2:].removeprefix("=")
        option = _LONG.get(named, named)
        if option not in _OPTIONS or option in hints:
            continue
        hints[option] = f"{named} {_OPTIONS[option]}"
        if option == "-Q":
            hints[option] = f"{named} {_routes(value if is_assigned else following, queues)}"
    return hints


_OF_OTHERS: Mapping[str, str] = {
    "call": "Write `penstock run` with the ref of the action.",
    "control": "See what it changes in running workers: limits and timeouts belong to the actions, and `penstock cancel` ends "
    "an execution.",
    "events": "Leave it out: `penstock executions` and the pages show what runs.",
    "flower": "Leave it out: the pages of the API show what runs.",
    "inspect": "Ask `/live` and `/ready` of each process (docs/metrics.md), or `penstock executions` and `penstock queues`.",
    "purge": "It removes all waiting messages: Penstock has no such command. `penstock cancel --action` ends executions.",
    "status": "Ask `/live` and `/ready` of each process (docs/metrics.md).",
}
"""The work by hand for each command that starts no worker and no beat."""


def advice(words: Sequence[str], queues: Queues) -> str:
    """Return the work by hand for a command."""
    other = next((word for word in words if word in OTHER_PARTS), None)
    if other is not None and not PARTS & set(words):
        return _OF_OTHERS[other]
    hints = _hints(words, queues)
    is_open = not PARTS & set(words) and not any(word.rpartition("/")[2] in OLD_PROGRAMS for word in words)
    is_worker = bool({"multi", "worker"} & set(words)) or any(
        word.rpartition("/")[2] in _OLD_WORKERS for word in words
    )
    start = "Start `penstock worker` and `penstock executor`."
    if is_open:
        start = "See what its further words start: a worker is `penstock worker`, and beat is `penstock executor`."
    elif not is_worker:
        start = "Start `penstock executor`, which starts what is due."
    elif "-Q" not in hints and not any(word.startswith("{") for word in words):
        start += queues.of_whole_worker()
    hint = f" In Penstock, {'; '.join(hints.values())}." if hints else ""
    open_words = [word for previous, word in pairwise(words) if _may_hold_options(previous, word)]
    if open_words:
        hint += f" See which further options {' and '.join(dict.fromkeys(open_words))} may hold."
    return start + hint


def _may_hold_options(previous: str, word: str) -> bool:
    """Return whether a word of a command is a variable that may hold options, and no value of the option before it."""
    is_variable = re.fullmatch(r"\$(?:@|\*|\w+|\{[^}]*\}|\([^)]*\))", word) is not None
    is_spread = word.startswith("{*")  # the parts of a list in Python code
    return is_spread or (is_variable and not previous.startswith(("-", ">", "2>", "&>", "<")))


def pool_of(words: Sequence[str]) -> str | None:
    """Return the pool that a command names; None for a command that names none."""
    for word, following in pairwise([*words, ""]):
        named, is_assigned, value = word.partition("=")
        if named in ("-P", "--pool"):
            return value if is_assigned else following
        if word.startswith("-P") and not word.startswith("--"):
            return word[2:].removeprefix("=")
    return None


_OF_PROCESSES = frozenset({"prefork", "processes", "celery.concurrency.prefork:TaskPool"})
"""The pools that end a task at its time limits."""
_WITHOUT_LIMITS = frozenset({"eventlet", "solo", "threads"})
_TAKE_OUT = "If all workers of the action have this pool, remove `timeout` and `executor` from the action."


def limits_in(pool: str | None) -> str | None:
    """Return the work by hand for a time limit beside a pool of Celery's workers; None for a pool that enforces it. The pool
    is None if only running the code would tell it."""
    if pool in _OF_PROCESSES:
        return None
    if pool in _WITHOUT_LIMITS:
        return f"This pool ends no task at a time limit. {_TAKE_OUT}"
    if pool == "gevent":
        return f"This pool ends a task at its `time_limit` only while the task waits, and has no soft limit. {_TAKE_OUT}"
    return f"See whether it ends a task at a time limit: only `prefork` does. {_TAKE_OUT}"


def _routes(names: str, queues: Queues) -> str:
    if re.fullmatch(r"[\w.,-]+", names):
        return f"{names} is `penstock worker --routes {','.join(map(queues.route, names.split(',')))}`"
    return f"{_OPTIONS['-Q']}{queues.renamed()}"
