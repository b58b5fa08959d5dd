"""The conversion of a Celery application to a Penstock pack: its tasks, schedules, routes, retries and canvases, read
from the source."""

from __future__ import annotations

import ast
import re
import tokenize
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from sys import stdlib_module_names, version_info
from typing import Any, TypeGuard

from penstock.errors import NotFound
from penstock_import.celery_aliases import uses_by_name, with_plain_configuration
from penstock_import.celery_calls import (
    NotLiteral,
    Signature,
    absolute_path,
    bound_names,
    called,
    carried_types,
    children,
    imported_names,
    literal,
    may_make_task,
    once,
    root_name,
    seconds,
    sent,
    signature_of,
    task_decorator,
    text_of,
    walk,
    with_constants,
    with_known_conditions,
    with_literal_dicts,
    with_plain_names,
)
from penstock_import.celery_canvas import Canvas, is_canvas
from penstock_import.celery_classes import task_classes
from penstock_import.celery_collected import collected, signature_named, values_at_line
from penstock_import.celery_command_calls import Command, calls_of_commands
from penstock_import.celery_commands import (
    advice,
    commands_of_code,
    limits_in,
    names_within,
    pool_of,
    variables_of_code,
)
from penstock_import.celery_computed import write_out_schedules
from penstock_import.celery_copies import write_out_copies
from penstock_import.celery_django_starts import installed_applications, starts_of_django
from penstock_import.celery_endings import BY_HAND as BY_HAND_OF_ENDING
from penstock_import.celery_endings import endings
from penstock_import.celery_entries import Entry, conditional, periodic_tasks, rows
from penstock_import.celery_errors import ErrorNames
from penstock_import.celery_flow import Flow
from penstock_import.celery_left_out import drop_replaced_sources, drop_unread_settings
from penstock_import.celery_makers import Applications, last_name, maker_of, task_makers
from penstock_import.celery_members import (
    assigned_members,
    constants_of,
    note_overwritten,
    read_members,
    read_own_constants,
)
from penstock_import.celery_names import ModuleNames
from penstock_import.celery_options import (
    BEAT_BY_HAND,
    OF_BROKER,
    RETRY_OPTIONS,
    ROUTE_BY_HAND,
    SEE_ENTRY,
    SEE_ROUTE,
    SEE_SENDING,
    SENDING_BY_HAND,
    TASK_BY_HAND,
    TASK_OPTIONS,
    is_amount,
    of_unknown,
    rate_limit,
    retry_of,
    says_nothing,
    start_options,
)
from penstock_import.celery_other_files import OtherFiles, other_files, script_calls
from penstock_import.celery_other_systems import OtherSystems
from penstock_import.celery_other_ways import uses_in_other_ways
from penstock_import.celery_owners import Owners, belong_apart
from penstock_import.celery_parts import PART, Parts
from penstock_import.celery_pools import mark_pools
from penstock_import.celery_queues import CELERYS_DEFAULT, Queues, has_own_exchanges, queue_names
from penstock_import.celery_retries import Retries
from penstock_import.celery_routes import RouteKey, deciding_key
from penstock_import.celery_scopes import (
    bindings_at,
    change_of,
    condition_of,
    local_statements,
    mark_other_times,
    names_bound_otherwise,
    other_time,
    parents_of,
)
from penstock_import.celery_servers import reads_of_servers
from penstock_import.celery_setting_names import (
    OF_ANY,
    OF_UTC,
    OF_ZONE,
    RATES_OFF,
    ZONE_OF_DJANGO,
    ZONES,
    is_known,
    is_setting,
    today,
)
from penstock_import.celery_settings import CelerySettings, unread_names
from penstock_import.celery_sources import Sources, read_configuration, sources_of
from penstock_import.celery_times import is_in_step, is_true, times
from penstock_import.celery_unread import stub_of_unread
from penstock_import.celery_uses import (
    OF_MEMBER,
    SIGNATURE_BY_HAND,
    Use,
    gives_any_setting,
    setting_of,
    settings_within,
    uses,
)
from penstock_import.django_settings import DjangoSettings
from penstock_import.environment_defaults import with_defaults, with_defaults_of_schemes
from penstock_import.module_paths import ModulePaths
from penstock_import.project import Project, bounded
from penstock_import.report import Report
from penstock_import.settings_variants import Variants
from penstock_import.wanted_text import NotMapped

_MAX_SHOWN = 160
_UNREAD = (
    "The import omits it, since no `config_from_object` of the application reads this name. With a namespace, Celery 5.7 "
    "also reads old names, and earlier versions do not. If it is in force, write it into the actions, or as a schedule."
)
_MAPPED_OPTIONS = frozenset({"acks_late", "queue", "rate_limit", "reject_on_worker_lost", "time_limit"})
_OF_DJANGO = frozenset({"DATABASES", "INSTALLED_APPS", "MIDDLEWARE", "ROOT_URLCONF", "SECRET_KEY"})
"""Settings that only a module of settings of Django gives."""
_WITHOUT_SETTINGS = stdlib_module_names | {
    "configurations",
    "django_cte",
    "mptt",
    "pydantic",
    "pydantic_settings",
    "sqlalchemy",
}
"""Packages with base classes that give no setting of Celery."""
_OF_PYTHON = re.compile(rb"#!.*\bpython")
"""A pattern for the first line of a script."""
_OF_TESTS = re.compile(
    r"@(?:\w+\.)*(?:shared_)?task\b|\bCelery\(|\b(?:CELERY_?BEAT_SCHEDULE|beat_schedule)\b"
)
_RELEVANT = re.compile(
    r"(?i)celery|kombu|broker|billiard|task|\.delay\(|apply_async|\.si\(|beat_schedule|\bconf\.|rate_limit|time_limit"
    r"|acks_late|max_retries|on_worker_lost|autoretry_for"
)


_OF_PATTERNS = re.compile(r"[][*?^$|+(){}\\]")
"""The characters of a pattern, which no name of a task has."""


class _OfCelery(NotMapped):
    """Raised for a task that is part of Celery itself."""


