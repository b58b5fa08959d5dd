"""The settings of a Django project, read where a module names one as a member of `django.conf.settings`. No settings module
is run: a value counts if all modules of settings that give the name give the same one."""

from __future__ import annotations

import ast
import copy
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from penstock_import.celery_calls import (
    NotLiteral,
    absolute_path,
    bound_names,
    called,
    forget,
    imported_names,
    literal,
    root_name,
    walk,
)
from penstock_import.celery_scopes import other_time
from penstock_import.celery_setting_names import is_setting
from penstock_import.celery_sources import is_whole, modules_of_django
from penstock_import.celery_times import times
from penstock_import.environment_defaults import with_defaults
from penstock_import.wanted_text import NotMapped
from penstock_import.whole_modules import gets_names

_MARKS = frozenset({"DATABASES", "INSTALLED_APPS", "MIDDLEWARE", "MIDDLEWARE_CLASSES", "ROOT_URLCONF"})
"""The names that only a module of settings gives."""
_OF_SECRETS = ("BROKER", "CREDENTIAL", "DSN", "KEY", "PASS", "PRIVATE", "SECRET", "TOKEN", "URI", "URL")
"""The parts of the names of secrets. The text of such a setting is not copied into the report."""
_OF_DJANGO = (
    "ABSOLUTE_URL_OVERRIDES ADMINS ALLOWED_HOSTS APPEND_SLASH AUTHENTICATION_BACKENDS AUTH_USER_MODEL CACHES DEBUG "
    "DEFAULT_AUTO_FIELD DEFAULT_CHARSET DEFAULT_FROM_EMAIL DEFAULT_TABLESPACE EMAIL_BACKEND EMAIL_HOST EMAIL_PORT "
    "EMAIL_SUBJECT_PREFIX EMAIL_TIMEOUT EMAIL_USE_LOCALTIME EMAIL_USE_SSL EMAIL_USE_TLS FIRST_DAY_OF_WEEK "
    "FORCE_SCRIPT_NAME INTERNAL_IPS LANGUAGES LANGUAGE_CODE LOGGING LOGIN_REDIRECT_URL LOGIN_URL MANAGERS MEDIA_ROOT "
    "MEDIA_URL MIGRATION_MODULES MONTH_DAY_FORMAT NUMBER_GROUPING PASSWORD_RESET_TIMEOUT PASSWORD_RESET_TIMEOUT_DAYS "
    "PREPEND_WWW SECRET_KEY SERVER_EMAIL SITE_ID STATIC_ROOT STATIC_URL TEST_RUNNER TIME_ZONE USE_I18N USE_L10N "
    "USE_THOUSAND_SEPARATOR USE_TZ X_FRAME_OPTIONS YEAR_MONTH_FORMAT"
)
_OWN_NAMES = frozenset(_OF_DJANGO.split())
_OWN_STARTS = (
    "CACHE_MIDDLEWARE_",
    "CSRF_",
    "DATA_UPLOAD_",
    "FILE_UPLOAD_",
    "LANGUAGE_COOKIE_",
    "SECURE_",
    "SESSION_",
)
"""The settings with a default of Django, so that the default of `getattr` never counts."""
_SETUPS = frozenset({"PeriodicTask", "add_periodic_task", "beat_schedule"})
_BUILTIN = frozenset({"abs", "bool", "float", "int", "max", "min", "round", "str"})
_PACKAGES = frozenset({"celery", "datetime", "decouple", "django", "environ", "environs", "os"})
_Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Note:
    """A line of the report about settings of Django: file, place and text, and the work by hand."""

    file: str
    node: ast.AST
    subject: str
    by_hand: str


class _Computed(Exception):
    """Raised for a value that is only known when a module of settings runs."""


@dataclass(frozen=True, slots=True)
class _Place:
    """A statement that gives a setting. `value` is None where only running would tell whether it counts."""

    file: str
    line: int
    value: ast.expr | None = None
    how: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(slots=True)
