"""The commands of Celery in the files of an application that are not Python: scripts, units, settings of containers. Rows
of django-celery-beat and copies of settings are gaps, too."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from penstock_import.celery_calls import walk
from penstock_import.celery_commands import advice, of_variable, words_of_code
from penstock_import.celery_queues import Queues
from penstock_import.celery_setting_names import advice_of, is_known
from penstock_import.command_lines import (
    COMMAND,
    OTHER_PARTS,
    PARTS,
    command_lines,
    entry_points,
    is_prose,
    script_lines,
)
from penstock_import.command_variables import variables
from penstock_import.passed_arguments import (
    Programs,
    calls,
    may_run_celery,
    passing_functions,
    passing_words,
    run_of,
    without_prose,
)

_PROSE_SUFFIXES = frozenset(
    {
        ".adoc",
        ".css",
        ".csv",
        ".htm",
        ".html",
        ".ipynb",
        ".lock",
        ".log",
        ".map",
        ".md",
        ".po",
        ".pot",
        ".rst",
        ".svg",
        ".txt",
    }
)
"""The ends of files that run nothing."""
_PYTHON = frozenset({".py", ".pyi", ".pyx"})
_LEFT_OUT = frozenset({".git", ".tox", ".venv", "node_modules", "site-packages", "test", "tests", "docs"})
_MAX_BYTES = 1_000_000
_ROWS = re.compile(r"""["']?model["']?\s*:\s*["']?django_celery_beat\.(\w+)""")
_OF_UNITS = re.compile(
    r"""\s*(?:-\s+)?(?:(?:export|set|ENV|Environment)[\s=]+)?["']?(CELERY\w*_OPTS|CELERY(?:D|BEAT)_\w+)["']?\s*[:=]\s*(.*)"""
)
"""A pattern for a line that gives a script or a unit the options of a worker, or one of Celery's older settings."""
_OPTIONS_WITHIN = re.compile(r"""\b(CELERY\w*_OPTS)\s*=\s*["']?(\s*-[^"'\n]*)""")
"""A pattern for the same options within a longer line, such as one of `sed` or `echo`."""
_COPIES = re.compile(
    r"(?i)\.py[._-]|^(?!.*\.env).*(?:celery|config|settings).*\.(?:default|dist|example|in|j2|jinja2?|mako|sample|template|tmpl|tpl)$"
)
"""A pattern for the names of copies of modules, of which an installation makes its settings."""
_SETTING = re.compile(r"(?m)^\s*(?:\w+\.conf\.)?(CELERY\w+|beat_schedule|task_\w+)\s*(?:\[.*\]\s*)?=(?!=)")
_MAY_START = re.compile(
    rf"""(?<![\w.-])celery["',]*\s+["']?(?:--?[A-Za-z]|[$%{{]|(?:{"|".join(sorted(PARTS | OTHER_PARTS))})\b(?![.-]))"""
    r"""|(?i:\b(?:bin|cmd|command|entry_?point|exec\w*|module|program|runtime\w*)["']?\s*[:=]\s*\[?["']?(?:[^\s"',]*/)?)celery\b(?![\w.:/-])"""
    r"""|\b(?:from|import)\s+(?:billiard|celery|kombu|django_celery_\w+|djcelery)\b"""
)
"""A pattern for a line that may start Celery in any way."""
_SOURCED = re.compile(r"^\s*(?:\.|source)\s+[\"']?(?:\S*/)?([\w.-]+)")
_REMAP = "REMAP_SIGTERM"
_MAX_NAMED = 20
"""The number of lines that one gap names."""