class CeleryProject:
    """A converter of one file, or of all files of a folder."""

    def __init__(self, source: Path) -> None:
        if not source.exists():
            raise NotFound(
                f"there is no {source}", hint="Name the file of a module, or the folder of a package."
            )
        source = source if source.name else source.resolve()
        self._is_folder = source.is_dir()
        self._folder = source if source.is_dir() else source.parent
        self._package = f"{source.name}." if source.is_dir() else ""
        self._is_package = not source.is_dir() or _is_package(source)
        whole = sorted([*source.rglob("*.py"), *_scripts(source)]) if source.is_dir() else [source]
        self._files = [
            file
            for file in whole
            if not file.is_dir() and (file == source or not _is_test(file.relative_to(source)))
        ]
        self.report = Report()
        self._unread_tests = [file for file in whole if file not in self._files and file.is_file()]
        self.project = Project(_ascii_name(source.stem) or "tasks")
        self._refs: dict[str, str] = {}
        """By the name that Celery knows a task by."""
        self._of_classes: dict[str, str] = {}
        """The places of the tasks that are objects of a class, by the names that Celery knows them by."""
        self._fixed: set[str] = set()
        """Actions whose tasks give their whole name themselves."""
        self._has_priorities = False
        self._has_own_exchanges = False
        """True if a file may bind queues to exchanges in its own way."""
        self._further_refs: dict[str, list[str]] = {}
        """By a name that Celery knows a task by if it is imported in another way: the actions."""
        self._uncertain: set[str] = set()
        """Actions whose tasks have a name that depends on a folder which no file tells."""
        self._foreign_applications: set[str] = set()
        """Paths of the applications that packages outside of the sources make, and that have a line."""
        self._uncertain_files: set[str] = set()
        """Files with a line about such names."""
        self._signatures: dict[str, Signature] = {}
        self._unread_stubs: dict[str, ast.Module] = {}
        """By file: a module with a function for each task of a file that Python cannot parse."""
        self._task_functions: list[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]] = []
        self._bound: set[int] = set()
        """Functions of tasks that are given the task as their first argument."""
        self._variables: set[str] = set()
        """Environment variables that a line names."""
        self._defaults: dict[int, tuple[str, str]] = {}
        """The variable of each line about a default, and the text of the line if nothing with the default is made."""
        self._own_modules = ModulePaths(())
        """The paths of the modules of the sources."""
        self._functions: dict[str, str] = {}
        """By the name of a task's function; an empty text where several have it."""
        self._taken: set[int] = set()
        """Places that something maps, or that a gap of their own names."""
        self._named: set[str] = set()
        """Actions that say themselves how long they take, where they go, how often they start."""
        self._constants: dict[str, ast.expr] = {}
        self._returned: dict[str, ast.expr] = {}
        """The values that functions without parameters return, by the function's name."""
        self._after_timeouts: dict[str, tuple[str, ast.expr]] = {}
        """Actions that are tried again after a TimeoutError, and where their tasks say so."""
        self._config: set[str] = set()
        self._relevant: dict[str, ast.Module] = {}
        """Files that may have to do with Celery."""
        self._periodic: list[tuple[str, Entry]] = []
        """The schedules of the tasks that say themselves when they run, with their files."""
        self._methods: set[int] = set()
        self._apart: set[int] = set()
        """Places in the list of gaps of what is counted by itself: tasks in other files."""
        self._applications = Applications({})
        self._errors = ErrorNames({})
        self._trees: Mapping[str, ast.Module] = {}
        self._parts = Parts({})
        self._retries = Retries({}, self._foreign_names)
        self._classes: dict[str, list[tuple[str, ast.ClassDef]]] = {}
        """By the name of a class: its definitions, with their files."""
        self._unread: frozenset[str] = frozenset()
        """Names of settings that the application does not read."""
        self._by_other_names: dict[str, list[Use]] = {}
        """By file: what may be set by another name of a configuration, an application or a task."""
        self._queues = Queues()
        self._words: dict[tuple[str, str], str] = {}
        """The place of the command with a word that is a name, by the file and the name."""
        self._limits: list[tuple[str, ast.expr, str, str | None]] = []
        """The time limits: file, place and text of each, and its action. The action is None for a limit of all tasks."""
        self._pools: list[tuple[str, str | None]] = []
        """The pools that workers may have, each with the place that names it. A pool is None if it is computed."""
        self._are_rates_off = False
        """True if a setting disables all rate limits."""
        self._has_computed_names = False
        """True if a task has a name that only running the code would tell."""
        self._mapped_settings: list[tuple[str, list[tuple[str, ast.expr]]]] = []
        """The settings for all tasks that are mapped, each with its places."""
        self._zones: list[tuple[str, ast.AST, ast.expr]] = []
        self._utc_settings: list[tuple[str, ast.AST, ast.expr]] = []
        """The settings of a zone for schedules that have none: nothing is to be done beside a zone that is mapped."""
        """The places of the zone that schedules have: file, statement and value of each."""
        self._unread_tasks: set[str] = set()
        """Actions whose tasks are in no file that was read."""
        self._rejecting: set[str] = set()
        """Actions whose tasks are delivered again when their process is lost."""

    def mapped(self) -> Project:
        """Return the project. Afterwards, `report` has the gaps."""
        trees: dict[str, ast.Module] = {}
        for file in self._files:
            name = str(file.relative_to(self._folder))
            try:
                with tokenize.open(file) as opened:  # the file may name its encoding
                    text = opened.read()
                parsed = with_known_conditions(with_literal_dicts(ast.parse(text)))
                trees[name] = with_plain_configuration(with_plain_names(parsed))
                with_defaults_of_schemes(trees[name])
                mark_other_times(trees[name])
                mark_pools(trees[name])
                if _RELEVANT.search(text):
                    self._relevant[name] = trees[name]
            except (SyntaxError, ValueError, RecursionError) as error:
                if (stub := stub_of_unread(file)) is not None:
                    self._unread_stubs[name] = stub
                self.report.gap(
                    name,
                    getattr(error, "lineno", None) or 1,
                    f"Python {version_info.major}.{version_info.minor} cannot read {name}: {error}",
                    "Correct the file, or run the import with the Python version that the file is written for.",
                )
            except OSError as error:
                self.report.gap(
                    name, 1, f"{name} cannot be read: {error.strerror}", "Find the file, and import again."
                )
        self._relevant |= {name: trees[name] for name in _files_with_application(trees, self._relevant)}
        text_files = OtherFiles.of(self._folder, frozenset(self._files)) if self._is_folder else None
        texts = text_files.texts if text_files is not None else {}
        self._modules = ModuleNames(self._folder, self._package, self._is_package, trees, texts)
        own_modules = {path: tree for name, tree in trees.items() for path in self._modules.of(name)}
        for name, tree in trees.items():
            own_modules["." + name.removesuffix(".py").replace("/", ".").removesuffix(".__init__")] = tree
        changed = assigned_members(trees.values())
        for name, tree in trees.items():
            note_overwritten(name, tree, own_modules)
        write_out_copies(trees, own_modules)
        write_out_schedules(trees, own_modules)
        for name, tree in trees.items():
            read_members(name, tree, own_modules, changed)
        of_django = DjangoSettings(trees, own_modules, changed, self._relevant)
        self._django_files = of_django.files
        for note in of_django.read():
            self._gap(note.file, note.node, note.subject, note.by_hand)
        for value in of_django.read_values:
            self._take(value)
        self._constants = _shared_constants(trees, self._package)
        self._returned = _returned_values(trees, self._package)
        for name, tree in trees.items():
            read_own_constants(name, tree, own_modules, changed | self._constants.keys())
        left_out = drop_replaced_sources(trees)
        sources = sources_of(trees)
        self._config = _config_files(trees, sources.files)
        left_out += drop_unread_settings(trees, sources, self._config)
        for unread in left_out:
            self._gap(unread.file, unread.node, unread.subject, unread.by_hand)
        read_configuration(trees, sources)
        self._relevant |= {name: trees[name] for name in self._config}
        for name, statement in _foreign_settings(trees, self._config, self._package):
            self._gap(name, statement, f"the settings that {ast.unparse(statement)} takes from a package outside of the sources",
                      "Any setting for all tasks may be among them (acks_late, time_limit, queue, rate_limit, timezone): "
                      "look there, and write them into the actions.")  # fmt: skip
        self._applications = Applications(trees, own_modules)
        self._errors = ErrorNames(trees)
        self._trees = trees
        self._parts = Parts(trees)
        self._tell_sources(sources)
        for name, tree in self._relevant.items():
            for method in self._applications.own_decorators(tree):
                self._gap(name, method, f"the method {method.name} of a class of applications, which makes tasks in its own way",
                          "See which options it gives, and write them into the actions.")  # fmt: skip
            for class_, part in self._applications.own_parts(tree):
                text = ast.unparse(part).partition("\n")[0]
                self._gap(file=name, node=part, subject=f"{text} of {class_}, a class of applications",
                          by_hand="See what it changes in tasks and settings, and write that into the actions.")  # fmt: skip
            for call, path in self._applications.foreign(tree):
                origin = (
                    f"which the function {path} makes"
                    if self._applications.is_function(path)
                    else f"whose class {path} is in no file"
                )
                self._gap(name, call, f"the application {ast.unparse(call)}, {origin}",
                          "It may make tasks in its own way, and read other settings: look there, and write its effects into "
                          "the actions.")  # fmt: skip
        self._several = self._tell_applications()
        stems = {name.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for name in trees}
        self._own_modules = ModulePaths(
            stems | {f"{self._package}{stem}" for stem in stems} | {self._package.rstrip(".")} - {""}
        )
        self._unread = unread_names(trees, self._applications.are_known)
        for name, tree in trees.items():
            for node in walk(tree):
                if isinstance(node, ast.ClassDef):
                    self._classes.setdefault(node.name, []).append((name, node))
        self._are_rates_off = self._has_no_rates()
        self._has_own_exchanges = any(map(has_own_exchanges, self._relevant.values()))
        self._retries = Retries(trees, self._foreign_names)
        makers = task_makers(self._relevant, self._applications)
        systems = OtherSystems(trees, own_modules)
        for name, tree in trees.items():
            imported = dict(imported_names(tree))
            outside = self._foreign_names(name) if name in self._relevant else frozenset()
            for node in walk(tree):
                if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                    continue
                maker = maker_of(node, makers, self._applications.names(tree), imported)
                decorator = maker or task_decorator(node)
                if decorator is not None and not systems.has(tree, decorator):
                    self._tell_foreign_application(
                        name, decorator, imported.get(root_name(decorator), ""), outside
                    )
                    self._task(name, node, decorator, maker is not None)
                for other in node.decorator_list:
                    if (
                        other is not decorator
                        and root_name(other) in outside
                        and may_make_task(other, imported)
                    ):
                        self._gap(name, other, f"the decorator {ast.unparse(other)} of {node.name}, which may make a task",
                                  "If it does, write an action with the options that the decorator gives.")  # fmt: skip
        self._tell_classes()
        self._follow_values()
        settings = CelerySettings(trees, self._gap, self._unread, self._applications.classes)
        schedules = list(settings.schedules())
        self._add_tasks_of_schedules(schedules)
        route_maps = settings.routes()
        self._routes(route_maps)
        self._global_settings(self._relevant)
        self._settle_losses()
        self._tell_retried_timeouts()
        zone, zone_gap = self._zone(self._relevant)
        for name, key, value in schedules:
            self._schedule(name, key, value, zone, zone_gap)
        self._schedules_of_calls(
            trees,
            [(key, settings.owners.of(value)) for _, key, value in schedules],
            settings.owners,
            zone,
            zone_gap,
        )
        if self.project.schedules:
            self._take_zones()
        settings.name_left()
        self._taken |= settings.taken
        self._tell_variants(sources, schedules, route_maps)
        if settings.unmapped:
            self.report.found["schedules"] += settings.unmapped
        for name, tree in self._relevant.items():
            self._canvases(name, tree)
        for name, use in reads_of_servers(trees, self._names_of_queues()):
            self._by_other_names.setdefault(name, []).append(use)
        commands: list[Command] = []
        for name, tree in trees.items():
            for place, words in commands_of_code(tree):
                self._take(place)
                commands.append(Command(name, place, tuple(words)))
                command_place = f"{name}:{getattr(place, 'lineno', 1)}"
                self._words |= {(name, word): command_place for word in names_within(words)}
                self._gap(name, place, f"the command {' '.join(words)}", advice(words, self._queues))
                self._note_pool(command_place, words)
            for place, words, of_program in (
                script_calls(tree, text_files.scripts) if text_files is not None else ()
            ):
                text = f"the command {' '.join(words)}, whose program passes its arguments to Celery"
                self._gap(name, place, text, advice([*of_program, *words[1:]], self._queues))
                commands.append(Command(name, place, tuple(words), tuple(of_program)))
            for place, subject, by_hand in variables_of_code(tree, self._queues):
                self._gap(name, place, subject, by_hand)
                self._note_pool(f"{name}:{getattr(place, 'lineno', 1)}", subject.split())
                for inner in ast.walk(place):
                    self._take(inner)
            self._left(name, tree)
        for origin, command in calls_of_commands(trees, commands):
            text = f"the call {ast.unparse(command.place)}, which gives the command of {origin} its options"
            program = [*command.of_program, *command.words[1:]] if command.of_program else command.words
            self._gap(command.file, command.place, text, advice(program, self._queues))
            self._note_pool(command.line, list(command.words))
        self._tell_endings(own_modules, {name for name, _, _ in schedules})
        for test in self._unread_tests:
            self._tell_test(test)
        for path, line, subject, by_hand in (
            other_files(text_files, self._queues) if text_files is not None else ()
        ):
            self.report.gap(path, line, _shortened(subject), by_hand)
            self._note_pool(f"{path}:{line}", subject.split())
        self._tell_pools()
        return self.project

    def _tell_applications(self) -> bool:
        """Record a gap for each application of a source with several applications. Return whether there are several."""
        places = [
            (file, call)
            for file, tree in self._relevant.items()
            for call in self._applications.calls_of(tree)
        ]
        places = _without_alternatives(places, self._trees)
        for file, call in places if len(places) > 1 else ():
            self._gap(file, call, f"the application {ast.unparse(call)}, one of {len(places)}",
                      "The settings of each application are imported for all tasks: if the applications differ, import "
                      "the folder of each by itself.")  # fmt: skip
        return len(places) > 1

    def _tell_endings(self, modules: Mapping[str, ast.Module], of_schedules: Collection[str]) -> None:
        """Record a gap for each place that may end the process while a module with an application, tasks, schedules or settings
        is imported."""
        roots = {file for file, _ in self.report.places.values()} | set(self._config) | set(of_schedules)
        roots |= {file for file, tree in self._relevant.items() if self._applications.calls_of(tree)}
        for ending in endings(self._trees, roots & self._trees.keys(), modules):
            self._gap(ending.file, ending.node, ending.subject, BY_HAND_OF_ENDING)

    def _tell_sources(self, sources: Sources) -> None:
        """Record a gap for each unknown source of settings, and for each variable that names a source."""
        self._is_zone_unknown, self._is_django = bool(sources.unknown), sources.is_django
        for file, place, text in sources.unknown:
            self._take(place.func if isinstance(place, ast.Call) and called(place) != "Celery" else place)
            source = text or ast.unparse(place)
            self._gap(file, place, f"the settings that an application takes from {source}, not proven to be one of the modules",
                      "All plain names of settings in the sources are mapped or named. Schedules in a zone are disabled: see "
                      "which are in force, and what else it gives.")  # fmt: skip
        for file, node, path in sources.missing:
            self._gap(file, node, f"the Django settings module {path} is not among the imported files",
                      "It may hold any setting (acks_late, time_limit, queue, beat_schedule, timezone). Import it too, or "
                      "write its settings by hand.")  # fmt: skip
        for file, value in sources.variables:
            self._by_default(file, value, "the settings of the application")

    def _follow_values(self) -> None:
        """Record the uses by which a file may change a configuration, an application or a task through another name."""
        trees = {**self._trees, **self._unread_stubs}
        flow = Flow(trees, self._relevant, self._applications, cache(self._foreign_names))
        unread = [
            (file, part)
            for file, stub in self._unread_stubs.items()
            for part in stub.body
            if isinstance(part, ast.FunctionDef)
        ]
        self._by_other_names = flow.uses([*self._task_functions, *unread], self._bound)
        for file, tree in self._relevant.items():
            named = {id(use.node) for use in self._by_other_names.get(file, ())}
            self._by_other_names.setdefault(file, []).extend(
                use for use in uses_by_name(tree) if id(use.node) not in named
            )
            is_config = file in self._config
            has_settings = file in self._django_files or any(map(_is_of_celery, _assigned_names(tree)))
            self._by_other_names[file] += uses_in_other_ways(
                tree, is_config, has_settings, self._imports_of_settings(file)
            )

    def _imports_of_settings(self, file: str) -> set[int]:
        """Return the imports of a module from modules of settings that are read."""
        return {
            id(node)
            for node in walk(self._trees[file])
            if isinstance(node, ast.ImportFrom)
            and any(_is_module(source, absolute_path(file, node)) for source in self._config)
        }

    def _foreign_names(self, file: str) -> frozenset[str]:
        """Return the names that a module imports from outside of the sources."""
        statements = [
            node for node in walk(self._trees.get(file) or self._unread_stubs[file])
            if isinstance(node, ast.Import | ast.ImportFrom)
        ]  # fmt: skip
        return frozenset(name for node in statements for name in self._foreign_words(file, node))

    def _tell_test(self, file: Path) -> None:
        """Record a gap for a file of tests with tasks. The file is not read."""
        with suppress(OSError):
            text = file.read_text(errors="replace")
            if (task := _OF_TESTS.search(text)) is not None:
                line = text.count("\n", 0, task.start()) + 1
                self.report.gap(str(file.relative_to(self._folder)), line, f"{file.name} is not read, since it is a file of "
                                                                           "tests",
                                "Import it by itself if something runs its tasks.")  # fmt: skip

    # -- tasks ----------------------------------------------------------------------------------------------------

    def _task(
        self, file: str, node: ast.FunctionDef | ast.AsyncFunctionDef, decorator: ast.expr, is_own: bool
    ) -> None:
        """Convert a task. `is_own`: the decorator is defined in the source, and may add options of its own."""
        self.report.found["tasks"] += 1
        previous = len(self.report.gaps) - len(self._apart)
        name = _ascii_name(node.name)
        module = file.removesuffix(".py").replace("/", ".").removesuffix(".__init__")
        modules = self._modules.of(file)
        if name in self.project.actions or not name:
            name = _ascii_name(f"{module}_{node.name}")
            while name in self.project.actions:
                name += "_2"
        name = bounded(name)
        self.report.place("actions", name, file, node.lineno)
        self._take(decorator)
        if is_own:
            self._gap(
                file,
                decorator,
                f"the decorator {ast.unparse(decorator)} of {node.name}, which makes a task in its own way",
                "See which options it gives, and write them into the action.",
            )
        words = decorator.keywords if isinstance(decorator, ast.Call) else []
        keywords = {keyword.arg or "**options": keyword.value for keyword in words}
        bound = self._is_bound(keywords, node)
        is_bound = bound is not False or id(node) in self._methods
        signature = signature_of(node, is_bound)
        if bound is None:
            signature.names.clear()  # it is unknown which argument is the first parameter
            self._gap(file, keywords.get("bind", decorator), f"bind of {node.name} is computed",
                      "The import omits its first parameter, as for a bound task: if the task is not bound, write the "
                      "parameter into the action.")  # fmt: skip
        action = self.project.function(name, _stub(name, node, file, signature))
        if signature.schema is not None:
            action["parameters"] = signature.schema
        for parameter in signature.computed:
            self._gap(
                file,
                node,
                f"the default of {parameter} of {node.name} is computed",
                "Compute the default in the code of the function.",
            )
        for argument, annotation in carried_types(node):
            text = (
                f"the parameter {argument.arg} of {node.name} is {annotation}, which Celery's JSON delivers"
            )
            self._gap(file, argument, text,
                      "Plain JSON has no such type: pass a text, and convert it in the function.")  # fmt: skip
        action |= {"timeout": None, "on_worker_loss": "fail"}
        self.project.actions[name] = action
        retries_by_hand = self._retries.may_ask(file, node, is_bound)
        of_beat = _options_of_beat(decorator, keywords)
        self._options(
            file,
            node.name,
            name,
            {option: value for option, value in keywords.items() if option not in of_beat},
        )
        tell = lambda where, text, by_hand: self._gap(file, where, f"{text} of {node.name}", by_hand)  # noqa: E731
        retry = retry_of(
            {
                key: value
                if key.endswith("autoretry_for")
                else with_constants(
                    self._by_default(file, value, f"{key} of the task {node.name}"), self._constants
                )
                for key, value in keywords.items()
                if key in RETRY_OPTIONS
            },
            retries_by_hand,
            tell,
            partial(self._errors.of, file),
        )
        if retry is not None:
            action["retry"] = retry
        if retry is not None and "TimeoutError" in retry["retry_on"]:
            self._after_timeouts[name] = file, keywords["autoretry_for"]
        supplied = keywords.get("name")
        named = self._literal_or_none(supplied) if supplied is not None else None
        celery_name = str(named) if named is not None else f"{modules[0]}.{node.name}"
        if of_beat:
            self._periodic.append((file, _entry_of_task(decorator, celery_name, of_beat)))
        if supplied is not None and named is None and not isinstance(supplied, ast.Constant):
            self._gap(
                file,
                supplied,
                f"the name of {node.name} is computed",
                "Check that schedules and routes name it correctly.",
            )
            self._has_computed_names = True
        if celery_name in self._refs:
            self._gap(file, node, f"the name {celery_name} of {node.name}, which another task has",
                      "Celery keeps only one of them, usually the first imported: remove the other task.")  # fmt: skip
        self._refs.setdefault(celery_name, name)
        if named is not None:
            self._fixed.add(name)
        unproven = self._modules.further(file) if supplied is None else []
        for further in dict.fromkeys([*modules[1:], *unproven]) if supplied is None else ():
            self._further_refs.setdefault(f"{further}.{node.name}", []).append(name)
        if unproven:
            self._uncertain.add(name)
            self._tell_uncertain(file, node, [modules[0], *unproven])
        self._task_functions.append((file, node))
        self._bound |= {id(node)} if is_bound else set()
        self._signatures[name] = signature
        self._functions[node.name] = "" if node.name in self._functions else name
        if len(self.report.gaps) - len(self._apart) == previous:
            self.report.map("tasks", name)
        self._gap(file, node, f"the code of {node.name}, the task {celery_name}",
                  f"Move it into the function {name}_ of {self.project.module}.py; callers start "
                  f"{self.project.name}.{name}.")  # fmt: skip
        if (condition := condition_of(self._trees[file], node)) is not None:
            self._gap(file, node, f"the task {node.name}, which exists {condition}",
                      "It is imported as if it always existed: if it does not, remove it.")  # fmt: skip
        for other in node.decorator_list:
            if other is not decorator:
                self._gap(file, other, f"the decorator {ast.unparse(other)} of {node.name}",
                          "Move its effect with the code, or write it into the action.")  # fmt: skip
        arguments = [*node.args.posonlyargs, *node.args.args][int(is_bound) :]
        required = len(arguments) > len(node.args.defaults) or None in node.args.kw_defaults
        variadic = [
            f"{stars}{part.arg}"
            for stars, part in (("*", node.args.vararg), ("**", node.args.kwarg))
            if part is not None
        ]
        if variadic and required:
            self._gap(file, node, f"the parameters of {node.name} beside {', '.join(variadic)}",
                      "Penstock accepts any parameters: let the function refuse a call that lacks a required one.")  # fmt: skip
        if node.args.vararg is not None:
            self._gap(file, node, f"the parameters *{node.args.vararg.arg} of {node.name}",
                      "Parameters have names: take a list as a named parameter.")  # fmt: skip

    def _tell_foreign_application(
        self, file: str, decorator: ast.expr, path: str, outside: Collection[str]
    ) -> None:
        """Record a gap, once, for the application of a task if a package outside of the sources makes the application."""
        method = decorator.func if isinstance(decorator, ast.Call) else decorator
        is_of_other = root_name(decorator) in outside and path.partition(".")[0] not in ("", "celery")
        if is_of_other and isinstance(method, ast.Attribute) and path not in self._foreign_applications:
            self._foreign_applications.add(path)
            self._apart.add(len(self.report.gaps))
            self._gap(file, decorator, f"the application {path}, which is in no file",
                      "It may have any setting for all tasks (acks_late, time_limit, routes, schedules): look there, and write "
                      "them into the actions.")  # fmt: skip

    def _tell_uncertain(self, file: str, node: ast.AST, modules: list[str]) -> None:
        """Record a gap, once for a file, for names of tasks that depend on the folder that Python searches."""
        if file not in self._uncertain_files:
            self._uncertain_files.add(file)
            self._apart.add(len(self.report.gaps))
            self._gap(file, node, f"the names of the tasks of {file}, which begin with one of {', '.join(modules)}",
                      "No import tells the folder that Celery is started in: see `celery inspect registered`, and compare "
                      "schedules and routes with it.")  # fmt: skip

    def _tell_classes(self) -> None:
        """Record a gap for each task that is an object of a class, and for each option that its class gives."""
        apps = {file: self._applications.names(tree) for file, tree in self._relevant.items()}
        for task in task_classes(self._relevant, apps):
            self.report.found["tasks"] += 1
            own = self._literal_or_none(task.name) if task.name is not None else None
            name = str(own) if own is not None else f"{self._modules.of(task.file)[0]}.{task.node.name}"
            self._of_classes[name] = f"{task.file}:{task.node.lineno}"
            self._gap(task.file, task.node, f"the task {name}, an object of the class {task.node.name}",
                      "Write an action for it, and move `run` into its function.")  # fmt: skip
            for option, value in task.options.items():
                self._gap(
                    task.file,
                    value,
                    f"{option} of the task {name}: {text_of(value)}",
                    "Write it into the action.",
                )

    def _is_bound(
        self, options: Mapping[str, ast.expr], node: ast.FunctionDef | ast.AsyncFunctionDef
    ) -> bool | None:
        """Return whether a task gets itself as its first argument; None if only running the code would tell."""
        value = options.get("bind")
        if value is None:
            first = [*node.args.posonlyargs, *node.args.args][:1]
            return None if "**options" in options and first and first[0].arg == "self" else False
        try:
            if isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.Not):
                return not literal(value.operand, self._constants)
            return bool(literal(value, self._constants))
        except NotLiteral:
            return None

    def _options(self, file: str, theirs: str, name: str, options: Mapping[str, ast.expr]) -> None:
        """Map the options of a task, or of its annotation. Celery reads None as no value: the setting for all counts."""
        action = self.project.actions[name]
        for option, value in options.items():
            if option in RETRY_OPTIONS:
                continue
            if option in _MAPPED_OPTIONS:
                value = self._by_default(file, value, f"{option} of the task {theirs}")
            if option in ("soft_time_limit", "time_limit") and self._literal_or_none(value) is not None:
                self._limits.append((file, value, f"{option} of {theirs}", name))
            try:
                if option in _MAPPED_OPTIONS and literal(value, self._constants) is None:
                    # `None` in an annotation removes the value that the task has.
                    if f"{name}.{option}" in self._named:
                        self._gap(file, value, f"{option}=None of {theirs}, beside another value of {name}",
                                  "Celery then takes the value of the setting for all tasks: write that value into the "
                                  "action.")  # fmt: skip
                    continue
                if option == "time_limit":
                    _bound(action, _limit(value, self._constants))
                elif option == "queue":
                    queue = literal(value, self._constants)
                    if not isinstance(queue, str) or not queue:
                        raise NotLiteral(ast.unparse(value))
                    action["route"] = queue
                elif option == "acks_late":
                    action["on_worker_loss"] = "rerun" if literal(value, self._constants) else "fail"
                elif option == "reject_on_worker_lost":
                    self._reject(name, bool(literal(value, self._constants)))
                elif option == "rate_limit":
                    self._rate(file, theirs, action, value)
                elif not says_nothing(option, value):
                    self._gap(
                        file, value, f"{option} of {theirs}", TASK_BY_HAND.get(option) or of_unknown(option)
                    )
                    if option == "base":
                        self._tell_base(theirs, value)
                if option in _MAPPED_OPTIONS:
                    self._named.add(f"{name}.{option}")
            except NotLiteral:
                self._gap(
                    file,
                    value,
                    f"{option} of {theirs} {self._why(value)}: {text_of(value)}",
                    "Write the value.",
                )

    def _why(self, value: ast.expr) -> str:
        """Return the reason why the value of an option is not mapped."""
        try:
            literal(value, self._constants)
        except NotLiteral:
            return "is computed"
        return "has a value that the import does not map"

    def _reject(self, name: str, is_rejecting: bool) -> None:
        self._rejecting = self._rejecting | {name} if is_rejecting else self._rejecting - {name}

    def _tell_base(self, theirs: str, base: ast.expr) -> None:
        """Record gaps for the options that the class of a task sets, or a class that it extends."""
        waiting, names = [last_name(base)], set[str]()
        while waiting:
            name = waiting.pop()
            for file, class_ in self._classes.get(name, ()) if name not in names else ():
                waiting += [last_name(above) for above in class_.bases]
                for part in class_.body:
                    targets = (
                        part.targets if isinstance(part, ast.Assign) else [getattr(part, "target", None)]
                    )
                    for target in targets:
                        if isinstance(target, ast.Name) and target.id in TASK_OPTIONS | RETRY_OPTIONS:
                            self._gap(file, part, f"{target.id} of the class {name}, the base of {theirs}",
                                      "If the task itself sets no other value, write it into the action.")  # fmt: skip
            names.add(name)

    def _rate(self, file: str, theirs: str, action: dict[str, Any], value: ast.expr) -> None:
        action.pop("limits", None)
        limit = None if self._are_rates_off else rate_limit(value)
        if limit is None:
            return
        action["limits"] = [limit]
        self._gap(file, value, f"rate_limit of {theirs} counts for each worker in Celery, and for all workers together in "
                               "Penstock",
                  "Divide its `seconds` by the number of workers.")  # fmt: skip

    def _has_no_rates(self) -> bool:
        """Return whether the one place of `worker_disable_rate_limits` is literally true, so that no rate limit counts."""
        places: list[tuple[ast.AST, ast.expr]] = []
        for file, tree in self._relevant.items():
            if _has_conditional_setting(tree, self._unread, RATES_OFF):
                return False
            settings = _assigned(tree, self._applications.names(tree), file in self._config)
            places += [(use, value) for use, name, value in settings if name in RATES_OFF - self._unread]
        value = self._literal_or_none(places[0][1]) if len(places) == 1 and not self._several else None
        if not isinstance(value, bool):
            return False
        for place in places[0]:
            self._take(place)
        return value

    def _note_pool(self, place: str, words: list[str]) -> None:
        """Note the pool that a command names."""
        pool = pool_of(words)
        if pool is not None:
            self._pools.append((place, pool))

    def _tell_pools(self) -> None:
        """Record a gap for each time limit beside a pool of workers that may not enforce it."""
        for file, tree in self._relevant.items():
            for use, name, value in _assigned(tree, self._applications.names(tree), file in self._config):
                place = f"{file}:{getattr(use, 'lineno', 1)}"
                if today(name) == "worker_pool":
                    pool = self._literal_or_none(value)
                    self._pools.append((place, pool if isinstance(pool, str) else None))
                elif today(name) in ("task_soft_time_limit", "task_time_limit") and name not in self._unread:
                    self._limits.append((file, value, today(name), None))
        for place, pool in self._pools:
            by_hand = limits_in(pool)
            for file, node, limit, action in self._limits if by_hand is not None else ():
                assert by_hand is not None
                named = f"the pool {pool}" if pool is not None else "a pool that is computed"
                self._gap(file, node, f"{limit}, beside {named} of {place}", by_hand)
                limited = [action] if action is not None else list(self.project.actions)
                for name in limited:
                    self.report.unmap("tasks", name)

    def _routes(self, maps: list[list[tuple[str, RouteKey, ast.expr]]]) -> None:
        """Convert the routes. The first map with a key that fits a task decides. Of equal keys in a map, the last one
        gives the file and the value."""
        by_key = {
            (number, key): (file, node) for number, routes in enumerate(maps) for file, key, node in routes
        }
        keys_of_maps = [list(dict.fromkeys(key for _, key, _ in routes)) for routes in maps]
        fitting: dict[tuple[int, RouteKey], list[str]] = {place: [] for place in by_key}
        uncertain = set[tuple[int, RouteKey]]()
        for name in dict.fromkeys(self._refs.values()):
            keys = [(ref, deciding_key(keys_of_maps, ref)) for ref in self._refs_of(name)]
            decided = next((key for _, key in keys if key is not None), None)
            if decided is None:
                continue
            fitting[decided].append(name)
            if other := next((pair for pair in keys if pair[1] not in (None, decided)), None):
                file, node = by_key[decided]
                _, other_key = other[1] or decided
                uncertain |= {decided} if name in self._uncertain else set()
                self._gap(file, node, f"the route of {decided[1]} for {name}, although {other_key} would fit its name {other[0]}",
                          "The first route is imported: see by which name the application imports the task.")  # fmt: skip
            elif name in self._uncertain and (unfit := next((ref for ref, key in keys if key is None), None)):
                file, node = by_key[decided]
                fit = next(ref for ref, key in keys if key is not None)
                uncertain.add(decided)
                self._gap(file, node, f"the route of {decided[1]} for {name}, which fits its name {fit} and not {unfit}",
                          "The route is imported: see by which name the application imports the task.")  # fmt: skip
        for place, (file, node) in by_key.items():
            self._route(file, str(place[1]), node, fitting[place], is_certain=place not in uncertain)
        for number, routes in enumerate(maps):
            for file, key, node in routes:
                last_file, last = by_key[number, key]
                if (last_file, last) != (file, node):
                    self._gap(file, node, f"the route of {key}, which stands again at {last_file}:{last.lineno}",
                              "The later route is imported: see which route counts.")  # fmt: skip

    def _route(self, file: str, key: str, node: ast.expr, fitting: list[str], is_certain: bool) -> None:
        self.report.found["routes"] += 1
        try:
            value = literal(node, self._constants)
        except NotLiteral:
            value = None
        queue = value.get("queue") if isinstance(value, dict) else value
        if not isinstance(queue, str) or not queue or not fitting:
            self._gap(file, node, f"the route of {key}", "Write `route` into each action that needs it.")
            return
        previous = len(self.report.gaps)
        settled = {"queue", "delivery_mode"}
        if isinstance(value, dict) and self._is_own_key(queue, value.get("routing_key")):
            settled.add("routing_key")
        for option in sorted(value.keys() - settled) if isinstance(value, dict) else ():
            self._gap(file, node, f"{option} of the route of {key}", ROUTE_BY_HAND.get(option, SEE_ROUTE))
        if len(self.report.gaps) == previous and is_certain:
            self.report.map("routes", key)
        if isinstance(value, dict) and "delivery_mode" in value:
            self._gap(file, node, f"delivery_mode of the route of {key}", TASK_BY_HAND["delivery_mode"])
        for name in fitting:
            # The queue that a task names takes precedence over its route.
            if f"{name}.queue" not in self._named:
                self.project.actions[name]["route"] = queue
                self._named.add(f"{name}.queue")

    # -- settings of the application ------------------------------------------------------------------------------

    def _global_settings(self, trees: Mapping[str, ast.Module]) -> None:
        """Convert the settings that hold for all tasks. Annotations come first, since they take precedence over the
        options of a task."""
        hits: dict[str, list[tuple[str, ast.AST, ast.expr]]] = {}
        for file, tree in trees.items():
            for use, name, value in _assigned(tree, self._applications.names(tree), file in self._config):
                if name not in self._unread:
                    hits.setdefault(today(name), []).append((file, use, value))
        for _, use, value in hits.get("enable_utc", ()):
            if isinstance(value, ast.Constant) and value.value is True:  # as without the setting
                self._take(use)
                self._take(value)
        for setting in (
            "task_annotations",
            "task_time_limit",
            "task_default_queue",
            "task_acks_late",
            "task_default_rate_limit",
            "task_reject_on_worker_lost",
        ):
            places = hits.get(setting, [])
            values = [value for _, _, value in places]
            if len(places) == 1:
                values = [self._by_default(places[0][0], values[0], f"the setting {setting}")]
            is_certain = bool(values) and self._are_equal(values)
            if setting == "task_default_queue":
                self._queues.has_list = "task_queues" in hits
                self._settle_queues(values[:1] if is_certain else values)
            if not is_certain:
                continue  # there are several, and only running the code would tell which one counts
            file, value = places[0][0], values[0]
            try:
                self._global_setting(setting, file, value)
            except NotLiteral:
                continue
            if self._several:
                for action in self.project.actions:
                    self.report.unmap("tasks", action)
                self._gap(file, value, f"{setting} of one application, imported for the tasks of all",
                          "Write it only into the actions of this application.")  # fmt: skip
            self._mapped_settings.append((setting, [(file, value) for file, _, value in places]))
            for _, use, value in places:
                self._take(use)
                self._take(value)

    def _tell_variants(
        self,
        sources: Sources,
        schedules: list[tuple[str, str, ast.expr]],
        maps: list[list[tuple[str, RouteKey, ast.expr]]],
    ) -> None:
        """Record a gap for each mapped setting of a module of settings that Django does not read in any case."""
        if not sources.is_django:
            return
        variants = Variants(self._trees)
        settings = [(f"the schedule {key}", [(file, value)]) for file, key, value in schedules]
        of_files: dict[str, ast.expr] = {}
        for file, _, value in (entry for routes in maps for entry in routes):
            of_files.setdefault(file, value)
        settings += [("task_routes", [place]) for place in of_files.items()]
        for name, places in settings + self._mapped_settings:
            modules = variants.without([file for file, _ in places])
            if modules:
                file, value = places[0]
                listed = modules[0] if len(modules) == 1 else f"{modules[0]} and {len(modules) - 1} more"
                text = f"{name} of {file}, which these modules of settings do not always take: {listed}"
                self._gap(file, value, text,
                          "It is imported for all: remove it if the module that DJANGO_SETTINGS_MODULE names does not "
                          "take it.")  # fmt: skip

    def _are_equal(self, values: list[ast.expr]) -> bool:
        """Return whether all values of a setting are the same literal, so that any of them may count."""
        try:
            first, *further = (literal(value, self._constants) for value in values)
        except NotLiteral:
            return len(values) == 1
        return all(type(other) is type(first) and other == first for other in further)

    def _global_setting(self, setting: str, file: str, value: ast.expr) -> None:
        if setting == "task_annotations":
            if not isinstance(value, ast.Dict) or not all(
                isinstance(key, ast.Constant) for key in value.keys
            ):
                raise NotLiteral(ast.unparse(value))
            literal(value)
            last = {
                str(getattr(key, "value", "")): options
                for key, options in zip(value.keys, value.values, strict=True)
            }
            for key, options in last.items():
                if key != "*":
                    self._annotate(file, key, options)
            # Celery applies the annotation `*` after that of the task's own name, so its values win.
            if "*" in last:
                self._annotate(file, "*", last["*"])
            return
        told_reasons = literal(value, self._constants)
        if told_reasons is None:
            return
        for name, action in self.project.actions.items():
            if setting == "task_time_limit" and f"{name}.time_limit" not in self._named:
                _bound(action, _limit(value, self._constants))
            elif setting == "task_default_queue" and (not isinstance(told_reasons, str) or not told_reasons):
                raise NotLiteral(ast.unparse(value))
            elif setting == "task_acks_late" and f"{name}.acks_late" not in self._named:
                action["on_worker_loss"] = "rerun" if told_reasons else "fail"
            elif (
                setting == "task_reject_on_worker_lost" and f"{name}.reject_on_worker_lost" not in self._named
            ):
                self._rejecting |= {name} if told_reasons else set()
            elif setting == "task_default_rate_limit" and f"{name}.rate_limit" not in self._named:
                self._rate(file, name, action, value)

    def _settle_queues(self, settings: list[ast.expr]) -> None:
        """Give the route of the default queue to each action with a task for that queue, or for none. `settings` are the
        values of `task_default_queue`."""
        default: str | None = CELERYS_DEFAULT
        if settings:
            value = self._literal_or_none(settings[0]) if len(settings) == 1 else None
            default = value if isinstance(value, str) and value else None
        names = queue_names(self._relevant.values())
        names |= {action["route"] for action in self.project.actions.values() if "route" in action}
        self._queues.settle(default, names)
        for action in self.project.actions.values():
            if "route" in action:
                action["route"] = self._queues.route(action["route"])
            else:
                action |= self._queues.of_unrouted()

    def _names_of_queues(self) -> set[str]:
        """Return the names of the queues of the application, as far as they are known."""
        names = queue_names(self._trees.values()) | {self._queues.default_queue}
        return names | {action["route"] for action in self.project.actions.values() if "route" in action}

    def _literal_or_none(self, node: ast.expr) -> Any:
        try:
            return literal(node, self._constants)
        except NotLiteral:
            return None

    def _annotate(self, file: str, key: str, options: ast.expr) -> None:
        names = (
            list(self._refs.values())
            if key == "*"
            else ([self._refs[key]] if key in self._refs else self._further_refs.get(key, []))
        )
        if not names and _OF_PATTERNS.search(key):
            self._gap(file, options, f"the annotation of {key}, which is a pattern",
                      "Celery takes only the exact name of a task and `*` here, so this changes no task: remove it.")  # fmt: skip
            return
        if not isinstance(options, ast.Dict) or not names:
            self._gap(file, options, f"the annotation of {key}", "Write it as options of the action.")
            return
        supplied = {
            str(literal(k)): v for k, v in zip(options.keys, options.values, strict=True) if k is not None
        }
        simple = {option: value for option, value in supplied.items() if option not in RETRY_OPTIONS}
        for option in sorted(supplied.keys() - simple.keys()):
            self._gap(file, supplied[option], f"{option} of the annotation of {key}",
                      f"Write `retry` of the action: in Celery it is {ast.unparse(supplied[option])}.")  # fmt: skip
        for name in names:
            self._options(file, f"the annotation of {key}", name, simple)

    def _settle_losses(self) -> None:
        """Give each task with `acks_late` a process of its own. Celery fails a task if its process is lost, and delivers
        it again only if its worker is lost, or with `reject_on_worker_lost`."""
        for name, action in self.project.actions.items():
            if action.get("on_worker_loss") == "rerun" and name not in self._rejecting:
                action["executor"] = "process"
            elif name in self._rejecting and action.get("executor") == "process":
                file, line = self.report.places[("actions", name)]
                self.report.unmap("tasks", name)
                self.report.gap(file, line, f"reject_on_worker_lost of {name}, which has a process of its own",
                                "In Penstock a process that dies fails its attempt: name ProcessDied in `retry_on`.")  # fmt: skip

    def _tell_retried_timeouts(self) -> None:
        """Record a gap for each task that Penstock would retry after a timeout, and Celery would not."""
        for name, (file, node) in self._after_timeouts.items():
            if self.project.actions[name]["timeout"] is not None:
                self.report.unmap("tasks", name)
                self._gap(
                    file,
                    node,
                    f"the retries of {name} after TimeoutError, which in Penstock also ends an attempt at its time limit",
                    "Celery does not retry a task after its time limit: raise an error of your own instead.",
                )

    def _zone(self, trees: Mapping[str, ast.Module]) -> tuple[str | None, bool]:
        """Return the zone of crontabs, and whether it is unknown."""
        if self._names_by_hand(OF_ZONE):
            return None, True
        if self._is_zone_unknown:
            return None, True
        zones: list[tuple[str, ast.AST, ast.expr]] = []
        is_local = self._names_by_hand(OF_UTC)
        for file, tree in trees.items():
            if _has_conditional_setting(tree, self._unread):
                return None, True
            is_local |= _has_conditional_setting(tree, (), {"CELERY_ENABLE_UTC", "enable_utc"})
            for use, name, value in _assigned(tree, self._applications.names(tree), file in self._config):
                if today(name) == "timezone" and name not in self._unread:
                    zones.append((file, use, value))
                elif today(name) == "enable_utc" and getattr(value, "value", None) is not True:
                    is_local = True
                    self._utc_settings.append((file, use, value))
                elif today(name) == "time_zone" and name != ZONE_OF_DJANGO:
                    return None, True
        if not zones:
            gives_any = self._names_by_hand(OF_ANY) or any(
                gives_any_setting(tree, self._applications.names(tree), file in self._config)
                for file, tree in trees.items()
            )
            if gives_any:
                return None, True
            of_django = self._zones_of_django()
            if of_django is None:
                return None, True
            zones = of_django
        if not zones:
            return None, is_local or self._is_django
        if self._several and not self._has_one_source():
            return None, True
        try:
            values = {
                literal(
                    self._by_default(file, _value_at(self._trees[file], value), "the zone of schedules"),
                    self._constants,
                )
                for file, _, value in zones
            }
        except (NotLiteral, TypeError):
            return None, True
        if len(values) != 1 or not isinstance(zone := values.pop(), str):
            return None, True
        if not zone:  # Celery reads an empty text as no zone
            return None, is_local
        self._zones = zones
        return (None if zone.upper() == "UTC" else zone), False

    def _take_zones(self) -> None:
        """Note that the schedules have the zone."""
        if self._zones:
            places = [(file, value) for file, _, value in self._zones]
            self._mapped_settings.append(("the zone of schedules", places))
        for _, use, value in [*self._zones, *(self._utc_settings if self._zones else ())]:
            self._take(use)
            self._take(value)

    def _has_one_source(self) -> bool:
        """Return whether one application alone is given settings, and the schedules are among them: any other one has none."""
        nodes = [node for tree in self._trees.values() for node in walk(tree)]
        sources = [
            node for node in nodes if isinstance(node, ast.Call) and called(node) == "config_from_object"
        ]
        of_code = {
            "CELERY_BEAT_SCHEDULE",
            "add_defaults",
            "add_periodic_task",
            "beat_schedule",
            "config_from_envvar",
        }
        return len(sources) == 1 and not any(
            (
                isinstance(node, ast.Attribute)
                and (node.attr in of_code or node.attr == "conf")
                and not _is_read_of_django(node)
            )
            or (
                isinstance(node, ast.keyword) and node.arg in (*ZONES, *of_code, "config_source", "run_every")
            )
            for node in nodes
        )

    def _names_by_hand(self, advice: str) -> bool:
        """Return whether a value with another name has a gap with this advice."""
        return any(use.by_hand == advice for named in self._by_other_names.values() for use in named)

    def _zones_of_django(self) -> list[tuple[str, ast.AST, ast.expr]] | None:
        """Return the places of `TIME_ZONE`, which counts in the settings of Django, and in any other source. None if a
        place is under a condition."""
        places: list[tuple[str, ast.AST, ast.expr]] = []
        for file, tree in self._trees.items():
            is_source = self._is_django or file in self._config or not self._applications.are_known
            if is_source and _has_conditional_setting(tree, (), (ZONE_OF_DJANGO,)):
                return None
            settings = _assigned(tree, self._applications.names(tree), is_source)
            places += [(file, use, value) for use, name, value in settings if name == ZONE_OF_DJANGO]
        return places

    # -- schedules ------------------------------------------------------------------------------------------------

    def _schedule(self, file: str, key: str, node: ast.expr, zone: str | None, zone_unknown: bool) -> None:
        self.report.found["schedules"] += 1
        previous = len(self.report.gaps) - len(self._apart)
        previous_lines = len(self.report.gaps)
        entry: dict[str, ast.expr] = {}
        if isinstance(node, ast.Dict):
            entry = {
                str(k.value): v
                for k, v in zip(node.keys, node.values, strict=True)
                if isinstance(k, ast.Constant)
            }
            if len(entry) != len(node.keys):
                self._gap(
                    file, node, f"parts of the schedule {key} are computed", "Write them of the schedule."
                )
        self._take(node)
        try:
            task = self._task_text(file, entry["task"])
            name = self._known(task) or self._elsewhere(file, entry["task"], task)
            when = self._by_default(file, self._named_value(entry["schedule"]), f"the schedule {key}")
            if (name_of_time := other_time(self._trees[file], when)) is not None:
                raise NotMapped(f"{name_of_time} is not Celery's function of this name")
            schedule: dict[str, Any] = {
                "action": f"{self.project.name}.{name}",
                **times(when, self._constants),
            }
            for part in entry.keys() & {"args", "kwargs"}:
                entry[part] = self._by_default(file, entry[part], f"{part} of the schedule {key}")
            params = self._params(entry, name)
            self._take(when)
        except (NotLiteral, NotMapped, KeyError) as error:
            is_celerys = isinstance(error, _OfCelery)
            self._withdraw_defaults(previous_lines)
            advice = "Leave it out: Penstock does not need it." if is_celerys else "Write it as a schedule."
            self._gap(file, node, f"the schedule {key}: {error}", advice)
            return
        sending = self._sending_options(entry.get("options"))
        if sending is not None:
            options = entry.pop("options")
            sending = {
                option: self._by_default(file, value, f"{option} of the schedule {key}")
                for option, value in sending.items()
            }
            values, unmapped = start_options(sending, self._constants)
            queue = values.pop("queue", None)
            if self._is_own_key(queue, self._literal_or_none(sending.get("routing_key", ast.Constant(None)))):
                unmapped = [option for option in unmapped if option != "routing_key"]
            if queue is not None:
                schedule["action"] = f"{self.project.name}.{self._routed(name, queue)}"
                if values.pop("expires", None) is not None:
                    # The workflow begins at once, but its task may wait for longer than `expires`.
                    unmapped.append("expires")
            if "priority" in values:
                self._note_priorities(file, options)
            schedule |= values
            for option in sorted(unmapped):
                advice = SENDING_BY_HAND.get(option, SEE_SENDING)
                if option in OF_BROKER:
                    self._apart.add(len(self.report.gaps))
                self._gap(file, options, f"{option} in options of the schedule {key}", advice)
        if params:
            schedule["params"] = params
        if name in self._unread_tasks and "args" in entry and "args" in params:
            self._apart.add(len(self.report.gaps))
            self._gap(file, node, f"the arguments by position of the schedule {key}, whose names are in no file",
                      "They are the parameter `args`, a list: read it in the function, or write their names.")  # fmt: skip
        if "every" not in schedule:
            if zone is not None:
                schedule["timezone"] = zone
            if zone_unknown:
                self._gap(
                    file,
                    node,
                    f"the zone of the schedule {key} is computed",
                    "Write `timezone`; it is disabled until then.",
                )
                schedule["enabled"] = False
        for option in entry.keys() - {"task", "schedule", "args", "kwargs"}:
            if option == "enabled" and getattr(entry[option], "value", None) is False:
                schedule["enabled"] = False
            elif option == "relative" and "every" not in schedule:
                continue  # Celery reads `relative` only for intervals
            elif (
                option == "relative"
                and is_true(entry[option])
                and is_in_step(schedule["every"], is_utc=zone is None and not zone_unknown)
            ):
                continue
            elif not says_nothing(option, entry[option]):
                self._gap(
                    file,
                    entry[option],
                    f"{option} of the schedule {key}",
                    BEAT_BY_HAND.get(option, SEE_ENTRY),
                )
        ours = bounded(_ascii_name(key) or "x")
        while ours in self.project.schedules:
            ours += "_2"
        self.project.schedules[ours] = schedule
        self.report.place("schedules", ours, file, node.lineno)
        if len(self.report.gaps) - len(self._apart) == previous:
            self.report.map("schedules", ours)

    def _schedules_of_calls(
        self,
        trees: Mapping[str, ast.Module],
        keys: list[tuple[str, str]],
        owners: Owners,
        zone: str | None,
        zone_unknown: bool,
    ) -> None:
        """Convert the schedules that calls create. `keys` are the keys of the schedules in settings, with their applications.
        Equal keys of different applications are different schedules."""
        is_aware = not any("DJANGO_CELERY_BEAT_TZ_AWARE" in _assigned_names(tree) for tree in trees.values())
        entries = list(self._periodic)
        installed = installed_applications(trees)
        for file, tree in self._relevant.items():
            starting = {id(method) for method in starts_of_django(tree, self._modules.of(file), installed)}
            for entry in periodic_tasks(tree, self._applications.names(tree), self._constants, starting):
                self._name_task(file, tree, entry)
                entries.append((file, entry))
            of_rows = rows(tree, self._constants, is_aware)
            entries += [(file, entry) for entry in of_rows]
            if of_rows:
                self.report.found["files that write schedules to a database"] += 1
                self._apart.add(len(self.report.gaps))
                self._gap(file, of_rows[0].place, "schedules that are rows of django-celery-beat",
                          "The rows that this file writes are imported as into an empty table: compare with "
                          "django_celery_beat_periodictask, which may have other rows and other values.")  # fmt: skip
        apps = {id(entry): owners.of_call(file, trees[file], entry.place) for file, entry in entries}
        keys = keys + [(entry.key, apps[id(entry)]) for _, entry in entries if entry.entry is not None]
        counts = Counter(key for key, _ in keys)
        for file, entry in entries:
            same = [app for key, app in keys if key == entry.key] if counts[entry.key] > 1 else []
            same = [app for app in same if not belong_apart(app, apps[id(entry)])]
            if entry.entry is not None and len(same) > 1:
                entry.entry, entry.reason = None, f"{entry.key!r} is also given at another place"
            for place in entry.places if entry.entry is not None else [entry.place, entry.place.func]:
                self._take(place)
            if entry.entry is None:
                self.report.found["schedules"] += 1
                self._gap(file, entry.place, f"the schedule of {ast.unparse(entry.place)[:_MAX_SHOWN // 2]}: {entry.reason}",
                          "Write it as a schedule.")  # fmt: skip
            elif entry.zone is not None:
                self._schedule(
                    file,
                    entry.key,
                    entry.entry,
                    None if entry.zone.upper() == "UTC" else entry.zone,
                    False,
                )
            else:
                self._schedule(file, entry.key, entry.entry, zone, zone_unknown)
            if entry.entry is not None and entry.condition:
                self._gap(file, entry.place, f"the schedule {entry.key}, which is added {entry.condition}",
                          "It is imported: take it out if it is not in force.")  # fmt: skip

    def _name_task(self, file: str, tree: ast.Module, entry: Entry) -> None:
        """In an entry, replace the function of a task by the task's name."""
        if entry.entry is None:
            return
        task = entry.entry.values[0]
        if isinstance(task, ast.Constant):
            return
        hits = self._task_named(file, tree, task)
        if hits is None:
            entry.entry, entry.reason = None, f"{ast.unparse(task)} is not a task of this source"
            return
        ref = self._refs_of(hits[0].rpartition(".")[2])[0]
        entry.entry.values[0] = ast.copy_location(ast.Constant(ref), task)

    def _sending_options(self, node: ast.expr | None) -> dict[str, ast.expr] | None:
        """Return the options with which a schedule sends its task; None if only running the code would tell their
        names."""
        node = self._named_value(node) if node is not None else None
        if not isinstance(node, ast.Dict):
            return None
        names = [
            key.value for key in node.keys if isinstance(key, ast.Constant) and isinstance(key.value, str)
        ]
        return dict(zip(names, node.values, strict=True)) if len(names) == len(node.keys) else None

    def _is_own_key(self, queue: str | None, routing_key: Any) -> bool:
        """Return whether a routing key is the name of its queue, and the queues are those that Celery makes: each has its
        name as its key."""
        return queue is not None and routing_key == queue and not self._has_own_exchanges

    def _note_priorities(self, file: str, node: ast.expr) -> None:
        """Record a gap, once, for priorities of schedules: their order depends on the broker."""
        if not self._has_priorities:
            self._has_priorities = True
            self._apart.add(len(self.report.gaps))
            self._gap(file, node, "priorities of schedules, with the larger number first, as in RabbitMQ",
                      "On Redis the smaller number goes first: write `priority` with the other sign. On RabbitMQ only queues "
                      "with "
                      "`x-max-priority` have an order.")  # fmt: skip

    def _routed(self, name: str, queue: str) -> str:
        """Add a workflow with one task, which runs the action on the queue that a schedule names. Return the name of
        the workflow."""
        queue = self._queues.route(queue)
        routed = bounded(f"{name}_on_{re.sub(r'[^A-Za-z0-9]+', '_', queue).strip('_').lower()}")
        schema = self._signatures[name].schema
        task: dict[str, Any] = {"action": f"{self.project.name}.{name}", "route": queue}
        if schema is None or schema:
            task["input"] = "{{ parameters }}"
        body: dict[str, Any] = {"tasks": {"run": task}, "output": "{{ tasks.run.result }}"}
        if schema is not None:
            body["parameters"] = {parameter: dict(about) for parameter, about in schema.items()}
        self.project.workflows[routed] = body
        return routed

    def _by_default(self, file: str, node: ast.expr, subject: str) -> ast.expr:
        """Return an expression in which the environment variables are replaced by their defaults. Record a gap for each
        variable, once."""
        replaced, defaults = with_defaults(node, self._constants)
        for variable, value in defaults.items():
            if variable in self._variables:
                continue
            self._variables.add(variable)
            self._apart.add(len(self.report.gaps))
            self._defaults[len(self.report.gaps)] = (
                variable,
                f"the variable {variable} of {subject}, with the default {value!r}",
            )
            self._gap(file, node, f"the variable {variable} of {subject}, imported with its default {value!r}",
                      "If the variable has another value, write the value that is in force.")  # fmt: skip
        return replaced if defaults else node

    def _withdraw_defaults(self, first: int) -> None:
        """Change the lines about defaults from this place on, since nothing with these defaults is made."""
        for number in [number for number in self._defaults if number >= first]:
            variable, text = self._defaults.pop(number)
            self._variables.discard(variable)
            line = self.report.gaps[number]
            self.report.gaps[number] = replace(
                line, what=_shortened(text), by_hand="Write the value that is in force."
            )

    def _named_value(self, node: ast.expr) -> ast.expr:
        """Return the value of a constant, or the one that a function without parameters returns."""
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and not (node.args or node.keywords)
        ):
            return self._returned.get(node.func.id, node)
        return self._constants.get(node.id, node) if isinstance(node, ast.Name) else node

    def _params(self, entry: Mapping[str, ast.expr], name: str) -> dict[str, Any]:
        args = literal(entry["args"], self._constants) if "args" in entry else ()
        kwargs = literal(entry["kwargs"], self._constants) if "kwargs" in entry else {}
        signature = self._signatures[name]
        if (
            name in self._unread_tasks
            and isinstance(args, list | tuple)
            and args
            and isinstance(kwargs, dict)
        ):
            if "args" in kwargs:
                raise NotLiteral("arguments by position beside one that is called `args`")
            return dict(sent({"args": args, **kwargs}))
        if (
            not isinstance(args, list | tuple)
            or not isinstance(kwargs, dict)
            or len(args) > len(signature.names)
        ):
            raise NotLiteral("arguments by position")
        params = {**dict(zip(signature.names, args, strict=False)), **kwargs}
        delivered: dict[str, Any] = sent(params)
        return delivered

    def _task_text(self, file: str, node: ast.expr) -> Any:
        """Return the value of `task` of a schedule. `weigh.name` is the name of the task in the sources."""
        if isinstance(node, ast.Attribute) and node.attr == "name":
            named = self._task_named(file, self._trees[file], node.value)
            if named is not None:
                return self._refs_of(named[0].rpartition(".")[2])[0]
        return literal(node, self._constants)

    def _refs_of(self, name: str) -> list[str]:
        """Return the names under which Celery may know the task of an action, the most likely first."""
        refs = [ref for ref, action in self._refs.items() if action == name]
        return refs + [ref for ref, actions in self._further_refs.items() if name in actions]

    def _known(self, task: Any) -> str | None:
        """Return the action of a task; None for a task that no file has. If the folder is a part of a larger package, a
        file may name the task by a longer path. Raises NotMapped if several tasks fit."""
        if not isinstance(task, str):
            return None
        exact = {self._refs[task]} if task in self._refs else set(self._further_refs.get(task, ()))
        names = exact or {
            name
            for name in self._refs.values()
            for ref in self._refs_of(name)
            if task.endswith(f".{ref}") and name not in self._fixed
        }
        if len(names) > 1:
            raise NotMapped(f"several tasks are {task}: {', '.join(sorted(names))}")
        return names.pop() if names else None

    def _add_tasks_of_schedules(self, schedules: list[tuple[str, str, ast.expr]]) -> None:
        """Add the tasks of schedules that no read file has. Routes and settings hold for them, too."""
        for file, _, node in schedules:
            for key, value in zip(node.keys, node.values, strict=True) if isinstance(node, ast.Dict) else ():
                if isinstance(key, ast.Constant) and key.value == "task":
                    with suppress(NotLiteral, NotMapped):
                        task = self._task_text(file, value)
                        if self._known(task) is None:
                            self._elsewhere(file, value, task)

    def _elsewhere(self, file: str, node: ast.expr, task: Any) -> str:
        """Add an action for a task that no read file has, and return its name. The function of the action is to be
        written."""
        if not isinstance(task, str):
            raise NotMapped(f"the task {ast.unparse(node)}")
        if task.startswith("celery."):
            raise _OfCelery(f"{task} is a task of Celery itself")
        name = bounded(_ascii_name(task) or "x")
        while name in self.project.actions:
            name += "_2"
        message = f"to do: what the task {task} did"
        source = f"def {name}_(**parameters):\n    raise NonRetryable({message!r})\n"
        self.project.actions[name] = (
            self.project.function(name, source)
            | {"timeout": None, "on_worker_loss": "fail"}
            | self._queues.of_unrouted()
        )
        self._refs[task], self._signatures[name] = name, Signature([], None)
        self._unread_tasks.add(name)
        self.report.found["tasks in other files"] += 1
        self._apart.add(len(self.report.gaps))
        function = f"the function {name}_ of {self.project.module}.py"
        if (place := self._of_classes.get(task)) is not None:
            about, by_hand = (
                f"is the class at {place}",
                f"Move its `run` into {function}, and write its options.",
            )
        else:
            about, by_hand = (
                "is not in the imported files",
                f"Import its file too, or write {function} with the options of the task.",
            )
            by_hand += " It may be a task whose name is computed." if self._has_computed_names else ""
        self._gap(file, node, f"the task {task} {about}", by_hand)
        return name

    # -- canvases, and gaps that are left -------------------------------------------------------------------------

    def _canvases(self, file: str, tree: ast.Module) -> None:
        names = dict(imported_names(tree))
        targets = {
            id(statement.value): statement.targets[0].id
            for statement in tree.body
            if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name)
        }
        for around, node in _canvas_places(tree, names):
            if (whole := self._parts.whole_of(file, node)) is not None:
                self._gap(
                    file, node, f"the canvas {ast.unparse(node)}, a part of the canvas at {whole}", PART
                )
                self._take(node)
                continue
            self.report.found["canvases"] += 1
            function = around.name if around is not None else targets.get(id(node), "module")
            parameters = _parameters_around(around, node) if around is not None else {}
            first = name = bounded(f"{_ascii_name(function)}_flow".lstrip("_"))
            number = 1
            while name in self.project.workflows or name in self.project.actions:
                number += 1
                name = f"{first}_{number}"
            try:
                if (change := change_of(tree, node)) is not None:
                    raise NotMapped(change)
                canvas = Canvas(
                    partial(self._task_named, file, tree),
                    parameters,
                    partial(collected, tree),
                    named=partial(signature_named, tree),
                )
                self.project.workflows[name] = canvas.workflow(node)
                self.report.place("workflows", name, file, node.lineno)
                self.report.map("canvases", name)
                self._tell_start(file, node, f"{self.project.name}.{name}", function, canvas)
            except (NotMapped, NotLiteral) as error:
                self._gap(file, node, f"the canvas {ast.unparse(node)}: {error}", "Write it as a workflow.")
            self._take(node)

    def _tell_start(self, file: str, node: ast.expr, workflow: str, function: str, canvas: Canvas) -> None:
        """Record the values that the function around a canvas computes, which its start must give the workflow."""
        for place in canvas.variables:
            self._take(place)
        if not canvas.computed:
            return
        own = {name: name for name in canvas.used if name not in canvas.computed}
        values = ", ".join(f'"{name}": {text}' for name, text in sorted((own | canvas.computed).items()))
        lists: list[str] = []
        for signatures in canvas.lists:
            for place in signatures.nodes:
                self._take(place)
            for place, item in zip(signatures.nodes, signatures.items, strict=False):
                list_name = ast.unparse(signatures.node)
                text = (
                    f"{list_name}.append({item})"
                    if signatures.comprehension is None
                    else f"{list_name} = {item}"
                )
                lists.append(f"{text} at line {place.lineno}")
        early = [
            f"{text} at line {place.lineno}" for place in canvas.variables for text in values_at_line(place)
        ]
        subject = f"the start of the workflow {workflow} by {function}, which computes {{{values}}}"
        subject += f", with {', '.join(lists + early)}" if lists or early else ""
        collect = f" First write {', and '.join(lists)}, where the list takes a signature." if lists else ""
        collect += f" First compute {', and '.join(early)}, where the signature is made." if early else ""
        pairs = " ".join(f"{name}=..." for name in sorted(canvas.used))
        self.report.gap(file, node.lineno, " ".join(subject.split()),
                        f'Write `await client.start("{workflow}", {{{values}}})` there.{collect} On the command line: '
                        f"`penstock run {workflow} {pairs}`.", counts=False)  # fmt: skip

    def _task_named(self, file: str, tree: ast.Module, node: ast.expr) -> tuple[str, Signature] | None:
        """Return the action and the parameters of the task that an expression names at this place."""
        last = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
        root = root_name(node)
        places: list[tuple[str, int]] = []
        for binding in bindings_at(tree, node, root):
            if isinstance(binding, ast.Import | ast.ImportFrom):
                if root in self._foreign_words(file, binding):
                    return None
                if isinstance(node, ast.Name):
                    last = next(alias.name for alias in binding.names if (alias.asname or alias.name) == root)
                places += self._places_imported(file, binding, root, last)
            elif isinstance(binding, ast.ClassDef):
                if isinstance(node, ast.Name):
                    return None
            elif isinstance(binding, ast.FunctionDef | ast.AsyncFunctionDef):
                places.append((file, binding.lineno))
                if self._action_at(places[-1]) is None:
                    return None
            else:
                return None
        # Several modules may have a task of this name. The statement that binds it tells which one is meant.
        name = self._functions.get(last) or (self._action_at(places[0]) if len(places) == 1 else None)
        if not name:
            return None
        return f"{self.project.name}.{name}", self._signatures[name]

    def _action_at(self, place: tuple[str, int]) -> str | None:
        """Return the action of the task with its function at a place: a file and a line."""
        names = (
            name
            for (section, name), own in self.report.places.items()
            if section == "actions" and own == place
        )
        return next(names, None)

    def _places_imported(
        self, file: str, statement: ast.Import | ast.ImportFrom, root: str, name: str
    ) -> list[tuple[str, int]]:
        """Return the places of the functions of tasks that a statement imports, by their name or within their module."""
        if isinstance(statement, ast.Import):
            return []
        module = absolute_path(file, statement)
        paths = {module} | {
            f"{module}.{alias.name}" for alias in statement.names if (alias.asname or alias.name) == root
        }
        return [
            (other, function.lineno)
            for other, function in self._task_functions
            if function.name == name and any(_is_module(other, path) for path in paths)
        ]

    def _foreign_words(self, file: str, statement: ast.Import | ast.ImportFrom) -> set[str]:
        """Return the names that a statement imports from a module which no read file has."""
        is_own = self._own_modules.contains
        if isinstance(statement, ast.Import):
            return {
                alias.asname or alias.name.partition(".")[0]
                for alias in statement.names
                if not is_own(alias.name)
            }
        path = absolute_path(file, statement)
        return {
            alias.asname or alias.name
            for alias in statement.names
            if path and not is_own(path) and not is_own(f"{path}.{alias.name}")
        }

    def _left(self, file: str, tree: ast.Module) -> None:
        """Record a gap for each use of Celery that nothing has mapped or reported."""
        for node in walk(tree):
            if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign) and id(node.value) in self._taken:
                self._take(node)
            elif _is_plain_update(node) and id(node.args[0]) in self._taken:
                self._take(node)  # its entries are mapped, or named one by one
        inside = {id(part) for node in walk(tree) if id(node) in self._taken for part in walk(node)}
        indirect = self._by_other_names.get(file, [])
        apps, is_config = self._applications.names(tree), file in self._config
        foreign = self._foreign_names(file)
        of_apps = self._applications.classes
        of_unread = {getattr(part, "name", "") for stub in self._unread_stubs.values() for part in stub.body}
        tasks = self._functions.keys() | of_unread
        direct = list(uses(tree, tasks, apps, is_config, foreign, of_apps)) if file in self._relevant else []
        inside |= self._taken
        equal: dict[tuple[object, ...], list[ast.AST]] = {}
        listed: set[int] = set()
        for use in sorted([*direct, *indirect], key=lambda use: getattr(use.node, "lineno", 1)):
            if id(use.node) not in inside | listed and (key := _repeated(tree, use)):
                listed.add(id(use.node))
                equal.setdefault(key, []).append(use.node)
        for use in [*direct, *indirect]:
            if id(use.node) not in inside:
                inside.add(id(use.node))
                name = use.subject.removeprefix("the setting ")
                advice = _UNREAD if name in self._unread else use.by_hand
                command_place = self._words.get((file, name))
                subject = use.subject
                is_signature = advice.startswith(SIGNATURE_BY_HAND)
                if is_signature and (whole := self._parts.whole_of(file, use.node)) is not None:
                    subject, advice = f"{subject}, a part of the canvas at {whole}", PART
                if command_place is not None and not is_config:
                    advice = f"It is a word of the command at {command_place} and not a setting of an application: see that line."
                self._note_made_task(tree, use)
                lines = equal.get(_repeated(tree, use), [])
                if lines and use.node is not lines[0]:
                    continue
                numbers = list(dict.fromkeys(str(getattr(node, "lineno", 1)) for node in lines))
                if len(numbers) > 1:
                    subject += f", also at line{'s' * (len(numbers) > 2)} {', '.join(numbers[1:])}"
                self._gap(file, use.node, subject, advice + self._queues.note(use.node))

    def _note_made_task(self, tree: ast.Module, use: Use) -> None:
        """Count a task that code makes with a call of `shared_task` for a function that is given to the result."""
        call = parents_of(tree).get(id(use.node))
        if (
            not isinstance(call, ast.Call)
            or call.func is not use.node
            or last_name(call.func) != "shared_task"
        ):
            return
        around = parents_of(tree).get(id(call))
        if isinstance(around, ast.Call) and around.func is call:
            self.report.found["tasks"] += 1

    def _take(self, node: ast.AST) -> None:
        self._taken.add(id(node))

    def _gap(self, file: str, node: ast.AST, subject: str, by_hand: str) -> None:
        self.report.gap(file, getattr(node, "lineno", 1), _shortened(subject), by_hand)