class _Doubt:
    """A statement that may give a setting another value: it takes names of a module that may not exist, runs code with
    all names, or sets a computed name."""

    file: str
    node: ast.stmt | ast.Call
    names: set[str] = field(default_factory=set)
    is_later: bool = False
    """Whether the code runs after the modules of settings."""


class DjangoSettings:
    """The settings that the modules of a source give. `modules` are all of them, by each name that they may be imported
    by. `changed` are the members that code assigns. `relevant` are the files that may have to do with Celery."""

    def __init__(
        self,
        trees: Mapping[str, ast.Module],
        modules: Mapping[str, ast.Module],
        changed: Collection[str],
        relevant: Collection[str],
    ) -> None:
        self._trees, self._changed = trees, changed
        self._modules = modules
        self._names = {id(tree): file for file, tree in trees.items()}
        self._users = {file: words for file, tree in trees.items() if (words := _words_for_settings(tree))}
        self.files = self._settings_files() if self._users else set[str]()
        self._relevant = relevant
        self._named = {word for file in relevant for word in _words_in(trees[file])}
        self._doubts = [_Doubt(file, node) for file in sorted(self.files) for node in self._doubtful(file)]
        self._doubts += [
            _Doubt(file, node, is_later=True)
            for file, words in self._users.items()
            for node in _changes_of_any(trees[file], words)
        ]
        self._values: dict[str, ast.expr | str] = {}
        self._defaults: dict[str, Note] = {}
        self.read_values: list[ast.expr] = []
        """The values in modules of settings that stand at the places that read them."""

    def read(self) -> list[Note]:
        """Replace `settings.LIMIT` by its value in each module that imports `settings` of `django.conf`: outside of
        functions, and in functions that make schedules. Return a note for each default and for each statement that may
        give another value. A member that stays has the reason with it."""
        for file, words in self._users.items():
            tree = self._trees[file]
            reader = _Reader(self, file, words, _names_of_django(tree))
            for statement in [tree] if file in self._relevant else self._constants(tree):
                reader.visit(statement)
            if reader.has_replaced:
                forget(tree)
        return [*self._defaults.values(), *self._notes_of_doubts()]

    def _constants(self, tree: ast.Module) -> Iterator[ast.stmt]:
        """Yield the assignments of a module without Celery that give a value to a name which a file with Celery has."""
        bodies = [tree.body, *(part.body for part in tree.body if isinstance(part, ast.ClassDef))]
        for statement in (part for body in bodies for part in body):
            if isinstance(statement, ast.Assign | ast.AnnAssign):
                targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
                if {
                    part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)
                } & self._named:
                    yield statement

    def value(self, name: str) -> ast.expr | str | None:
        """Return the value of a setting as an expression of literals; the reason if there is none that is certain; and
        None for a setting that no module gives."""
        if name not in self._values:
            places = [place for file in sorted(self.files) for place in self._places(file, name)]
            if not places:
                return None
            self._values[name] = self._value(name, places)
        return self._values[name]

    def default(self, file: str, node: ast.Call, name: str, value: ast.expr) -> None:
        """Note that a setting has the default that `getattr` gives."""
        about = "which no module of settings gives" if self.files else "whose module is not in the sources"
        self._defaults.setdefault(
            name,
            Note(file, node, f"the setting {name} of Django, {about}, imported with its default {ast.unparse(value)}",
                 "If the setting has another value, write the value that is in force."),
        )  # fmt: skip

    def _value(self, name: str, places: list[_Place]) -> ast.expr | str:
        if name in self._changed:
            return f"settings.{name}, which {places[0]} sets and other code changes"
        if computed := next((place for place in places if place.value is None), None):
            return f"settings.{name}, which {computed} gives {computed.how}"
        values: list[tuple[_Place, ast.expr]] = []
        for place in places:
            assert place.value is not None
            try:
                values.append((place, self._plain(place.file, place.value, frozenset({(place.file, name)}))))
            except _Computed:
                text = ast.unparse(place.value)
                source = text if len(text) < 60 and not _is_secret(name) else "it calls code"
                return f"settings.{name}, which {place} computes: {source}"
        first, value = values[0]
        for other, further in values[1:]:
            if ast.dump(further) != ast.dump(value):
                pair = (
                    f" is given at {first} and {other};"
                    if _is_secret(name)
                    else f" is {ast.unparse(value)} at {first} and {ast.unparse(further)} at {other};"
                )
                return f"settings.{name}, which{pair} only running the code would tell which value counts"
        if _is_secret(name) and isinstance(value, ast.Constant) and isinstance(value.value, str):
            return f"settings.{name}, which {first} gives"
        for file in sorted(self.files):
            if (later := self._later_import(file, name)) is not None:
                return f"settings.{name}, which {ast.unparse(later)} in {file}:{later.lineno} may change"
        for doubt in self._doubts:
            is_later = doubt.is_later or isinstance(doubt.node, _Function)  # any statement may call it
            if is_later or not self._is_given_after(doubt.file, doubt.node, name):
                doubt.names.add(name)
        if not is_setting(name):  # one of Celery counts by itself, whatever reads it besides
            self.read_values += [place.value for place in places if place.value is not None]
        return value

    def _plain(self, file: str, node: ast.expr, around: frozenset[tuple[str, str]]) -> ast.expr:
        """Return a value without names of its module. Raises _Computed for anything but literals, sums of them, times,
        and variables of the environment with a default."""
        if other_time(self._trees[file], node) is not None:
            raise _Computed
        plain = _Plain(self, file, around).visit(copy.deepcopy(node))
        assert isinstance(plain, ast.expr)
        certain, _ = with_defaults(plain, {})
        with suppress(NotLiteral):
            if isinstance(literal(certain), bool | int | float | str | None):
                return plain
        try:
            times(certain)
        except (NotLiteral, NotMapped):
            raise _Computed from None
        return plain

    def name(self, file: str, name: str, around: frozenset[tuple[str, str]]) -> ast.expr | None:
        """Return the value of a name in a module of settings; None for a name that a package or Python itself gives.
        Raises _Computed if only running would tell."""
        if (file, name) in around or len(around) > 20:
            raise _Computed
        tree = self._trees[file]
        if not bound_names(tree)[name]:
            givers = [
                other
                for other in self._starred(file)
                if other is not None and bound_names(self._trees[other])[name]
            ]
            if len(givers) > 1 or (not givers and None in self._starred(file)):
                raise _Computed
            if givers:
                return self.name(givers[0], name, around | {(file, name)})
            if name in _BUILTIN:
                return None
            raise _Computed
        paths = dict(imported_names(tree))
        if name in paths and bound_names(tree)[name] == 1 and paths[name].partition(".")[0] in _PACKAGES:
            return None
        if self._later_import(file, name, is_any=True) is not None:
            raise _Computed
        places = list(self._places(file, name))
        if len(places) != 1 or places[0].value is None or bound_names(tree)[name] != 1:
            raise _Computed
        return self._plain(places[0].file, places[0].value, around | {(file, name)})

    def environment_call(self, file: str, call: ast.Call) -> ast.Call:
        """Return a call of an object `Env` as that of the name `env`, with the default that its class was given."""
        root = root_name(call.func)
        places = list(self._places(file, root)) if bound_names(self._trees[file])[root] == 1 else []
        maker = places[0].value if places else None
        if not isinstance(maker, ast.Call) or called(maker) not in ("Env", "FileAwareEnv"):
            return call
        for part in ast.walk(call.func):
            if isinstance(part, ast.Name):
                part.id = "env"
        words = {word.arg for word in call.keywords}
        scheme = {word.arg: word.value for word in maker.keywords}
        variable = getattr(call.args[0], "value", None) if len(call.args) == 1 else None
        pair = scheme.get(variable)
        if (
            isinstance(call.func, ast.Name)
            and not words
            and isinstance(pair, ast.Tuple)
            and len(pair.elts) == 2
        ):
            call.keywords = [ast.keyword("default", copy.deepcopy(pair.elts[1]))]
        return call

    def _places(self, file: str, name: str) -> Iterator[_Place]:
        """Yield the statement of a module that gives a name last, and each that may give it under a condition."""
        tree = self._trees[file]
        count = bound_names(tree)[name]
        if not count:
            return
        top = [
            (statement.lineno, statement.value)
            for statement in tree.body
            if isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value is not None
            for target in (statement.targets if isinstance(statement, ast.Assign) else [statement.target])
            if isinstance(target, ast.Name) and target.id == name
        ]
        for statement in tree.body:
            if isinstance(statement, ast.ImportFrom):
                for alias in statement.names:
                    source = self._module(file, statement)
                    if (alias.asname or alias.name) == name and source is not None and count == 1:
                        yield from (
                            list(self._places(source, alias.name))
                            or [_Place(file, statement.lineno, how="by an import")]
                        )
                        return
        if len(top) < count:
            line, how = next(_other_bindings(tree, name), (1, "in another way"))
            yield _Place(file, line, how=how)
        elif top:
            yield _Place(file, *top[-1])

    def _module(self, file: str, statement: ast.ImportFrom) -> str | None:
        """Return the file of the module that a statement imports from."""
        path = ("." if statement.level else "") + absolute_path(file, statement)
        tree = self._modules.get(path)
        return self._names.get(id(tree)) if tree is not None else None

    def _starred(self, file: str) -> list[str | None]:
        """Return the files of which a module takes all names; None for a module that no read file has."""
        return [
            self._module(file, node)
            for node in walk(self._trees[file])
            if isinstance(node, ast.ImportFrom) and any(alias.name == "*" for alias in node.names)
        ]

    def _settings_files(self) -> set[str]:
        """Return the modules that `DJANGO_SETTINGS_MODULE` names, and those that give a name of settings. Modules that take
        all names of such a module count, and those that it takes all names of."""
        named = {text for tree in self._trees.values() for _, text in modules_of_django(tree)}
        files = {file for file in self._trees for path in named if is_whole(file, path)}
        files |= {
            file
            for file, tree in self._trees.items()
            if any(
                isinstance(target, ast.Name) and target.id in _MARKS
                for statement in tree.body
                if isinstance(statement, ast.Assign)
                for target in statement.targets
            )
        }
        sources = {file: {part for part in self._starred(file) if part is not None} for file in self._trees}
        while True:
            further = {part for file in files for part in sources[file]}
            further |= {file for file, parts in sources.items() if parts & files}
            if further <= files:
                return files
            files |= further

    def _doubtful(self, file: str) -> Iterator[ast.stmt]:
        """Yield the statements of a module that may give any name a value: an import of all names of a module that may not
        exist, and a call with all names of the module."""
        tree = self._trees[file]
        for statement in tree.body:
            for part in ast.walk(statement):
                if gets_names(part):
                    yield statement
                    break
                if (
                    isinstance(part, ast.ImportFrom)
                    and part is not statement
                    and any(alias.name == "*" for alias in part.names)
                    and self._module(file, part) is None
                ):
                    yield part
                    break

    def _later_import(self, file: str, name: str, is_any: bool = False) -> ast.ImportFrom | None:
        """Return the import of all names of another package after which a module does not give the name again. `is_any`:
        imports of modules of the sources count, too."""
        for statement in self._trees[file].body:
            if isinstance(statement, ast.ImportFrom) and any(alias.name == "*" for alias in statement.names):
                source = self._module(file, statement)
                gives = source is None or (is_any and bound_names(self._trees[source])[name] > 0)
                if gives and not self._is_given_after(file, statement, name):
                    return statement
        return None

    def _is_given_after(self, file: str, statement: ast.stmt | ast.Call, name: str) -> bool:
        for later in self._trees[file].body:
            if later.lineno <= statement.lineno:
                continue
            if isinstance(later, ast.Assign | ast.AnnAssign):
                targets = later.targets if isinstance(later, ast.Assign) else [later.target]
                if any(isinstance(target, ast.Name) and target.id == name for target in targets):
                    return True
            elif isinstance(later, ast.ImportFrom) and any(alias.name == "*" for alias in later.names):
                source = self._module(file, later)
                if source is not None and any(True for _ in self._places(source, name)):
                    return True
        return False

    def _notes_of_doubts(self) -> Iterator[Note]:
        for doubt in self._doubts:
            if doubt.names:
                text = ast.unparse(doubt.node).partition("\n")[0]
                names = ", ".join(sorted(doubt.names))
                yield Note(
                    doubt.file,
                    doubt.node,
                    f"{text}, which may change {names}",
                    "The values in the sources are imported: if it gives others, write the values that are in force.",
                )


