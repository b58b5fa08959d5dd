"""The calls of functions that build a command of Celery: an argument of such a call may hold options of the command."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from penstock_import.celery_calls import called, imported_names, root_name, walk
from penstock_import.celery_commands import words_of_code
from penstock_import.celery_scopes import parents_of

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_COMPUTED = re.compile(r"\{([^{}]*)\}")


@dataclass(frozen=True, slots=True)
class Command:
    """A command in a module. `of_program` are the words of the script that it runs, or nothing."""

    file: str
    place: ast.AST
    words: tuple[str, ...]
    of_program: tuple[str, ...] = ()

    @property
    def line(self) -> str:
        return f"{self.file}:{getattr(self.place, 'lineno', 1)}"


def calls_of_commands(
    trees: Mapping[str, ast.Module], commands: Iterable[Command]
) -> Iterator[tuple[str, Command]]:
    """Yield each call of a function with parameters that are parts of a command, with the words of the command for this call. The
    first value is the place of the command in the function."""
    waiting, entered = list(commands), set[int]()
    while waiting:
        command = waiting.pop(0)
        function = _function_around(trees[command.file], command.place)
        if function is None:
            continue
        parts = _computed_parts(function, command.words)
        if not parts:
            continue
        for file, call in _calls(trees, command.file, function):
            values = _values(function, call)
            if id(call) in entered or not values:
                continue
            entered.add(id(call))
            words = [word for part in command.words for word in _replaced(part, parts, values) if word != ""]
            of_call = Command(file, call, tuple(words), command.of_program)
            yield command.line, of_call
            waiting.append(of_call)


def _function_around(tree: ast.Module, place: ast.AST) -> _Function | None:
    parents = parents_of(tree)
    around = parents.get(id(place))
    while around is not None and not isinstance(around, _Function):
        around = parents.get(id(around))
    return around if isinstance(around, _Function) else None


def _parameters(function: _Function) -> list[ast.arg]:
    arguments = function.args
    further = [part for part in (arguments.vararg,) if part is not None]
    return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, *further]


def _computed_parts(function: _Function, words: Iterable[str]) -> dict[str, str]:
    """Return the parameter by each computed part of the words that is a parameter, or the words of its text. A name that
    one statement of the function gives such a value counts as well."""
    names = {part.arg for part in _parameters(function)}
    local = [
        (node.targets[0].id, node.value)
        for node in walk(function)
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name)
    ]
    values = {name: value for name, value in local if [other for other, _ in local].count(name) == 1}
    parts: dict[str, str] = {}
    for word in words:
        for text in _COMPUTED.findall(word):
            parameter = _parameter_of(text, names, values)
            if parameter is not None:
                parts[text] = parameter
    return parts


def _parameter_of(text: str, names: set[str], values: Mapping[str, ast.expr]) -> str | None:
    try:
        node: ast.expr = ast.parse(text.removeprefix("*"), mode="eval").body
    except SyntaxError:
        return None
    for _ in range(8):
        if isinstance(node, ast.Name):
            if node.id in values:
                node = values[node.id]
                continue
            return node.id if node.id in names else None
        if not isinstance(node, ast.Call):
            return None
        function = called(node)
        if function in ("join", "list", "quote", "str", "tuple") and len(node.args) == 1:
            node = node.args[0]
        elif function in ("split", "strip") and isinstance(node.func, ast.Attribute):
            is_of_module = isinstance(node.func.value, ast.Name) and node.func.value.id == "shlex"
            node = node.args[0] if is_of_module and node.args else node.func.value
        else:
            return None
    return None


def _calls(trees: Mapping[str, ast.Module], own: str, function: _Function) -> Iterator[tuple[str, ast.Call]]:
    """Yield the calls of a function of a module, in it and in the modules that import it."""
    stem = own.removesuffix(".py").removesuffix("/__init__").rpartition("/")[2]
    for file, tree in trees.items():
        imported = dict(imported_names(tree))
        for node in walk(tree):
            if not isinstance(node, ast.Call):
                continue
            root = root_name(node.func)
            path = imported.get(root, "")
            is_member = isinstance(node.func, ast.Attribute)
            module, _, name = path.rpartition(".")
            is_imported = (
                (stem in path.split(".") if is_member else module.rpartition(".")[2] == stem)
                if path
                else False
            )
            meant = name if path and not is_member else called(node)
            if meant == function.name and (is_imported if file != own or path else True):
                yield file, node


def _values(function: _Function, call: ast.Call) -> dict[str, tuple[str, ...]]:
    """Return the words that a call gives each parameter, also by its default."""
    arguments = function.args
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults = dict(
        zip((part.arg for part in reversed(positional)), reversed(arguments.defaults), strict=False)
    )
    defaults |= {
        part.arg: value
        for part, value in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        if value is not None
    }
    values = {name: _texts(value) for name, value in defaults.items()}
    if positional and positional[0].arg in ("self", "cls") and isinstance(call.func, ast.Attribute):
        positional = positional[1:]
    if any(isinstance(part, ast.Starred) for part in call.args):
        return values
    values |= {part.arg: _texts(value) for part, value in zip(positional, call.args, strict=False)}
    if arguments.vararg is not None:
        further = call.args[len(positional) :]
        values[arguments.vararg.arg] = tuple(word for part in further for word in _texts(part))
    return values | {word.arg: _texts(word.value) for word in call.keywords if word.arg is not None}


def _texts(node: ast.expr) -> tuple[str, ...]:
    words = words_of_code(node)
    if words or (isinstance(node, ast.Constant) and node.value in ("", None)):
        return tuple(words)
    return (str(node.value),) if isinstance(node, ast.Constant) else (f"{{{ast.unparse(node)}}}",)


def _replaced(word: str, parts: Mapping[str, str], values: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """Return the words of a word of a command, in which the computed parts are replaced by the values of a call."""
    whole = _COMPUTED.fullmatch(word)
    if whole is not None and parts.get(whole[1]) in values:
        return values[parts[whole[1]]]
    return (
        _COMPUTED.sub(
            lambda part: " ".join(values[parts[part[1]]]) if parts.get(part[1]) in values else part[0], word
        ),
    )