def _repeated(tree: ast.Module, use: Use) -> tuple[object, ...]:
    """Return a key that equal uses of a member of a bound task in one function have; empty for any other use."""
    is_member = isinstance(use.node, ast.Attribute | ast.Call) and use.by_hand == OF_MEMBER
    around: ast.AST | None = use.node
    while is_member and around is not None and not isinstance(around, ast.FunctionDef | ast.AsyncFunctionDef):
        around = parents_of(tree).get(id(around))
    return (id(around), use.subject) if is_member and around is not None else ()


def _ascii_name(theirs: str) -> str:
    """Return a valid Penstock name; an empty text if no character of the name is valid."""
    name = re.sub(r"\W+", "_", theirs, flags=re.ASCII).strip("_").lower()
    return name if not name or name[0].isalpha() else f"x_{name}"


def _options_of_beat(decorator: ast.expr, options: Mapping[str, ast.expr]) -> dict[str, ast.expr]:
    """Return the options that `@periodic_task` gives beat; none for any other decorator."""
    named = decorator.func if isinstance(decorator, ast.Call) else decorator
    if last_name(named) != "periodic_task" or "run_every" not in options:
        return {}
    return {name: value for name, value in options.items() if name in ("run_every", "relative", "options")}


def _entry_of_task(decorator: ast.expr, name: str, options: Mapping[str, ast.expr]) -> Entry:
    """Return the schedule that `@periodic_task` gives beat: the key is the name of the task."""
    assert isinstance(decorator, ast.Call)
    keys = ["task", *("schedule" if option == "run_every" else option for option in options)]
    written: list[ast.expr | None] = [ast.copy_location(ast.Constant(key), decorator) for key in keys]
    task = ast.copy_location(ast.Constant(name), decorator)
    entry = ast.copy_location(ast.Dict(written, [task, *options.values()]), decorator)
    return Entry(name, decorator, entry, places=[decorator])


