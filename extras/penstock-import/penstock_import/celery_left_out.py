"""The settings that no application reads, as the source of settings is a known module or class: those of other classes,
of modules that it does not import, and of a source that a later one replaces. They are taken out of the modules."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from penstock_import.celery_calls import absolute_path, called, forget, namespace_node, root_name, walk
from penstock_import.celery_setting_names import MAPPED, ZONE_OF_DJANGO, is_setting, today
from penstock_import.celery_sources import Sources, is_whole

_TAKEN_OUT = MAPPED | {"task_queues", "worker_pool"}
_RUNNING = frozenset({"__import__", "exec", "execfile", "import_module", "include"})
_ANYWHERE = frozenset({"beat_schedule", "task_routes"})
"""The plain names that are settings in any module."""
_LOOK = "Celery does not read it, and the import omits it: if it is in force, write it into the actions, or as a schedule."
_OWN_SCOPES = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A statement that was taken out of a module, or one that may not count."""

    file: str
    node: ast.AST
    subject: str
    by_hand: str


def drop_replaced_sources(trees: Mapping[str, ast.Module]) -> list[LeftOut]:
    """Take out each `config_from_object` that a later one of the same block replaces. A namespace of the first one stays,
    as in Celery, if the later one gives none."""
    left_out: list[LeftOut] = []
    for file, tree in trees.items():
        if not any(
            isinstance(node, ast.Call) and called(node) == "config_from_object" for node in walk(tree)
        ):
            continue
        for block in _blocks(tree):
            earlier: dict[str, ast.Expr] = {}
            for statement in list(block):
                call = statement.value if isinstance(statement, ast.Expr) else None
                if isinstance(call, ast.Call) and called(call) == "config_from_object":
                    receiver = ast.unparse(call.func)
                    first = earlier.get(receiver)
                    if first is not None and _is_plain_call(call):
                        assert isinstance(first.value, ast.Call)
                        prefix = namespace_node(first.value)
                        if prefix is not None and namespace_node(call) is None:
                            call.keywords.append(ast.keyword(arg="namespace", value=prefix))
                        block[block.index(first)] = ast.copy_location(ast.Pass(), first)
                        text = f"{ast.unparse(first)}, which line {call.lineno} replaces"
                        left_out.append(
                            LeftOut(
                                file, first, text, "Celery takes only the later source: remove this source."
                            )
                        )
                    assert isinstance(statement, ast.Expr)
                    earlier[receiver] = statement
                elif not isinstance(statement, ast.Expr):
                    stored = {part.id for part in ast.walk(statement)
                              if isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Load)}  # fmt: skip
                    earlier = {
                        text: node for text, node in earlier.items() if text.partition(".")[0] not in stored
                    }
        if any(part.file == file for part in left_out):
            forget(tree)
    return left_out


def _is_plain_call(call: ast.Call) -> bool:
    return len(call.args) == 1 and all(word.arg == "namespace" for word in call.keywords)


def _blocks(tree: ast.Module) -> Iterator[list[ast.stmt]]:
    for node in walk(tree):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list):
                yield block


def drop_unread_settings(
    trees: Mapping[str, ast.Module], sources: Sources, config: Collection[str]
) -> list[LeftOut]:
    """Take the settings out of the classes and modules that no application is configured with. Nothing is taken out
    where a source of settings is unknown or is that of Django."""
    if sources.unknown or sources.is_django or not sources.paths:
        return []
    modules = {file for file in trees for path in sources.paths if is_whole(file, path)}
    classes = [
        (file, class_)
        for path in sources.paths
        if not any(is_whole(file, path) for file in trees)
        for file, class_ in _classes_of(trees, path)
    ]
    left_out = list(_of_classes(trees, config, _with_bases(trees, classes)))
    roots = modules | {file for file, _ in classes} | set(config)
    left_out += _of_modules(trees, config, roots)
    for file in {part.file for part in left_out}:
        forget(trees[file])
    return left_out


def _classes_of(trees: Mapping[str, ast.Module], path: str) -> list[tuple[str, ast.ClassDef]]:
    """Return the classes that a path names: those of its module, or else those with that name in any module."""
    module, _, name = path.rpartition(".")
    named = [(file, node) for file, tree in trees.items() for node in walk(tree)
             if isinstance(node, ast.ClassDef) and node.name == name]  # fmt: skip
    return [(file, node) for file, node in named if is_whole(file, module)] or named