@dataclass(frozen=True, slots=True)
class OtherFiles:
    """The files of an application that are not Python, and what in them passes arguments to Celery."""

    texts: Mapping[Path, str]
    scripts: Programs
    entry_point: Sequence[str]
    """The words of the first `entrypoint` that runs Celery; empty if there is none."""

    @classmethod
    def of(cls, folder: Path, read: Collection[Path]) -> OtherFiles:
        """Read the files of a folder but those in `read`."""
        texts = dict(_texts(folder, read))
        scripts = _passing_scripts(texts)
        starts = (
            words
            for text in texts.values()
            if may_run_celery(text, scripts)
            for words in entry_points(text, scripts)
        )
        return cls(texts, scripts, next(starts, []))

    def functions_of(self, text: str) -> Programs:
        """Return the functions that pass their arguments to Celery: those of a script, and those of the scripts that it
        sources."""
        lines = script_lines(text)
        sourced = {match[1] for line in lines if (match := _SOURCED.match(line)) is not None}
        functions: dict[str, tuple[str, ...]] = {}
        for name, other in self.texts.items() if sourced else ():
            if name.name in sourced and "celery" in other:
                functions |= passing_functions(script_lines(other))
        return functions | passing_functions(lines)


def other_files(files: OtherFiles, queues: Queues) -> Iterator[tuple[str, int, str, str]]:
    """Yield a gap for each command, file of rows and copy of settings: file, line, subject, work by hand. The lines of a
    file that may start Celery in another way have one more."""
    for name, text in files.texts.items():
        gaps = list(_of_file(files, name, text, queues))
        yield from gaps
        unread = _unread_lines(text, gaps)
        if unread:
            numbers = ", ".join(map(str, unread[:_MAX_NAMED])) + (" and more" if unread[_MAX_NAMED:] else "")
            yield (str(name), unread[0], f"Celery in lines without a known command: {numbers}",
                   "See whether they start Celery or give it options: nothing of them is imported.")  # fmt: skip


def script_calls(tree: ast.Module, scripts: Programs) -> Iterator[tuple[ast.AST, list[str], tuple[str, ...]]]:
    """Yield the place and the words of each list or text of a module that runs one of the scripts. The words of the script's
    own command follow."""
    inside: set[int] = set()
    for node in walk(tree) if scripts else ():
        words = words_of_code(node) if id(node) not in inside else []
        programs = [name for word in words[:2] if (name := word.rpartition("/")[2]) in scripts]
        if programs and len(words) > 1:
            inside |= {id(part) for part in ast.walk(node)}
            yield node, words, scripts[programs[0]]


def _unread_lines(text: str, gaps: Collection[tuple[str, int, str, str]]) -> list[int]:
    """Return the numbers of the lines that may start Celery and are in no gap."""
    if "celery" not in text and "kombu" not in text:
        return []
    named = {line for _, line, _, _ in gaps}
    subjects = " ".join(_words(subject) for _, _, subject, _ in gaps)
    unread = []
    for number, line in enumerate(text.splitlines(), 1):
        match = _MAY_START.search(without_prose(line)) if number not in named and not is_prose(line) else None
        if match is not None and _words(line[match.start() :]) not in subjects:
            unread.append(number)
    return unread


def _words(text: str) -> str:
    return " ".join(_plain(text).rstrip("\\").split())