def _shortened(subject: str) -> str:
    text = " ".join(subject.split())
    return text if len(text) <= _MAX_SHOWN else text[:_MAX_SHOWN] + " ..."


def _limit(value: ast.expr, constants: Mapping[str, ast.expr]) -> float:
    """Return a time limit. Raises NotLiteral for a value that is not a literal, and for 0, which lets Celery take
    another limit."""
    limit = seconds(value, constants)
    if not is_amount(limit) or limit == 0:
        raise NotLiteral(ast.unparse(value))
    return limit


def _bound(action: dict[str, Any], limit: float | None) -> None:
    """Give an action a time limit in seconds, and an executor that can end its process, as Celery does."""
    action["timeout"] = limit
    action.pop("executor", None)
    if limit is not None:
        action["executor"] = "process"


def _is_package(folder: Path) -> bool:
    """Return whether a folder is a package. The folder of a whole repository is not: its packages are imported from
    it."""
    if not folder.name.isidentifier() or not (folder / "__init__.py").exists():
        return False
    return not any((folder / name).exists() for name in ("manage.py", "pyproject.toml", "setup.py"))


def _stub(name: str, node: ast.FunctionDef | ast.AsyncFunctionDef, file: str, signature: Signature) -> str:
    message = f"to do: what {node.name} of {file} did"
    return f"def {name}_(**parameters):\n    raise NonRetryable({message!r})\n"