def _with_bases(trees: Mapping[str, ast.Module], classes: Collection[tuple[str, ast.ClassDef]]) -> set[int]:
    """Return the classes and all classes that they extend, by the name of each base."""
    by_name: dict[str, list[ast.ClassDef]] = {}
    for tree in trees.values():
        for node in walk(tree):
            if isinstance(node, ast.ClassDef):
                by_name.setdefault(node.name, []).append(node)
    renamed = {alias.asname: alias.name for tree in trees.values() for node in walk(tree)
               if isinstance(node, ast.ImportFrom) for alias in node.names if alias.asname}  # fmt: skip
    waiting, all_of_them = [class_ for _, class_ in classes], set[int]()
    while waiting:
        class_ = waiting.pop()
        if id(class_) in all_of_them:
            continue
        all_of_them.add(id(class_))
        for base in class_.bases:
            last = base.attr if isinstance(base, ast.Attribute) else getattr(base, "id", "")
            waiting += [*by_name.get(last, ()), *by_name.get(renamed.get(last, ""), ())]
    return all_of_them


def _of_classes(
    trees: Mapping[str, ast.Module], config: Collection[str], configured: Collection[int]
) -> Iterator[LeftOut]:
    for file, tree in trees.items():
        for class_ in [
            node for node in walk(tree) if isinstance(node, ast.ClassDef) and id(node) not in configured
        ]:
            for name, statement in _take_out(class_.body, file in config, lambda _: True):
                text = (
                    f"the setting {name} of the class {class_.name}, with which no application is configured"
                )
                yield LeftOut(file, statement, text, _LOOK)


def _of_modules(
    trees: Mapping[str, ast.Module], config: Collection[str], roots: Collection[str]
) -> Iterator[LeftOut]:
    reached = _imported_from(trees, roots)
    if reached is None:
        return
    unreached = [file for file in trees if file not in reached]
    imported = {
        other
        for file in trees
        for path in _imported_paths(file, trees[file])
        for other in unreached
        if other != file and is_whole(other, path)
    }
    for file in unreached:
        tree = trees[file]
        is_read = file in imported or any(
            (isinstance(node, ast.Attribute) and node.attr == "conf")
            or (isinstance(node, ast.Call) and called(node) == "Celery")
            for node in walk(tree)
        )
        read = {text for other in trees for text in _read_words(trees[other])} if is_read else set()
        for name, statement in _take_out(tree.body, file in config, partial(_is_not_in, read)):
            text = f"the setting {name}, in a module that the settings of no application import"
            yield LeftOut(file, statement, text, _LOOK)


def _is_not_in(read: Collection[str], name: str) -> bool:
    return name not in read


def _read_words(tree: ast.Module) -> Iterator[str]:
    """Yield the names, members and texts that a module reads or imports."""
    for node in walk(tree):
        if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load):
            yield node.attr if isinstance(node, ast.Attribute) else node.id
        elif isinstance(node, ast.alias):
            yield node.name
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def _imported_paths(file: str, tree: ast.Module) -> Iterator[str]:
    """Yield each path that a module may import, or may import a name of."""
    for node in walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            path = absolute_path(file, node)
            yield from (
                name for name in (path, *(f"{path}.{alias.name}".lstrip(".") for alias in node.names)) if name
            )


def _imported_from(trees: Mapping[str, ast.Module], roots: Collection[str]) -> set[str] | None:
    """Return these modules and all that they import; None where only running would tell."""
    reached, waiting = set[str](), list(roots)
    while waiting:
        file = waiting.pop()
        if file in reached:
            continue
        reached.add(file)
        if any(isinstance(node, ast.Call) and called(node) in _RUNNING for node in walk(trees[file])):
            return None
        paths = set(_imported_paths(file, trees[file]))
        waiting += [other for other in trees for path in paths if is_whole(other, path)]
    return reached


def _take_out(
    block: list[ast.stmt], is_config: bool, is_unread: Callable[[str], bool]
) -> Iterator[tuple[str, ast.stmt]]:
    """Take the statements that give or change a setting out of a block, and out of the blocks within it."""
    for number, statement in enumerate(block):
        if isinstance(statement, _OWN_SCOPES):
            continue
        name = _setting_given(statement)
        is_known = is_setting(name, plain=is_config or name in _ANYWHERE) and today(name) in _TAKEN_OUT
        if (is_known or (is_config and name == ZONE_OF_DJANGO)) and is_unread(name):
            block[number] = ast.copy_location(ast.Pass(), statement)
            yield name, statement
            continue
        for part in ("body", "orelse", "finalbody"):
            if isinstance(inner := getattr(statement, part, None), list):
                yield from _take_out(inner, is_config, is_unread)
        for handler in getattr(statement, "handlers", ()):
            yield from _take_out(handler.body, is_config, is_unread)


def _setting_given(statement: ast.stmt) -> str:
    """Return the name that a statement assigns, or the dict in which it changes an entry; otherwise an empty text."""
    target: ast.AST | None = None
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target = statement.targets[0]
    elif isinstance(statement, ast.AnnAssign | ast.AugAssign):
        target = statement.target
    elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        function = statement.value.func
        target = function.value if isinstance(function, ast.Attribute) else None
    while isinstance(target, ast.Subscript):
        target = target.value
    return root_name(target) if isinstance(target, ast.Name) else ""
