"""The scripts and functions that pass their arguments to Celery, and the lines that call them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from penstock_import.command_lines import OTHER_PARTS, PARTS, is_prose

Programs = Mapping[str, tuple[str, ...]]
"""By the name of a script or a function: the words of the commands that it passes its arguments to."""

_BEFORE = (
    r"""(?:^|[;&|({`"']|\)\s|-\s|[:=]\s*|\b(?:CMD|ENTRYPOINT|RUN|do|else|eval|exec|nice|nohup|set|then|time)\s"""
    r"""|(?:coverage|hatch|pdm|pipenv|poetry|rye|uv)\s+run\s|\b(?:chpst|env|gosu|setuidgid|su-exec|sudo)\s[^;&|]{0,200}?"""
    r"""|\s(?:--|-m)["',\s])"""
)
"""A pattern for what stands before a program that a line runs."""
_PROGRAM = rf"""{_BEFORE}["'\[\s@]*(?:\w+=\S*\s+)*["']?(?:[\w./${{}}~-]{{0,200}}/)?"""
_PASSED = r"""(?:\$[@*\d]|\$\{(?:[@*]|\d)[^}]*\}|%[*\d])"""
_OF_ALL = r"-[ACbq]\b|--(?:app|broker|config|loader|no-color|quiet|result-backend|skip-checks|workdir)\b"
"""The options that the program takes before the name of a command."""
_RUN = re.compile(
    rf"""{_PROGRAM}(?P<run>celery["',\s]+(?:{_OF_ALL}|\$(?!\w*:)|%[*\d(\w]|\{{\{{).*"""
    rf"""|celery\s+(?:{"|".join(sorted(OTHER_PARTS))})["']?\s*$)"""
)
"""A pattern for a line that runs Celery, whatever its further words are."""
_RUN_OF_VARIABLE = re.compile(
    rf"""(?:^|[;&|]|\b(?:exec|nohup|eval|then|do)\s)["'\s]*"""
    rf"""(?P<run>\$(?:\w+|\{{\w+\}})["']?\s(?=(?:.*\s)?(?:-A|--app)[\s=]).*?\s(?:{"|".join(sorted(PARTS | OTHER_PARTS))})\b.*)"""
)
"""A pattern for a program of a variable without a text in the file, which has an application and the name of a command."""
_WITHOUT_NAME = re.compile(r"(?:-A|--app)[\s=].*\b(?:worker|beat|multi)\b")
_PASSING = re.compile(rf"""{_PROGRAM}celery\b(?P<words>[^;&|]{{0,500}}?)["'\s]{_PASSED}""")
_PASSING_SCRIPT = re.compile(rf"""["'\s]{_PASSED}""")
_FUNCTION = re.compile(r"^\s*(?:function\s+([\w-]+)\s*(?:\(\s*\))?|([\w-]+)\s*\(\s*\))\s*(?:\{(.*))?$")
_ALIAS = re.compile(r"""^\s*alias\s+([\w-]+)=["'](.*\bcelery\b[^"']*)["']\s*$""")
_MAX_CHARACTERS = 5_000
"""The length of a line of a script. Longer lines are data."""
_ECHO = re.compile(
    r"""((?:^|[;&|({]|\b(?:RUN|do|else|then)\s|-\s)[\s@]*)(?:echo|printf)\s+(?:"(?:[^"\\`$]|\\.|\$(?!\())*"|'[^']*'|[^;&|<>"'`()$]|\$(?!\())+(?=$|;|&&|\|\||\}|\))"""
)
_LAST_WORDS = re.compile(r"[;&|<>].*|\s#\s.*")


def may_run_celery(text: str, scripts: Programs) -> bool:
    """Return whether a file may have a command of Celery."""
    has_name = "celery" in text.lower() or any(script in text for script in scripts)
    return has_name or _WITHOUT_NAME.search(text) is not None


def without_prose(line: str) -> str:
    """Return a line without the texts that it only prints."""
    if len(line) > _MAX_CHARACTERS:
        return line
    return _ECHO.sub(r"\1", line) if "echo" in line or "printf" in line else line


def run_of(line: str) -> str | None:
    """Return the text of a line from the program on, if the line runs Celery; None for any other line."""
    if len(line) > _MAX_CHARACTERS:
        return None
    match = _RUN.search(line) if "celery" in line else None
    if match is None and "$" in line and ("-A" in line or "--app" in line):
        match = _RUN_OF_VARIABLE.search(line)
    return match["run"] if match is not None else None


def passing_functions(lines: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Return the functions and aliases of a script that pass their arguments to Celery, with the words of their commands."""
    functions: dict[str, tuple[str, ...]] = {}
    name = ""
    for line in lines:
        alias = _ALIAS.match(line)
        if alias is not None:
            functions[alias[1]] = tuple(alias[2].split())
        begin = _FUNCTION.match(line)
        if begin is not None:
            name, line = begin[1] or begin[2], begin[3] or ""
        if name and (words := _passing_words(line)) is not None:
            functions[name] = (*functions.get(name, ()), *words)
        if line.startswith("}") or (begin is not None and line.rstrip().endswith("}")):
            name = ""
    return functions


def passing_words(lines: Iterable[str], scripts: Programs) -> tuple[str, ...] | None:
    """Return the words of the commands to which a script passes its own arguments; None if it passes them to none. `scripts`
    are those that are known to pass theirs."""
    passing: tuple[str, ...] | None = None
    name = ""
    for line in lines:
        begin = _FUNCTION.match(line)
        if begin is not None:
            name = "" if line.rstrip().endswith("}") else begin[1] or begin[2]
            continue
        if line.startswith("}"):
            name = ""
        if name:
            continue  # its arguments are those of the function
        words = _passing_words(line)
        if words is None:
            called = next(calls(line, scripts, is_script=True), None)
            words = scripts[called[0]] if called is not None and _PASSING_SCRIPT.search(called[1]) else None
        if words is not None:
            passing = (*(passing or ()), *words)
    return passing


def _passing_words(line: str) -> tuple[str, ...] | None:
    match = _PASSING.search(line[:_MAX_CHARACTERS]) if "celery" in line and not is_prose(line) else None
    return ("celery", *re.sub(r"""["',\[\]]""", " ", match["words"]).split()) if match is not None else None


def calls(line: str, programs: Programs, is_script: bool) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each call of these programs in a line. A call has the name of a command or an option.
    A function counts only where a command begins."""
    is_named = len(line) <= _MAX_CHARACTERS and any(name in line for name in programs)
    if not is_named or is_prose(line):
        return
    names = "|".join(map(re.escape, sorted(programs, key=len, reverse=True)))
    start = r"(?<![\w.$-])" if is_script else r"(?:^|[;&|({]|\b(?:do|else|then)\s|\)\s)\s*"
    pattern = rf"""{start}(?P<call>(?:[\w.~${{}}-]*/)*(?P<name>{names})["',\s\]]+(?P<rest>\S.*))"""
    for match in re.finditer(pattern, line):
        text = _LAST_WORDS.sub("", match["call"]).strip()
        words = re.sub(r"""["',\[\]]""", " ", text).split()[1:]
        if any(word in PARTS | OTHER_PARTS or re.match(r"--?[A-Za-z]", word) for word in words) or (
            _PASSING_SCRIPT.search(text)
        ):
            yield match["name"], text