def _shared_constants(trees: Mapping[str, ast.Module], package: str) -> dict[str, ast.expr]:
    """Return the constants of all files. A name is left out if two files give it different values. So is one that a file
    imports from another package, or gives to an import as another name."""
    shared: dict[str, ast.expr] = {}
    ambiguous = set(_names_of_other_packages(trees, package))
    class_constants = _class_constants(trees)
    for tree in trees.values():
        own = constants_of(tree) | class_constants[id(tree)]
        ambiguous |= _assigned_names(tree) - own.keys()
        ambiguous |= {
            alias.asname
            for node in walk(tree)
            if isinstance(node, ast.Import | ast.ImportFrom)
            for alias in node.names
            if alias.asname and alias.asname != alias.name
        }
        ambiguous |= {
            ast.unparse(node)
            for node in walk(tree)
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
        }
        ambiguous |= {name for name in own.keys() & shared if ast.dump(own[name]) != ast.dump(shared[name])}
        shared |= own
    return {name: value for name, value in shared.items() if name not in ambiguous}


def _returned_values(trees: Mapping[str, ast.Module], package: str) -> dict[str, ast.expr]:
    """Return the value of each function of the sources that has no parameters and does nothing but return a value. A name
    that means anything else in a file is left out."""
    returned: dict[str, ast.expr] = {}
    meanings = Counter(_names_of_other_packages(trees, package))
    for tree in trees.values():
        imports = [node for node in walk(tree) if isinstance(node, ast.ImportFrom)]
        meanings += bound_names(tree) - Counter(name for node in imports for name, _ in imported_names(node))
        for node in tree.body:
            if not isinstance(node, ast.FunctionDef) or node.decorator_list or any(children(node.args)):
                continue
            body = node.body[1:] if ast.get_docstring(node) is not None else node.body
            if len(body) == 1 and isinstance(body[0], ast.Return) and body[0].value is not None:
                returned[node.name] = body[0].value
    return {name: value for name, value in returned.items() if meanings[name] == 1}