class _Plain(ast.NodeTransformer):
    """The replacement of the names of a module of settings by their values, but for the names of functions."""

    def __init__(self, settings: DjangoSettings, file: str, around: frozenset[tuple[str, str]]) -> None:
        self._settings, self._file, self._around = settings, file, around

    def visit_Name(self, node: ast.Name) -> ast.expr:
        value = self._settings.name(self._file, node.id, self._around)
        return node if value is None else copy.deepcopy(value)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        function = node.func
        if isinstance(function, ast.Attribute) and function.attr == "total_seconds":
            function.value = self.visit(function.value)
        node = self._settings.environment_call(self._file, node)
        node.args = [self.visit(argument) for argument in node.args]
        for word in node.keywords:
            word.value = self.visit(word.value)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        raise _Computed

    def visit_Lambda(self, node: ast.Lambda) -> ast.expr:
        raise _Computed


class _Reader(ast.NodeTransformer):
    """The replacement of settings by their values in one module."""

    def __init__(
        self, settings: DjangoSettings, file: str, words: Collection[str], of_django: Collection[str]
    ) -> None:
        self._settings, self._file, self._words = settings, file, words
        self._of_django = of_django
        self.has_replaced = False

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return self._function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        return self._function(node)

    def _function(self, node: _Function) -> ast.AST:
        node.decorator_list = [self.visit(decorator) for decorator in node.decorator_list]
        texts = {getattr(part, "attr", getattr(part, "id", "")) for part in ast.walk(node)}
        if texts & _SETUPS:
            node.body = [self.visit(statement) for statement in node.body]
            return node
        for part in node.body:
            for inner in ast.walk(part):
                if isinstance(inner, _Function):
                    inner.decorator_list = [self.visit(decorator) for decorator in inner.decorator_list]
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        if isinstance(node.ctx, ast.Load) and ast.unparse(node.value) in self._words and node.attr.isupper():
            return self._replaced(node, node.attr, None)
        self.generic_visit(node)
        return node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        if root_name(node.func) in self._of_django:
            return node  # a field of a model and a form have no option of Celery
        self.generic_visit(node)
        is_getattr = isinstance(node.func, ast.Name) and node.func.id == "getattr" and not node.keywords
        if is_getattr and len(node.args) in (2, 3) and ast.unparse(node.args[0]) in self._words:
            name = node.args[1].value if isinstance(node.args[1], ast.Constant) else None
            if isinstance(name, str) and name.isupper():
                return self._replaced(node, name, node.args[2] if len(node.args) == 3 else None)
        return node

    def _replaced(self, node: ast.expr, name: str, default: ast.expr | None) -> ast.expr:
        value = self._settings.value(name)
        if (
            value is None
            and default is not None
            and isinstance(node, ast.Call)
            and not _is_of_django(name)
            and _is_certain(default)
        ):
            self._settings.default(self._file, node, name, default)
            value = default
        if isinstance(value, ast.expr):
            self.has_replaced = True
            copied = copy.deepcopy(value)
            for part in ast.walk(copied):
                ast.copy_location(part, node)
            return copied
        node.__dict__["reason"] = (
            value or f"{ast.unparse(node)}, which no module of settings in the sources gives"
        )
        return node


