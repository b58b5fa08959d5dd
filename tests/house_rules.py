"""Rules of this house that no linter knows. `make check` runs it; it prints what breaks a rule, and where."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath

LONGEST = 350  # lines of a source file
SOURCES = {".py", ".sql", ".js", ".css", ".html", ".sh"}
# A namesake of `common` or `services` would shadow a user's own package of that name.
BARE = {"common/__init__.py", "services/__init__.py"}
# Written in two pieces, so that this file does not break its own rules.
MACHINE_PATH = re.compile(r"/(?:work|home|Us" r"ers)/[\w.-]+|/ro" r"ot/[\w.-]+")
INDEX = re.compile(r"pypi\.o" r"rg|pythonhos" r"ted|--(?:extra-)?index-u" r"rl[ =]|--find-li" r"nks[ =]")

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


def files_stay_small(path: PurePosixPath, text: str) -> Iterator[tuple[int, str]]:
    lines = text.count("\n")
    if path.suffix in SOURCES and lines > LONGEST:
        yield LONGEST + 1, f"{lines} lines; more than {LONGEST} want to be several files"


def no_machine_paths(path: PurePosixPath, text: str) -> Iterator[tuple[int, str]]:
    yield from _matches(MACHINE_PATH, text, "a path of one machine")


def no_package_index(path: PurePosixPath, text: str) -> Iterator[tuple[int, str]]:
    yield from _matches(INDEX, text, "a package index; everyone's pip has its own settings")
    if path.name.startswith("requirements"):
        yield from _matches(re.compile(r"https?://"), text, "an address in locked requirements")


RULES: tuple[Rule, ...] = (
    no_bare_packages,
    imports_stay_in_their_layer,
    files_stay_small,
    no_machine_paths,
    no_package_index,
)


def broken(root: Path, paths: list[str]) -> Iterator[str]:
    """`path:line: what is wrong` for each rule that one of these files (relative to root) breaks."""
    for name in paths:
        file = root / name
        try:
            text = file.read_text()
        except (UnicodeDecodeError, FileNotFoundError, IsADirectoryError):
            continue  # a picture, a file just removed, a link to a folder
        for rule in RULES:
            for line, what in rule(PurePosixPath(name), text):
                yield f"{name}:{line}: {what}"


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


def _imported(text: str) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name.partition(".")[0]) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.lineno, node.module.partition(".")[0]


def _matches(pattern: re.Pattern[str], text: str, what: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text.splitlines(), start=1):
        found = pattern.search(line)
        if found:
            yield number, f"{what}: {found[0]}"


def main() -> None:
    root = Path(__file__).resolve().parents[1]
    lines = list(broken(root, tracked(root)))
    print("\n".join(lines) or "The rules of the house are kept.")
    sys.exit(bool(lines))


if __name__ == "__main__":
    main()