def _class_constants(trees: Mapping[str, ast.Module]) -> dict[int, dict[str, ast.expr]]:
    """Return the literals that classes give once, also through a base of the sources, by module and by `Class.name`."""
    classes: dict[str, list[ast.ClassDef]] = {}
    for tree in trees.values():
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                classes.setdefault(node.name, []).append(node)

    def values_of(class_: ast.ClassDef, below: frozenset[str]) -> dict[str, list[ast.expr]]:
        values: dict[str, list[ast.expr]] = {}
        for part in class_.body:
            for target in part.targets if isinstance(part, ast.Assign) else ():
                if isinstance(target, ast.Name) and isinstance(part, ast.Assign):
                    values.setdefault(target.id, []).append(part.value)
        for base in class_.bases:
            own = classes.get(last_name(base), [])
            is_single = len(own) == 1 and own[0].name not in below
            inherited = values_of(own[0], below | {class_.name}) if is_single else {}
            values = inherited | values  # a name of the class, or of an earlier base, counts
        return values

    return {
        id(tree): {
            f"{node.name}.{name}": values[0]
            for node in tree.body
            if isinstance(node, ast.ClassDef)
            for name, values in values_of(node, frozenset()).items()
            if len(values) == 1
            if isinstance(values[0], ast.Constant) or with_defaults(values[0], {})[1]
        }
        for tree in trees.values()
    }