def _is_certain(node: ast.expr) -> bool:
    """Return whether an expression is a literal or a time."""
    with suppress(NotLiteral):
        return isinstance(literal(node), bool | int | float | str | None)
    with suppress(NotLiteral, NotMapped):
        return bool(times(node))
    return False


def _is_of_django(name: str) -> bool:
    return name in _OWN_NAMES or name.startswith(_OWN_STARTS)


def _is_secret(name: str) -> bool:
    return any(part in name for part in _OF_SECRETS)


def _words_in(tree: ast.Module) -> Iterator[str]:
    """Yield each name of a module that it does not assign, and each member."""
    for node in walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.alias):
            yield node.name.rpartition(".")[2]


def _names_of_django(tree: ast.Module) -> set[str]:
    """Return the names that a module imports from parts of Django with nothing of Celery."""
    parts = (
        "django.contrib",
        "django.core",
        "django.db",
        "django.forms",
        "django.http",
        "django.urls",
        "django.views",
    )
    return {
        name
        for name, path in imported_names(tree)
        if f"{path}.".startswith(tuple(f"{part}." for part in parts))
    }


def _words_for_settings(tree: ast.Module) -> set[str]:
    """Return the texts by which a module names `django.conf.settings`, if nothing else in the module has that name."""
    bound = bound_names(tree)
    words: dict[str, list[str]] = {}
    for node in walk(tree):
        if isinstance(node, ast.ImportFrom) and not node.level:
            for alias in node.names:
                path = f"{node.module}.{alias.name}"
                if path in ("django.conf.settings", "django.conf"):
                    own = alias.asname or alias.name
                    words.setdefault(own, []).append(
                        own if path == "django.conf.settings" else f"{own}.settings"
                    )
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.partition(".")[0] == "django" and alias.asname is None:
                    words.setdefault("django", []).append("django.conf.settings")
    return {texts[0] for name, texts in words.items() if len(texts) == bound[name] and len(set(texts)) == 1}


