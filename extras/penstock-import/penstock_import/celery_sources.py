"""The modules and classes that an application reads as its settings. Some are only known when the code runs."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from penstock_import.celery_calls import (
    absolute_path,
    bound_names,
    called,
    forget,
    imported_names,
    namespace_of,
    walk,
)
from penstock_import.celery_members import constants_of
from penstock_import.celery_scopes import bindings_at, local_statements
from penstock_import.celery_setting_names import is_setting
from penstock_import.celery_uses import settings_within
from penstock_import.environment_defaults import with_defaults

_OF_DJANGO = ("django.conf:settings", "django.conf.settings")
"""The settings of a Django project. Their names are in capitals, so they count in any file."""


@dataclass(slots=True)
class Sources:
    """The sources of settings of all applications."""

    files: set[str] = field(default_factory=set)
    """The files with plain names that are settings."""
    unknown: list[tuple[str, ast.Call | ast.Attribute, str]] = field(default_factory=list)
    """The sources that may not be a module or a class of the read files: file, place and text of each."""
    variables: list[tuple[str, ast.expr]] = field(default_factory=list)
    """The sources that an environment variable names, with a default."""
    paths: set[str] = field(default_factory=set)
    """The paths of the modules and classes that are settings, without those of Django."""
    is_django: bool = False
    """True if an application reads the settings of a Django project."""
    missing: list[tuple[str, ast.AST, str]] = field(default_factory=list)
    """The modules of settings of Django that are in no file: file, place and path of each."""


def sources_of(trees: Mapping[str, ast.Module]) -> Sources:
    """Return the sources that calls such as `config_from_object` give. If a source is unknown, each file counts that
    gives a setting by a plain name."""
    sources = Sources()
    for file, tree in trees.items():
        for place, value in _arguments(tree):
            if value is not None and _is_read_dict(tree, value):
                continue  # each of its items is read as a setting
            paths = _paths(file, tree, value, sources, trees) if value is not None else None
            is_django = paths is not None and all(path in _OF_DJANGO for path in paths)
            if is_django:
                sources.is_django = True
                continue
            files = {name for path in paths or () for name in trees if _is_module(name, path)}
            sources.paths |= {path for path in paths or () if any(_is_module(name, path) for name in trees)}
            sources.files |= files  # even with a prefix, Celery also reads the names without it
            if not files or not all(_is_settled(path, trees) for path in paths or ()):
                sources.unknown.append((file, place, ast.unparse(value) if value is not None else ""))
    if sources.unknown:
        sources.files |= {file for file, tree in trees.items() if _has_plain_settings(tree)}
    if sources.is_django:
        sources.missing = list(_missing_modules(trees))
    return sources


def _is_read_dict(tree: ast.Module, value: ast.expr) -> bool:
    """Return whether a source of settings is a dict with literal keys of which the import reads each setting. It may have a
    name that nothing else reads."""
    if isinstance(value, ast.Name):
        value = _read_once(tree, value.id) or value
    if isinstance(value, ast.Dict):
        keys = [key.value if isinstance(key, ast.Constant) else None for key in value.keys]
    elif isinstance(value, ast.Call) and getattr(value.func, "id", "") == "dict" and not value.args:
        keys = [word.arg for word in value.keywords]
    else:
        return False
    settings = {str(key) for key in keys if is_setting(str(key), plain=True)}
    return None not in keys and settings == {name for name, _ in settings_within(value)}


def _read_once(tree: ast.Module, name: str) -> ast.expr | None:
    """Return the value that one statement of a module gives a name, if one other place reads the name."""
    values = [
        part.value
        for part in tree.body
        if isinstance(part, ast.Assign) and any(getattr(target, "id", "") == name for target in part.targets)
    ]
    reads = [
        part for part in walk(tree)
        if isinstance(part, ast.Name) and part.id == name and isinstance(part.ctx, ast.Load)
    ]  # fmt: skip
    return values[0] if len(values) == len(reads) == bound_names(tree)[name] == 1 else None


def _missing_modules(trees: Mapping[str, ast.Module]) -> Iterator[tuple[str, ast.AST, str]]:
    """Yield the first place of each module of settings of Django that no read file is."""
    paths = set[str]()
    for file, tree in trees.items():
        for place, path in modules_of_django(tree):
            if path not in paths and not any(is_whole(other, path) for other in trees):
                paths.add(path)
                yield file, place, path


class _Reads(ast.NodeTransformer):
    def __init__(self, names: Collection[str]) -> None:
        self._names = names

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        is_conf = isinstance(node.value, ast.Attribute) and node.value.attr == "conf"
        if is_conf and isinstance(node.ctx, ast.Load) and node.attr in self._names:
            return ast.copy_location(ast.Name(node.attr, ast.Load()), node)
        return node


def read_configuration(trees: Mapping[str, ast.Module], sources: Sources) -> None:
    """Replace `app.conf.CELERY_BEAT_SCHEDULE` by that name of the module which the application reads its settings of,
    where a module stores it as a setting: `app.conf.beat_schedule = app.conf.CELERY_BEAT_SCHEDULE`.

    Without a namespace, Celery returns each name of that module as it stands there."""
    calls = [node for tree in trees.values() for node in walk(tree) if isinstance(node, ast.Call)]
    namespaces = {namespace_of(call) for call in calls if called(call) == "config_from_object"}
    if namespaces != {""} or sources.unknown:
        return
    names = {name for tree in trees.values() for name in _names_given_once(tree) if name.isupper()}
    for tree in trees.values():
        statements = [
            statement
            for statement in walk(tree)
            if isinstance(statement, ast.Assign)
            and len(statement.targets) == 1
            and isinstance(target := statement.targets[0], ast.Attribute)
            and isinstance(target.value, ast.Attribute)
            and target.value.attr == "conf"
        ]
        for statement in statements:
            statement.value = _Reads(names).visit(statement.value)
        if statements:
            forget(tree)


def _names_given_once(tree: ast.Module) -> set[str]:
    """Return the names that one statement at the top of a module gives a value."""
    bound = bound_names(tree)
    return {
        target.id
        for statement in tree.body
        if isinstance(statement, ast.Assign)
        for target in statement.targets
        if isinstance(target, ast.Name) and bound[target.id] == 1
    }


def _arguments(tree: ast.Module) -> Iterator[tuple[ast.Call | ast.Attribute, ast.expr | None]]:
    """Yield each place of a module that gives an application a source of settings, and the source. The source is None
    if the place does not contain it."""
    methods = set()
    for node in walk(tree):
        if not isinstance(node, ast.Call):
            continue
        function, words = called(node), {word.arg: word.value for word in node.keywords}
        if function == "config_from_object":
            methods.add(id(node.func))
            source = node.args[0] if node.args else words.get("obj")
            yield node, source
        elif function == "config_from_envvar":
            yield node, None
        elif function == "Celery" and "config_source" in words:
            yield node, words["config_source"]
    for node in walk(tree):
        if isinstance(node, ast.Attribute) and node.attr == "config_from_object" and id(node) not in methods:
            yield node, None


def _paths(
    file: str, tree: ast.Module, value: ast.expr, sources: Sources, trees: Mapping[str, ast.Module]
) -> list[str] | None:
    """Return the paths of the modules or classes that a source of settings may be; None where only running would tell."""
    constants = constants_of(tree)
    named = constants.get(value.id) if isinstance(value, ast.Name) else None
    value = named if named is not None else value
    if (own := _of_own_name(file, value)) is not None:
        return [own]
    if isinstance(value, ast.Call) and called(value) == "import_module" and len(value.args) == 1:
        value = value.args[0]
    plain, defaults = with_defaults(value, constants)
    if isinstance(plain, ast.Name):
        plain = constants.get(plain.id, plain)
    if isinstance(plain, ast.Constant) and isinstance(plain.value, str):
        if defaults:
            sources.variables.append((file, value))
        return [plain.value if plain.value in _OF_DJANGO else plain.value.replace(":", ".")]
    if isinstance(plain, ast.Call) and not plain.args and not plain.keywords:
        plain = plain.func  # the configuration is an instance of a class
        if not _is_class(plain, trees):
            return None
    if not isinstance(plain, ast.Name | ast.Attribute):
        return None
    written = value.func if isinstance(value, ast.Call) else value
    if isinstance(written, ast.Name | ast.Attribute) and ast.unparse(written) == ast.unparse(plain):
        plain = written  # a copy has no place in the module
    return _paths_of_name(file, tree, plain, trees)


def _of_own_name(file: str, value: ast.expr) -> str | None:
    """Return the path of a module that names itself by `__name__`, also with a class behind it; None for any other value."""
    parts: list[ast.expr] = [value]
    if isinstance(value, ast.JoinedStr):
        parts = [part.value if isinstance(part, ast.FormattedValue) else part for part in value.values]
    elif isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add):
        parts = [value.left, value.right]
    if not isinstance(parts[0], ast.Name) or parts[0].id != "__name__":
        return None
    texts = [str(part.value) for part in parts[1:] if isinstance(part, ast.Constant)]
    if len(texts) != len(parts) - 1:
        return None
    stem = file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    return (stem + "".join(texts)).replace(":", ".")


def _paths_of_name(
    file: str, tree: ast.Module, node: ast.Name | ast.Attribute, trees: Mapping[str, ast.Module]
) -> list[str] | None:
    """Return the paths of the module or class that a name may mean."""
    root, _, below = ast.unparse(node).partition(".")
    own = file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    imported = [
        f"{absolute_path(file, part)}.{alias.name}".lstrip(".")
        for part in walk(tree)
        if isinstance(part, ast.ImportFrom)
        for alias in part.names
        if (alias.asname or alias.name) == root
    ]
    imported += [path for part in walk(tree) if isinstance(part, ast.Import)
                 for name, path in imported_names(part) if name == root]  # fmt: skip
    bindings = bindings_at(tree, node, root)
    classes = [part for part in bindings if isinstance(part, ast.ClassDef)]
    statements = [part for part in bindings if isinstance(part, ast.Import | ast.ImportFrom)]
    is_single = len(classes) + len(statements) == len(bindings) and not (
        len(classes) > 1 or (classes and statements)
    )
    if not root.isidentifier() or not is_single or len(imported) != len(statements):
        return None
    paths = imported + [f"{own}.{root}"] * len(classes)
    paths = [f"{path}.{below}" if below else path for path in paths]
    if any(path in _OF_DJANGO for path in paths):
        return paths
    is_module = all(any(is_whole(name, path) for name in trees) for path in paths)
    return paths if paths and (is_module or _is_class(node, trees, paths)) else None


def _is_class(node: ast.expr, trees: Mapping[str, ast.Module], paths: list[str] | None = None) -> bool:
    """Return whether an expression names a class of the sources by its own name, and nothing else there has that name."""
    names = {path.rpartition(".")[2] for path in paths} if paths else {ast.unparse(node).rpartition(".")[2]}
    kinds = [
        isinstance(part, ast.ClassDef)
        for tree in trees.values()
        for part in walk(tree)
        if isinstance(part, ast.ClassDef | ast.FunctionDef) and part.name in names
    ]
    return bool(kinds) and all(kinds)


def _is_settled(path: str, trees: Mapping[str, ast.Module]) -> bool:
    """Return whether a path is that of a module of the sources, or ends in the name of a class of the sources. The path of
    a module that no read file has is settled, too."""
    module, _, name = path.rpartition(".")
    if any(is_whole(file, path) for file in trees) or not any(
        is_whole(file, module) for file in trees if module
    ):
        return True
    return any(
        isinstance(node, ast.ClassDef) and node.name == name for tree in trees.values() for node in walk(tree)
    )


def modules_of_django(tree: ast.Module) -> Iterator[tuple[ast.AST, str]]:
    """Yield each place where a module gives `DJANGO_SETTINGS_MODULE` a text, and the text."""
    for node in walk(tree):
        key: ast.expr | None = None
        value: ast.expr | None = None
        if isinstance(node, ast.Call) and len(node.args) == 2:
            key, value = node.args
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
            key, value = node.targets[0].slice, node.value
        if getattr(key, "value", None) == "DJANGO_SETTINGS_MODULE" and isinstance(value, ast.Constant):
            yield node, str(value.value)


def is_whole(file: str, path: str) -> bool:
    """Return whether a file is the module with this path."""
    stem = file.removesuffix(".py").replace("/", ".").removesuffix(".__init__")
    return stem == path or stem.endswith(f".{path}") or path.endswith(f".{stem}")


def _is_module(file: str, path: str) -> bool:
    """Return whether a file is the module of a path, or that of a class at its end."""
    return any(is_whole(file, name) for name in (path, path.rpartition(".")[0]) if name)


def _has_plain_settings(tree: ast.Module) -> bool:
    """Return whether a module, or a class of it, gives a setting by its present name."""
    local = local_statements(tree)
    return any(
        isinstance(target, ast.Name) and target.id.islower() and is_setting(target.id, plain=True)
        for statement in walk(tree)
        if id(statement) not in local
        for target in _targets(statement)
    )


def _targets(statement: ast.AST) -> list[ast.expr]:
    if isinstance(statement, ast.Assign):
        return statement.targets
    return [statement.target] if isinstance(statement, ast.AnnAssign) else []