@once
def _assigned_names(tree: ast.AST) -> set[str]:
    """Return the names of a module that a statement outside of functions and classes assigns."""
    names: set[str] = set()
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            continue
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        waiting.extend(children(node))
    return names


def _is_plain_update(node: ast.AST) -> TypeGuard[ast.Call]:
    """Return whether a node is a call of `update` with one dict."""
    return (
        isinstance(node, ast.Call) and called(node) == "update" and len(node.args) == 1 and not node.keywords
    )


def _value_at(tree: ast.Module, node: ast.expr) -> ast.expr:
    """Return the value that the last statement before a name gives it. An expression stays as it is if other statements than
    those at the top of the module give it values."""
    if not isinstance(node, ast.Name):
        return node
    values = [
        part.value
        for part in tree.body
        if isinstance(part, ast.Assign)
        and [getattr(target, "id", "") for target in part.targets] == [node.id]
    ]
    earlier = [value for value in values if value.lineno < node.lineno]
    is_certain = len(values) == bound_names(tree)[node.id] > 1 and not bound_names(tree)["*"]
    return earlier[-1] if is_certain and earlier else node


def _is_read_of_django(node: ast.Attribute) -> bool:
    """Return whether an expression reads a setting from `settings` of Django, which are those of the one source."""
    return isinstance(node.ctx, ast.Load) and ast.unparse(node.value).rpartition(".")[2] == "settings"