def _changes_of_any(tree: ast.Module, words: Collection[str]) -> Iterator[ast.Call]:
    """Yield each call that may set any name of `django.conf.settings`: `setattr` with a computed name, and `configure`."""
    for node in walk(tree):
        if not isinstance(node, ast.Call):
            continue
        is_set = (
            called(node) == "setattr" and len(node.args) == 3 and not isinstance(node.args[1], ast.Constant)
        )
        if is_set and ast.unparse(node.args[0]) in words:
            yield node
        is_configured = called(node) == "configure" and bool(node.args or node.keywords)
        if is_configured and isinstance(node.func, ast.Attribute) and ast.unparse(node.func.value) in words:
            yield node


def _other_bindings(tree: ast.Module, name: str) -> Iterator[tuple[int, str]]:
    """Yield the line of each statement that gives a name otherwise than by a plain assignment, and how it does so."""
    for statement in tree.body:
        for part in ast.walk(statement):
            is_name = isinstance(part, ast.Name) and part.id == name and not isinstance(part.ctx, ast.Load)
            if is_name and not isinstance(statement, ast.Assign | ast.AnnAssign):
                kind = isinstance(statement, ast.If | ast.Try | ast.For | ast.While | ast.With | ast.Match)
                in_class = isinstance(statement, ast.ClassDef)
                how = "under a condition" if kind else "in a class" if in_class else "in another way"
                yield getattr(part, "lineno", 1), how