def _of_file(files: OtherFiles, name: Path, text: str, queues: Queues) -> Iterator[tuple[str, int, str, str]]:
    for number, line in enumerate(text.splitlines(), 1) if _REMAP in text else ():
        if _REMAP in line and not is_prose(line):
            yield (str(name), number, f"the variable {_REMAP}, by which SIGTERM ends the tasks of a worker at once",
                   "Penstock's worker hands back what it runs when its time to stop is over: see docs/workers.md.")  # fmt: skip
    scripts, entry_point = files.scripts, files.entry_point
    if not may_run_celery(text, scripts) and not entry_point:
        return
    rows = _ROWS.search(text)
    if rows is not None:
        yield (str(name), text.count("\n", 0, rows.start()) + 1, f"rows of the table {rows[1]} of django-celery-beat",
               "The import does not read files of rows: write the rows as schedules.")  # fmt: skip
    assignments = list(_SETTING.finditer(text)) if _COPIES.search(name.name) else []
    if assignments:
        names = ", ".join(dict.fromkeys(setting[1] for setting in assignments))
        yield (str(name), text.count("\n", 0, assignments[0].start(1)) + 1,
               f"settings of Celery in a copy of a module that is not read: {names}",
               "Import again with the module that is made of this copy, or write its settings by hand.")  # fmt: skip
    for number, variable, value in variables(text):
        yield str(name), number, *of_variable(variable, value, queues)
    functions = files.functions_of(text)
    for part in command_lines(text, scripts, entry_point):
        number, line = part.number, part.text
        printed = without_prose(line)
        command = COMMAND.search(printed)
        if command is not None:
            words = _split(command[0])
            yield str(name), number, f"the command {' '.join(words)}", advice(words, queues)
            continue
        run = None if part.is_part else run_of(printed)
        if run is not None:
            words = _split(run)
            if not {"--help", "--version", "-h"} & set(words):
                yield str(name), number, f"the command {' '.join(words)}", advice(words, queues)
            continue
        called_programs = [
            *((scripts[script], call) for script, call in calls(printed, scripts, is_script=True)),
            *((functions[function], call) for function, call in calls(printed, functions, is_script=False)),
        ]
        for words_of_program, call in called_programs[:1]:
            words = _split(call)
            text_of_call = f"the command {' '.join(words)}, whose program passes its arguments to Celery"
            yield str(name), number, text_of_call, advice([*words_of_program, *words[1:]], queues)
        if (unit := _OF_UNITS.match(line) or _OPTIONS_WITHIN.search(line)) is not None and unit[2].strip():
            words = ["celery", "beat" if "BEAT" in unit[1] else "worker", *_split(unit[2])]
            if unit[1].endswith("_OPTS"):
                text_of_unit = f"the options {' '.join([unit[1], *words[2:]])} of a command"
                yield str(name), number, text_of_unit, advice(words, queues)
            elif is_known(unit[1]):
                yield (
                    str(name),
                    number,
                    f"the variable {unit[1]} of a worker: {unit[2].strip()}",
                    advice_of(unit[1]),
                )


def _texts(folder: Path, read: Collection[Path]) -> Iterator[tuple[Path, str]]:
    """Yield the name and the text of each file that is neither prose nor Python."""
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        if (
            path in read
            or _LEFT_OUT & set(name.parts)
            or path.suffix in _PROSE_SUFFIXES | _PYTHON
            or not path.is_file()
        ):
            continue
        content = path.read_bytes() if path.stat().st_size <= _MAX_BYTES else b""
        if b"\0" not in content:
            yield name, content.decode(errors="replace")


def _passing_scripts(texts: Mapping[Path, str]) -> dict[str, tuple[str, ...]]:
    """Return the scripts that pass their arguments to Celery, also through another one, with the words of their commands."""
    scripts: dict[str, tuple[str, ...]] = {}
    lines = {
        name: script_lines(text)
        for name, text in texts.items()
        if any(mark in text for mark in ("$", "%*", "%1"))
    }
    waiting = {name for name in lines if "celery" in texts[name].lower()}
    while waiting:
        count = len(scripts)
        for name in sorted(waiting):
            words = passing_words(lines[name], scripts) if name.name not in scripts else None
            if words is not None:
                scripts[name.name] = words
        if len(scripts) == count:
            break
        waiting = {
            name
            for name in lines
            if name.name not in scripts and any(script in texts[name] for script in scripts)
        }
    return scripts


def _split(command: str) -> list[str]:
    """Return the words of a command, without braces that close objects of JSON around it."""
    words = _plain(command).split()
    while words and words[-1] == "}":
        words.pop()
    return words


def _plain(command: str) -> str:
    """Return a command without the signs of a list, or of a text in quotation marks."""
    return re.sub(r"""["'\[\]]|(?<=["']),|,(?=\s|$)""", " ", command)