def _is_of_celery(name: str) -> bool:
    return name.startswith("CELERY") and is_known(name)


def _names_of_other_packages(trees: Mapping[str, ast.Module], package: str) -> Iterator[str]:
    """Yield each name that a file imports from a module which no read file has. Such a name is not a constant of the
    source."""
    modules = {file.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for file in trees}
    modules |= {f"{package}{module}" for module in modules} | {package.rstrip(".")}
    own = ModulePaths(modules)
    for file, tree in trees.items():
        for node in walk(tree):
            if not isinstance(node, ast.ImportFrom):
                continue
            path = absolute_path(file, node)
            if path and not own.fits(path):
                yield from (alias.asname or alias.name for alias in node.names)


def _files_with_application(trees: Mapping[str, ast.Module], relevant: Collection[str]) -> set[str]:
    """Return the files that import from a module with an application, and have no word of Celery themselves."""
    makers = {
        file
        for file in relevant
        if any(isinstance(node, ast.Call) and called(node).endswith("Celery") for node in walk(trees[file]))
    }
    stems = {file.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for file in makers}
    paths = ModulePaths(stems)
    return {
        file
        for file, tree in trees.items()
        if file not in relevant and any(_imports_one_of(file, node, paths) for node in walk(tree))
    }


def _imports_one_of(file: str, node: ast.AST, paths: ModulePaths) -> bool:
    if isinstance(node, ast.Import):
        return any(paths.fits(alias.name) for alias in node.names)
    if not isinstance(node, ast.ImportFrom):
        return False
    path = absolute_path(file, node)
    own = [path, *(f"{path}.{alias.name}".lstrip(".") for alias in node.names)]
    return any(name and paths.fits(name) for name in own)


def _config_files(trees: Mapping[str, ast.Module], sources: Collection[str]) -> set[str]:
    """Return the files that an application reads as settings, and the files from which these import all names. Plain
    names in all of them are settings."""
    files = set(sources)
    files |= {file for file in trees if file.rpartition("/")[2] in ("celeryconfig.py", "celery_config.py")}
    while True:
        further = {
            file
            for source in files
            for node in walk(trees[source])
            if isinstance(node, ast.ImportFrom)
            and any(alias.name in ("*", *_bases(trees[source])) for alias in node.names)
            for file in trees
            if _is_module(file, absolute_path(source, node))
        } - files
        if not further:
            return files
        files |= further


def _bases(tree: ast.Module) -> set[str]:
    """Return the names of all classes that classes of a module extend."""
    return {ast.unparse(base) for node in walk(tree) if isinstance(node, ast.ClassDef) for base in node.bases}


def _foreign_settings(
    trees: Mapping[str, ast.Module], config: set[str], package: str
) -> Iterator[tuple[str, ast.ImportFrom]]:
    """Yield each import in a settings module that takes all names, or settings, from a module which no read file has."""
    own = {file.removesuffix(".py").replace("/", ".").removesuffix(".__init__") for file in trees}
    own |= {f"{package}{stem}" for stem in own}
    own_paths = ModulePaths(own)
    packaged = ModulePaths(f"{package}{stem}" for stem in own if package)
    for file, tree in trees.items():
        stem = file.removesuffix(".py")
        bases = _bases(tree)
        has_settings = file in config or "settings" in stem or "config" in stem
        has_settings = has_settings or any(name.startswith("CELERY") for name in _assigned_names(tree))
        for node in walk(tree):
            if not isinstance(node, ast.ImportFrom):
                continue
            path = absolute_path(file, node)
            if path.partition(".")[0] in _WITHOUT_SETTINGS:
                continue
            is_base = (file in config or _has_settings_class(tree)) and bool(
                bases & {alias.asname or alias.name for alias in node.names}
            )
            takes_all = any(alias.name == "*" for alias in node.names) and (
                has_settings or "celery" in path.lower()
            )
            takes_settings = any(alias.name.startswith(("CELERY_", "BROKER_")) for alias in node.names)
            if (takes_all or takes_settings or is_base) and not (own_paths.ends(path) or packaged.fits(path)):
                yield file, node


@once
def _has_settings_class(tree: ast.AST) -> bool:
    """Return whether a class of a module gives settings of Django or of Celery."""
    return any(
        isinstance(target, ast.Name)
        and (target.id in _OF_DJANGO or target.id.startswith(("CELERY_", "CELERYBEAT_", "BROKER_")))
        for class_ in walk(tree)
        if isinstance(class_, ast.ClassDef)
        for part in class_.body
        if isinstance(part, ast.Assign | ast.AnnAssign)
        for target in (part.targets if isinstance(part, ast.Assign) else [part.target])
    )


def _is_module(file: str, path: str) -> bool:
    """Return whether a file is the module of a path, or that of a class at its end."""
    stem = file.removesuffix(".py").replace("/", ".").removesuffix(".__init__")
    return any(
        stem == name or stem.endswith(f".{name}") or name.endswith(f".{stem}")
        for name in (path, path.rpartition(".")[0])
        if name
    )


def _assigned(tree: ast.Module, apps: set[str], plain: bool) -> list[tuple[ast.AST, str, ast.expr]]:
    """Return the place, the name and the value of each setting that a module gives as a whole value."""
    hits: list[tuple[ast.AST, str, ast.expr]] = []
    maybe_run, local = conditional(tree), local_statements(tree)
    for node in walk(tree):
        if id(node) in maybe_run or id(node) in local:
            continue  # only running the code would tell whether the setting counts
        if (isinstance(node, ast.Assign) and len(node.targets) == 1) or (
            isinstance(node, ast.AnnAssign) and node.value is not None
        ):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            assert node.value is not None
            if (setting := setting_of(target)) is not None:
                hits.append((node, setting, node.value))
            elif isinstance(target, ast.Name) and (
                is_setting(target.id, plain) or (plain and target.id == ZONE_OF_DJANGO)
            ):
                hits.append((node, target.id, node.value))
        hits += [(value, name, value) for name, value in settings_within(node)]
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            if name.endswith("conf.update") or name.rpartition(".")[2] == "Celery":
                hits += [(word.value, word.arg, word.value) for word in node.keywords if word.arg is not None]
            if name.endswith("conf.update") or name.rpartition(".")[2] == "add_defaults":
                plain_dicts = [
                    part for part in node.args if isinstance(part, ast.Dict) and not settings_within(part)
                ]
                hits += [
                    (value, str(key.value), value)
                    for part in plain_dicts
                    for key, value in zip(part.keys, part.values, strict=True)
                    if isinstance(key, ast.Constant)
                ]
    return [hit for hit in hits if hit[1].islower() or is_setting(hit[1]) or hit[1] == ZONE_OF_DJANGO]


def _has_conditional_setting(
    tree: ast.Module, unread: Collection[str], names: Collection[str] = ZONES
) -> bool:
    maybe_run = conditional(tree) - local_statements(tree)
    return any(
        isinstance(node, ast.Assign)
        and id(node) in maybe_run
        and (setting_of(target) or (target.id if isinstance(target, ast.Name) else ""))
        in set(names) - set(unread)
        for node in walk(tree)
        for target in (node.targets if isinstance(node, ast.Assign) else ())
    )


def _without_alternatives(
    places: list[tuple[str, ast.Call]], trees: Mapping[str, ast.Module]
) -> list[tuple[str, ast.Call]]:
    """Return the calls that make applications, and only the first of those in the two branches of an `if` that give
    one name an application: only one of them runs."""
    remaining: list[tuple[str, ast.Call, tuple[object, ...]]] = []
    for file, call in places:
        parents = parents_of(trees[file])
        statement = parents.get(id(call))
        test = parents.get(id(statement)) if isinstance(statement, ast.Assign) else None
        key: tuple[object, ...] = (id(call),)
        if isinstance(statement, ast.Assign) and isinstance(test, ast.If):
            branch = "body" if statement in test.body else "else"
            while isinstance(outer := parents.get(id(test)), ast.If) and outer.orelse == [test]:
                test, branch = outer, "else"  # an `elif`
            key = (id(test), ast.unparse(statement.targets[0]), branch)
        if any(other[:2] == key[:2] and len(key) > 1 and other[2:] != key[2:] for _, _, other in remaining):
            continue
        remaining.append((file, call, key))
    return [(file, call) for file, call, _ in remaining]


def _changed_name(node: ast.AST) -> str:
    """Return the variable that a node assigns, or may change in place; empty for any other node."""
    if isinstance(node, ast.Name | ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load):
        return root_name(node)
    call = node.value if isinstance(node, ast.Expr) else None
    is_method = isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)
    return root_name(call) if call is not None and is_method else ""


def _parameters_around(
    function: ast.FunctionDef | ast.AsyncFunctionDef, canvas: ast.expr
) -> dict[str, dict[str, Any] | None]:
    """Return the schemas of the parameters of a function that it does not assign or change itself. The schema is None for
    a default that is computed, and for a list or a dict that other code may change in place."""
    arguments = function.args
    signature = signature_of(function, False)
    stored = {*map(_changed_name, walk(function)), *names_bound_otherwise(function)}
    within = set(map(id, ast.walk(canvas)))
    elsewhere = {node.id for node in walk(function) if isinstance(node, ast.Name) and id(node) not in within}
    parameters: dict[str, dict[str, Any] | None] = {}
    for entry in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]:
        if entry.arg in stored:
            continue
        schema = signature.named[entry.arg]
        is_changing = isinstance(schema.get("default"), dict | list) and entry.arg in elsewhere
        parameters[entry.arg] = None if entry.arg in signature.computed or is_changing else schema
    return parameters


def _canvas_places(
    tree: ast.Module, names: Mapping[str, str]
) -> list[tuple[ast.FunctionDef | ast.AsyncFunctionDef | None, ast.expr]]:
    """Return the outermost canvases, each with the function around it."""
    places: list[tuple[ast.FunctionDef | ast.AsyncFunctionDef | None, ast.expr]] = []
    waiting: list[tuple[ast.AST, ast.FunctionDef | ast.AsyncFunctionDef | None]] = [(tree, None)]
    while waiting:
        node, around = waiting.pop()
        if isinstance(node, ast.expr) and is_canvas(node, names):
            places.append((around, node))
            continue
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            around = node
        waiting.extend((child, around) for child in reversed(children(node)))
    return places


def _scripts(folder: Path) -> Iterator[Path]:
    """Yield the Python scripts without a suffix."""
    for file in folder.rglob("*"):
        parts = file.relative_to(folder).parts
        if (
            file.suffix
            or not file.is_file()
            or any(part.startswith(".") for part in parts)
            or "node_modules" in parts
        ):
            continue
        with suppress(OSError), file.open("rb") as opened:
            if _OF_PYTHON.match(opened.read(80)):
                yield file


def _is_test(file: Path) -> bool:
    """Return whether a file has tests, as pytest and Django find them. Settings for tests are read."""
    is_module = file.name == "tests.py" or (
        file.stem.endswith("_test") and not {"config", "settings"} & {*file.stem.split("_")}
    )
    return is_module or file.name.startswith(("test_", "conftest.")) or "tests" in file.parts
