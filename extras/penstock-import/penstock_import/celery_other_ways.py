"""Settings that a module or a class of settings gives in another way than by an assignment. Each becomes a gap."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from penstock_import.celery_calls import called, walk
from penstock_import.celery_scopes import parents_of
from penstock_import.celery_setting_names import OF_ANY, advice_of, is_known, is_setting
from penstock_import.celery_uses import Use
from penstock_import.celery_values import is_namespace
from penstock_import.whole_modules import is_given_module, is_module

_ANY_NAME = frozenset({"__getattr__", "__getattribute__"})
_BY_NAME = frozenset({"beat_schedule", "task_routes"})
"""The settings that are read under these names in any module."""
_NOT_SETTINGS = frozenset({"include"})
"""The names that a module of settings imports of other packages."""


def uses_in_other_ways(
    tree: ast.Module, is_config: bool, has_settings: bool, mapped_imports: Collection[int]
) -> Iterator[Use]:
    """Yield each place that gives a setting by an import, a property, a loop, several targets or `del`, and each that may
    give any setting. With `is_config`, plain names in the module are settings. With `has_settings`, the module gives some
    settings, of whatever name. `mapped_imports` are the imports from modules of settings that are read."""
    parents = parents_of(tree)
    for node in walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            for alias in node.names:
                name = alias.asname or alias.name
                is_same = not alias.asname or alias.asname == alias.name
                is_read = is_same and (name.isupper() or name in _BY_NAME or id(node) in mapped_imports)
                if not is_read and _is_setting(name, is_config):
                    yield Use(
                        node, f"the setting {name}, which is imported: {ast.unparse(node)}", advice_of(name)
                    )
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            if not isinstance(parents.get(id(node)), ast.FunctionDef | ast.AsyncFunctionDef):
                if is_config and node.name in _ANY_NAME:
                    yield Use(node, f"{node.name} of the settings, which may give any setting", OF_ANY)
                elif node.decorator_list and _is_setting(node.name, is_config):
                    yield Use(node, f"the setting {node.name}, which a function gives", advice_of(node.name))
        elif isinstance(node, ast.ClassDef):
            words = [word for word in node.keywords if word.arg == "metaclass"]
            if is_config and words:
                text = (
                    f"the metaclass {ast.unparse(words[0].value)} of {node.name}, which may give any setting"
                )
                yield Use(words[0].value, text, OF_ANY)
        elif isinstance(node, ast.Call):
            yield from _of_call(node, is_config, is_config or has_settings)
        else:
            yield from _of_targets(node, is_config)


def _is_setting(name: str, is_config: bool) -> bool:
    return is_setting(name, plain=is_config) and is_known(name) and name not in _NOT_SETTINGS


def _of_call(node: ast.Call, is_config: bool, has_settings: bool) -> Iterator[Use]:
    function = node.func
    if not has_settings:
        return
    if isinstance(function, ast.Attribute) and function.attr in ("update", "setdefault", "__setitem__"):
        if any(is_module(part) for part in ast.walk(function.value)) or is_namespace(function.value):
            yield Use(node, f"{ast.unparse(node)}, which may give any setting", OF_ANY)
    elif is_config and called(node) in ("setattr", "__setattr__") and isinstance(function, ast.Name):
        key = node.args[1] if len(node.args) > 1 else None
        name = key.value if isinstance(key, ast.Constant) else None
        if name is None:
            yield Use(node, f"{ast.unparse(node)}, which may give any setting", OF_ANY)
        elif isinstance(name, str) and _is_setting(name, is_config):
            yield Use(node, f"{ast.unparse(node)}, which sets a setting", advice_of(name))
    elif is_given_module(node):
        yield Use(node, f"{ast.unparse(node)}, which may give any setting", OF_ANY)


def _of_targets(node: ast.AST, is_config: bool) -> Iterator[Use]:
    """Yield the settings in several targets, of a loop, of `with`, of `:=` and of `del`."""
    targets: list[ast.expr] = []
    if isinstance(node, ast.Assign):
        targets = [part for part in node.targets if not isinstance(part, ast.Name)]
    elif isinstance(node, ast.For | ast.AsyncFor | ast.NamedExpr):
        targets = [node.target]
    elif isinstance(node, ast.withitem) and node.optional_vars is not None:
        targets = [node.optional_vars]
    elif isinstance(node, ast.Delete):
        targets = node.targets
    for target in targets:
        for part in _names(target):
            if _is_setting(part.id, is_config):
                yield Use(part, f"the setting {part.id}, which {_way(node)}", advice_of(part.id))


def _names(target: ast.expr) -> Iterator[ast.Name]:
    if isinstance(target, ast.Name):
        yield target
    elif isinstance(target, ast.Tuple | ast.List):
        for part in target.elts:
            yield from _names(part)
    elif isinstance(target, ast.Starred):
        yield from _names(target.value)


def _way(node: ast.AST) -> str:
    if isinstance(node, ast.Assign):
        return "shares its assignment with other names"
    if isinstance(node, ast.Delete):
        return "`del` removes"
    return "is assigned within another statement"
