"""Rules of this house that no linter knows. `make check` runs it; it prints what breaks a rule, and where.

`python -m tests.house_rules advice` prints the files and functions that are long. That is not a fault: a file is as long as its
one subject needs. It is a place to look for a second subject.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path, PurePosixPath

from tests.mirror import broken_limit
from tests.prose_counts import broken_limits, broken_subjects
from tests.reach import broken_reach

LONGEST = 300  # lines of a source file, as advice
SOURCES = {".py", ".sql", ".js", ".css", ".html", ".sh"}
# A namesake of `common` or `services` would shadow a user's own package of that name.
BARE = {"common/__init__.py", "services/__init__.py"}
# Written in two pieces, so that this file does not break its own rules.
# The routes of the worker protocol are not paths of a machine.
PROTOCOL = r"(?!(?:NAME|hello|take|beat|log|progress|finish|bye)\b)"
MACHINE_PATH = re.compile(r"(?<![\w.])/(?:work|home|Us" rf"ers)/{PROTOCOL}[\w.-]+|/ro" r"ot/[\w.-]+")
INDEX = re.compile(r"pypi\.o" r"rg|pythonhos" r"ted|--(?:extra-)?index-u" r"rl[ =]|--find-li" r"nks[ =]")

UNFILLED = re.compile(r"(?<!\{)\{[a-z_][\w.]*(?:![rs])?\}(?!\})")
"""The place of a value in a text that was meant to be an f-string. `{{ secrets.NAME }}` is a template."""

FUNCTIONS = PurePosixPath("migrations/functions")
LONGEST_FUNCTION = 60  # lines of SQL, from `create` on, as advice
PROFILES = frozenset(tomllib.loads((Path(__file__).parents[1] / FUNCTIONS / "planner.toml").read_text()))
CREATED = re.compile(r"^create\s+(?:or\s+replace\s+)?function\s+(\w+)", re.MULTILINE | re.IGNORECASE)
MADE = re.compile(r"\bcreate\s+(?:or\s+replace\s+)?(function|trigger)\b", re.IGNORECASE)
PLACE_MOVED = re.compile(r"\bupdate\s+execution\b(?:(?!\bwhere\b)[^;])*?\bready_at\s*=", re.IGNORECASE)
PLACES_MOVE_IN = {
    FUNCTIONS / "executions/finish_attempts.sql",
    FUNCTIONS / "executions/join_starts.sql",
    FUNCTIONS / "executions/reschedule_execution.sql",
    FUNCTIONS / "executions/resume_asking.sql",
    FUNCTIONS / "executions/settle_outside.sql",
    FUNCTIONS / "durable/wake_functions.sql",
}
CREATED_TABLE = re.compile(
    r"\bcreate\s+(?:unlogged\s+)?table\s+(?:if\s+not\s+exists\s+)?(\w+)", re.IGNORECASE
)
ALTERED = r"\balter\s+table\s+(?:only\s+)?(\w+)[^;]*?"
LONG_LOCKS = {
    r"\bcreate\s+(?:unique\s+)?index\s+(?!concurrently\b)[^;]*?\bon\s+(?:only\s+)?(\w+)": (
        "an index that is built while writers wait; `concurrently`, in an autocommit_block"
    ),
    ALTERED + r"\balter\s+(?:column\s+)?\w+\s+(?:set\s+data\s+)?type\b": (
        "a table that is written anew; add a column, and move over"
    ),
    ALTERED + r"\bset\s+not\s+null\b": (
        "a table that is read through; a check that is `not valid`, validated by another version"
    ),
    ALTERED + r"\badd\s+(?:constraint\s+\w+\s+)?(?:check|foreign\s+key)\b(?![^;]*\bnot\s+valid\b)": (
        "a constraint that reads the table through; `not valid`, validated by another version"
    ),
    r"(?<!table )\b(?:cluster|vacuum\s+full|reindex)\s+(?:table\s+)?(\w+)": "a table that nobody can use meanwhile",
}
DECISION_HEAD = re.compile(
    r"# \d{4} · [^\n]+\n\n"
    r"Status: (?:proposed|accepted|superseded by \[\d{4}\]\([^)\n]+\)) · Date: \d{4}-\d\d-\d\d\n\n"
    r"Context: [^\n]+\n\n"
)
PLANNER = re.compile(r"^-- planner: (.*)$", re.MULTILINE)
PLANNED = re.compile(r"\bset\s+(?:local\s+)?(?:enable_\w+|plan_cache_mode|jit)\b", re.IGNORECASE)

# Where SQL may stand in Python: it is what the store is for; tests, benchmarks and pages ask the database themselves.
SQL_ROOMS = ("common/penstock/store", "migrations", "tests", "bench", "docs")
OBJECT = r"(?:table|index|function|trigger|schema|database|role|user|type|view|extension|sequence)"
SQL = re.compile(
    r"""\s*(?:
        select\s | insert\s+into\s | delete\s+from\s | update\s+\S+(?:\s+(?:as\s+)?\w+)?\s+set\s
        | with\s+(?:recursive\s+)?\w+\s*(?:\([^)]*\)\s*)?as\s*(?:(?:not\s+)?materialized\s*)?\(
        | create\s+(?:or\s+replace\s+)?(?:unique\s+|temp\s+|temporary\s+|unlogged\s+|materialized\s+)?OBJECT\b
        | (?:alter|drop)\s+OBJECT\s+(?:if\s+exists\s+)?["\w.{]+\s*(?:$|;|cascade|\w+\s+\w)
        | truncate\s+(?:table\s+)?["\w.]+\s*(?:$|;|,|cascade) | lock\s+table\s
        | copy\s+["\w.]+\s*(?:\([^)]*\)\s*)?(?:from|to)\s | (?:listen|unlisten)\s+["\w.]+\s*(?:$|;)
        | notify\s+["\w.]+\s*(?:$|;|,) | set\s+(?:local|session)\s | do\s+\$
    )""".replace("OBJECT", OBJECT),
    re.IGNORECASE | re.VERBOSE,
)

PUBLIC_PAGE = Path(__file__).parents[1] / "docs/extending.md"
PUBLIC_ROW = re.compile(r"^\| `(penstock[\w.]*)` \| (all|(?:`\w+`(?:, )?)+) \|", re.MULTILINE)
PUBLIC = {
    module: frozenset(re.findall(r"\w+", names))
    for module, names in PUBLIC_ROW.findall(PUBLIC_PAGE.read_text())
}
"""The names of the product that a package may import, by module, as its page lists them: `{"all"}` for all of a module."""

SHORTEST_CUT = 50
UNMARKED_CUTS = {
    "common/penstock/client/checked_arguments.py": "an argument of a call, which has dots",
    "common/penstock/language/schemas/fault_texts.py": "a value, which has dots, and was masked whole",
    "common/penstock/language/terms/outside_names.py": "a name, which has dots",
    "common/penstock/language/workflows/diff.py": "a part of a definition, which has dots",
    "common/penstock/store/session/connecting.py": "the name of a session, which PostgreSQL bounds",
    "common/penstock/testing/worker_conformance/cases.py": "a value of a test, with its length",
    "services/penstock_api/pages/account.py": "a password or a code, which is compared and not shown",
    "services/penstock_api/routes/log_in.py": "the key of a limit, which is not shown",
}
"""The files that may cut a text without the mark, with the reason."""

OUTSIDE_ROOMS = (
    "common/penstock/attempts/http",
    "common/penstock/cli",
    "common/penstock/client",
    "common/penstock/language",
    "common/penstock/run",
    "services/penstock_api",
    "services/penstock_executor/handlers",
    "services/penstock_worker/executors",
    "services/penstock_worker/gateway",
)
"""The rooms that get JSON from people, programs and other machines."""
STORED = "values of the database, which were checked before they were stored"
ENCODED = "a value that the same function has checked and encoded"
OWN = "a document of another part of Penstock"
JSON_READERS = {
    **dict.fromkeys(
        (
            "common/penstock/cli/demo_run.py",
            "common/penstock/cli/inquiries.py",
            "common/penstock/cli/limits.py",
            "common/penstock/cli/operations.py",
            "common/penstock/cli/polls.py",
            "common/penstock/cli/schedule_views.py",
            "common/penstock/cli/schedules.py",
            "common/penstock/cli/webhooks.py",
            "common/penstock/client/changed_parameters.py",
            "common/penstock/client/commands.py",
            "common/penstock/client/durable_commands.py",
            "common/penstock/client/inquiries.py",
            "common/penstock/client/publishing.py",
            "common/penstock/client/rule_errors.py",
            "common/penstock/client/rule_replays.py",
            "common/penstock/client/schedules.py",
            "common/penstock/client/starts.py",
            "services/penstock_api/models/model.py",
            "services/penstock_api/pages/drafts.py",
            "services/penstock_api/pages/execution.py",
            "services/penstock_api/pages/inquiries.py",
            "services/penstock_api/pages/schedules.py",
            "services/penstock_api/pages/templating.py",
            "services/penstock_api/pages/webhooks.py",
            "services/penstock_api/routes/executions.py",
            "services/penstock_api/work/sessions.py",
            "services/penstock_executor/handlers/event_created.py",
            "services/penstock_executor/handlers/event_received.py",
        ),
        STORED,
    ),
    **dict.fromkeys(
        (
            "common/penstock/cli/trial.py",
            "common/penstock/language/definitions/document.py",
            "common/penstock/language/rules/secret_references.py",
            "common/penstock/language/schemas/schema.py",
            "common/penstock/language/schemas/storable_json.py",
            "common/penstock/language/workflows/model.py",
            "common/penstock/run/outcomes.py",
            "common/penstock/run/stored_json.py",
        ),
        ENCODED,
    ),
    **dict.fromkeys(
        (
            "common/penstock/cli/__init__.py",
            "services/penstock_worker/executors/cluster_attempt.py",
            "services/penstock_worker/executors/python/child_process.py",
            "services/penstock_worker/executors/python/frames.py",
            "services/penstock_worker/gateway/gateway_client.py",
        ),
        OWN,
    ),
    "common/penstock/run/json_integers.py": "the loader",
    "common/penstock/run/result_encoding.py": "the loader of results, which refuses large integers",
    "services/penstock_api/auth/access.py": "the audited values of a body, which the route loads and checks itself",
    "services/penstock_api/pages/provider_sign_in.py": "a cookie of texts",
    "services/penstock_api/pages/schema_form.py": "whether a text is JSON: the value is dropped",
    "services/penstock_executor/handlers/dead_letter.py": "whether a body is JSON: the value is dropped",
    "common/penstock/attempts/http/http_client.py": "an answer, of which large integers are refused",
    "services/penstock_worker/executors/kubernetes/kubernetes_api.py": "an answer of Kubernetes, of which texts are read",
    "services/penstock_worker/executors/processes/program_result.py": "whether a text is JSON: the result is checked",
    "services/penstock_api/requests/description.py": "the description of the API itself",
}
"""The files of these rooms that may decode JSON without the loader, with the reason."""

Rule = Callable[[PurePosixPath, str], Iterator[tuple[int, str]]]


def no_bare_packages(path: PurePosixPath, text: str) -> Iterator[tuple[int, str]]:
    if str(path) in BARE:
        yield 1, "this would make the folder a package and shadow a user's own"


def imports_stay_in_their_layer(path: PurePosixPath, text: str) -> Iterator[tuple[int, str]]:
    """common imports no service, a service no other one, and migrations nothing of ours."""
    if path.suffix != ".py" or path.parts[0] not in ("common", "services", "migrations"):
        return
    for line, package in _imported(text):
        service = package.startswith("penstock_")
        if path.parts[0] == "common" and service:
            yield line, f"common imports the service {package}"
        if path.parts[0] == "services" and service and package != path.parts[1]:
            yield line, f"{path.parts[1]} imports another service, {package}"
        if path.parts[0] == "migrations" and (service or package == "penstock"):
            yield line, f"a migration imports live code, {package}, and so would change with it"


def extras_use_the_public_interface(path: PurePosixPath, text: str) -> Iterator[tuple[int, str]]:
    """A package in extras/ imports of the product only what docs/extending.md lists, each name from its module."""
    if path.suffix != ".py" or path.parts[0] != "extras":
        return
    for line, module, name in _imported_names(text):
        root = module.partition(".")[0]
        if not re.fullmatch(r"penstock(_\w+)?", root) or root in path.parts:
            continue
        if name is None or not _is_public(module, name):
            shown = module if name is None else f"{module}.{name}"
            yield line, f"{shown} is not public; use the names of {PUBLIC_PAGE.name}, or make it public there"


def versions_lock_briefly(path: PurePosixPath, text: str) -> Iterator[tuple[int, str]]:
    """After the baseline, tables may have any size, and replicas are at work on them, but for those that the file makes."""
    if not path.is_relative_to("migrations/versions") or path.parts[2].startswith("0001"):
        return
    tables = set(CREATED_TABLE.findall(text))
    for pattern, fault in LONG_LOCKS.items():
        for match in re.finditer(pattern, text, re.IGNORECASE):
            if match[1] not in tables:
                yield _line(text, match), f"{match[1]}: {fault}"


def files_stay_small(path: PurePosixPath, text: str) -> Iterator[tuple[int, str]]:
    lines = text.count("\n")
    if path.suffix in SOURCES and lines > LONGEST:
        yield LONGEST + 1, f"{lines} lines; more than {LONGEST} want to be several files"


def no_machine_paths(path: PurePosixPath, text: str) -> Iterator[tuple[int, str]]:
    yield from _matches(MACHINE_PATH, text, "a path of one machine")


def no_package_index(path: PurePosixPath, text: str) -> Iterator[tuple[int, str]]:
    yield from _matches(INDEX, text, "a package index; everyone's pip has its own settings")
    if path.name.startswith("requirements") or path.name == "package-lock.json":
        yield from _matches(re.compile(r"https?://"), text, "an address in locked requirements")


def functions_have_one_home(path: PurePosixPath, text: str) -> Iterator[tuple[int, str]]:
    """One function a file, of the same name, and none anywhere else in the migrations."""
    if path.is_relative_to("migrations/versions") and path.suffix in (".py", ".sql"):
        for match in MADE.finditer(text):
            yield _line(text, match), f"a {match[1]} in a migration: it belongs below {FUNCTIONS}"
    if not _is_function(path):
        return
    names = [match[1] for match in CREATED.finditer(text)]
    if names != [path.stem]:
        yield 1, f"makes {', '.join(names) or 'no function'}, where one of the file's name should be"
    elif not text.startswith("-- "):
        yield 1, "does not begin with a comment that says what the function does"


def functions_stay_small(path: PurePosixPath, text: str) -> Iterator[tuple[int, str]]:
    match = CREATED.search(text) if _is_function(path) else None
    if match is None:
        return
    lines = text[match.start() :].rstrip().count("\n") + 1
    if lines > LONGEST_FUNCTION:
        yield _line(text, match), f"{lines} lines; more than {LONGEST_FUNCTION} want to be several functions"


def plans_are_chosen_by_profile(path: PurePosixPath, text: str) -> Iterator[tuple[int, str]]:
    """Plans are chosen by planner.toml alone: a setting in a function's file would be overlooked."""
    if not _is_function(path):
        return
    named = list(PLANNER.finditer(text))
    for profile in named:
        if profile[1] not in PROFILES:
            yield _line(text, profile), f"no profile of planner.toml: {profile[1]}"
    if len(named) > 1:
        yield _line(text, named[1]), "a second planner profile"
    for setting in PLANNED.finditer(text):
        yield (
            _line(text, setting),
            f"a planner setting; profiles are in {FUNCTIONS}/planner.toml: {setting[0]}",
        )


def places_in_line_stay(path: PurePosixPath, text: str) -> Iterator[tuple[int, str]]:
    """Only a retry, what was answered or rescheduled, and a function that is woken become ready anew: a restage, a recovery or a
    hand-back that sets `ready_at` lets others overtake (I4)."""
    if _is_function(path) and path not in PLACES_MOVE_IN:
        for moved in PLACE_MOVED.finditer(text):
            yield _line(text, moved), "an execution's place in line is moved"


def sql_stands_in_the_store(path: PurePosixPath, text: str) -> Iterator[tuple[int, str]]:
    """No other room has a text that is a statement: not even one that it hands to an owner of the connection."""
    if path.suffix != ".py" or any(path.is_relative_to(room) for room in SQL_ROOMS):
        return
    tree = ast.parse(text)
    docstrings = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str) or id(node) in docstrings:
            continue
        if SQL.match(node.value):
            start = " ".join(node.value.split())[:50]
            yield node.lineno, f"SQL outside of the store (it belongs in {SQL_ROOMS[0]}): {start}"


def cuts_have_marks(path: PurePosixPath, text: str) -> Iterator[tuple[int, str]]:
    """The piece of a secret is masked only beside the mark of a cut. A slice with a number of SHORTEST_CUT or more is a cut."""
    if path.suffix != ".py" or path.parts[0] not in ("common", "services") or str(path) in UNMARKED_CUTS:
        return
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Subscript) or not isinstance(node.slice, ast.Slice):
            continue
        lower, upper = node.slice.lower, node.slice.upper
        bound = upper.value if isinstance(upper, ast.Constant) else None
        if lower is None and isinstance(bound, int) and bound >= SHORTEST_CUT:
            yield node.lineno, "a cut without a mark; use penstock.run.cut_texts.cut_end"


def outside_json_has_one_loader(path: PurePosixPath, text: str) -> Iterator[tuple[int, str]]:
    """A plain decoder turns an integer of more than 64 bits into another number, and drops one of two members of one name."""
    if path.suffix != ".py" or not any(path.is_relative_to(room) for room in OUTSIDE_ROOMS):
        return
    if str(path) not in JSON_READERS:
        yield from _matches(
            re.compile(r"\b(?:or)?json\.loads?\("), text, "JSON from outside; use penstock.run.json_integers"
        )


def hints_are_filled_in(path: PurePosixPath, text: str) -> Iterator[tuple[int, str]]:
    """A hint with `{name}` in a text without the prefix `f` shows the braces to the user."""
    if path.suffix != ".py" or path.parts[0] not in ("common", "services", "extras"):
        return
    for node in ast.walk(ast.parse(text)):
        if not (
            isinstance(node, ast.keyword) and node.arg == "hint" and isinstance(node.value, ast.Constant)
        ):
            continue
        if match := UNFILLED.search(str(node.value.value)):
            yield node.value.lineno, f"a hint that is not filled in: {match[0]}"


def decisions_have_heads(path: PurePosixPath, text: str) -> Iterator[tuple[int, str]]:
    """A decision has its number and title, its status and date, and one sentence of context, in this order."""
    if path.is_relative_to("docs/decisions") and path.suffix == ".md" and not DECISION_HEAD.match(text):
        yield 1, "does not begin with `# NNNN · Title`, `Status: ... · Date: ...` and `Context: ...`"


RULES: tuple[Rule, ...] = (
    no_bare_packages,
    imports_stay_in_their_layer,
    extras_use_the_public_interface,
    versions_lock_briefly,
    no_machine_paths,
    no_package_index,
    functions_have_one_home,
    plans_are_chosen_by_profile,
    places_in_line_stay,
    sql_stands_in_the_store,
    cuts_have_marks,
    outside_json_has_one_loader,
    hints_are_filled_in,
    decisions_have_heads,
)
ADVICE: tuple[Rule, ...] = (files_stay_small, functions_stay_small)
"""Rules that a file may break: it is as long as its one subject needs."""


def broken(root: Path, paths: list[str], rules: tuple[Rule, ...] = RULES) -> Iterator[str]:
    """`path:line: what is wrong` for each rule that one of these files (relative to root) breaks."""
    for name in paths:
        file = root / name
        try:
            text = file.read_text()
        except (UnicodeDecodeError, FileNotFoundError, IsADirectoryError):
            continue  # a picture, a file just removed, a link to a folder
        for rule in rules:
            for line, fault in rule(PurePosixPath(name), text):
                yield f"{name}:{line}: {fault}"


def tracked(root: Path) -> list[str]:
    """The files of the repository, new ones included, ignored ones not; of an archive, all of them."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=root,
        capture_output=True,
        text=True,
    )
    if listing.returncode == 0:
        return sorted(set(filter(None, listing.stdout.split("\0"))))
    hidden = re.compile(r"(^|/)(\.venv[^/]*|__pycache__|[^/]+\.egg-info|\.\w+_cache)/")
    everything = (path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file())
    return sorted(name for name in everything if not hidden.search(name))


def _is_function(path: PurePosixPath) -> bool:
    return path.suffix == ".sql" and path.is_relative_to(FUNCTIONS)


def _line(text: str, found: re.Match[str]) -> int:
    return text.count("\n", 0, found.start()) + 1


def _imported(text: str) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name.partition(".")[0]) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.lineno, node.module.partition(".")[0]


def _imported_names(text: str) -> Iterator[tuple[int, str, str | None]]:
    """Yield line, module and name of each import. A module that is imported as a whole has no name."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name, None) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from ((node.lineno, node.module, alias.name) for alias in node.names)


def _is_public(module: str, name: str) -> bool:
    names = PUBLIC.get(module, frozenset())
    if names != {"all"}:
        return name in names
    loaded = import_module(module)
    return name in getattr(loaded, "__all__", [n for n in vars(loaded) if not n.startswith("_")])


def _matches(pattern: re.Pattern[str], text: str, what: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text.splitlines(), start=1):
        match = pattern.search(line)
        if match:
            yield number, f"{what}: {match[0]}"


def main() -> None:
    root = Path(__file__).resolve().parents[1]
    if sys.argv[1:] == ["advice"]:
        print("\n".join(broken(root, tracked(root), ADVICE)) or "No file is long.")
        return
    lines = [
        *broken(root, tracked(root)),
        *broken_limits(root),
        *broken_limit(root),
        *broken_reach(root),
        *broken_subjects(root),
    ]
    print("\n".join(lines) or "The rules of the house are kept.")
    sys.exit(bool(lines))


if __name__ == "__main__":
    main()
