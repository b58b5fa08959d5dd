"""The commands in the lines of scripts, settings of containers and units of services: each is one text, in whatever way the
file spreads it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

PARTS = frozenset({"worker", "beat", "multi"})
OTHER_PARTS = frozenset({"call", "control", "events", "flower", "inspect", "purge", "status"})
"""The commands of Celery that start no worker and no beat."""
OLD_PROGRAMS = frozenset({"celeryd", "celerybeat", "celeryd-multi", "celeryd_multi"})
"""The programs of Celery 3, each of which is a command without a further word."""
_VARIABLE = r"\$[{(]?celery\w*[)}]?|%celery\w*%"
_OTHERS = rf"(?:{'|'.join(sorted(OTHER_PARTS))})"
_OF_ALL = "app|broker|config|loader|no-color|quiet|result-backend|skip-checks|workdir"
"""The options that the program takes before the name of a command."""
_QUESTIONS = "(?:active|active_queues|ping|registered|report|reserved|revoked|scheduled|stats)"
WITH_VALUES = ("-A", "-Q", "-X", "--app", "--queues", "--exclude-queues")
"""The options whose value may be the name of an application or of a queue: `celery`."""
_BETWEEN = (r"\s", "=", r"""\s["']""", """=["']""", r"""["']\s["']""", r"""["'],["']""", r"""["'],\s["']""")
_NO_VALUE = "".join(f"(?<!{option}{between})" for option in WITH_VALUES for between in _BETWEEN)
"""A pattern that stands before no value of such an option."""
COMMAND = re.compile(
    rf"""(?:(?=celery\b){_NO_VALUE}(?<![\w.$-])celery\b|(?i:{_VARIABLE}))["',\s].*?\b(?:worker|beat|multi)\b.*"""
    r"""|(?<![\w.-])(?:celeryd(?:[-_]multi)?|celerybeat)["',\s]+-.*"""
    r"""|(?<=manage\.py)["',\s]+celery(?:d|beat|d_multi)\b.*"""
    rf"""|(?<![\w.$-])celery["',\s]+(?:-[ACbq]|--(?:{_OF_ALL})\b).*?["',\s]{_OTHERS}\b(?![.-]).*"""
    rf"""|(?<![\w.$-])celery["',\s]+(?:{_OTHERS}["',\s]+-|inspect["',\s]+{_QUESTIONS}\b).*"""
)
"""A pattern for a command of Celery, up to the end of its line: one that starts something, or asks or changes workers."""
_PROSE = re.compile(r"\s*(?:#|;|//|::|(?i:rem)\s|(?:Description|Documentation)\s*=)")
"""A pattern for the lines of a settings file, a script or a systemd unit that run nothing."""
_KEYS_OF_COMMANDS = frozenset({"command", "execreload", "execstart", "execstartpre", "execstop"})
"""The keys of units that run their value. Any other name before a text is a variable."""
_ITEM = re.compile(r"""(\s*)(?:-\s+)?("[^"]*"|'[^']*'|[^\s:"'#][^\s:"']*(?::[^\s:"']+)*)\s*(,?)\s*""")
"""A pattern for a line with one item of a list, in YAML or in brackets."""
_FOLDED = re.compile(r"""\s*(?:-\s+|(?:-\s+)?[\w-]+:\s*)[>|][-+\d]*\s*(?:#.*)?""")
"""A pattern for the line above a text that YAML folds: the value of a key, or an item of a list."""
_OPTION_BELOW = re.compile(r"\s+--?[A-Za-z]")
"""A pattern for a line of a text in YAML that gives a command above it a further option."""
_SECTION = re.compile(r"(?m)^\[[\w:.@ -]+\]\s*$")
_KEY_OF_INI = re.compile(r"[\w.-]+\s*=")
_SUBSTITUTED = re.compile(
    r"""["']?(?:\$\(|`)\s*(?:which|command\s+-v|type\s+-[pP]|realpath|readlink\s+-f|(?:poetry|pipenv|uv)\s+run\s+which)\s+["']?"""
    r"""([\w./-]*?celery\w*)["']?\s*(?:\d?>\s*\S+\s*)?(?:\)|`)["']?"""
)
"""A pattern for a substitution that gives the path of the program."""
_MODULE = re.compile(r"""(?<![\w.])celery\.(?:__main__|bin\.celery)(?:[.:]main)?(?=["',\s]|$)""")
"""A pattern for the module and the function of the program."""
_GIVEN = re.compile(
    r"""\s*(?:-\s+)?(?:(?:export|set|ENV|Environment)[\s=]+)?["']?(\w+)\s*[:?]?=\s*["']?([^"'\n]*\bcelery\b[^"'\n]*?)["']?\s*"""
)
"""A pattern for a line that gives a variable a text with the program."""
_ASSIGNED = re.compile(
    r"""\s*(?:(?:declare|export|local|readonly|set)\s+(?:-\w+\s+)*)?(\w+)\s*[+:?]?=\s*(.*)"""
)
"""A pattern for a line of a script that gives a variable a text."""
_ARGUMENTS: Mapping[str, tuple[str, ...]] = {
    "entrypoint": ("command", "cmd"),
    "command": ("args", "arguments"),
    "module": ("args",),
    "program": ("args",),
    "runtimeexecutable": ("runtimeargs", "args"),
    "script": ("args", "arguments"),
}
"""By the key with a program: the keys beside it that have the program's arguments."""
_KEY = re.compile(
    r"""(\s*(?:-\s+)?)["']?(?i:(entry_?point|command|script|cmd|module|program|runtimeExecutable|runtimeArgs|args|arguments))["']?(?:\s*[:=]\s*|\s+(?=[\["']))(.*)"""
)
_WORD = re.compile(r""""((?:[^"\\]|\\.)*)"|'([^']*)'|([^\s,\[\]"']+)""")
_COMMENT_AT_END = re.compile(r"""((?:"[^"]*"|'[^']*'|[^"'])*?)\s(?:#|//)(?:\s.*)?$""")
_OPEN_BRACKET = re.compile(r"""(?:[:=]|\b(?:CMD|ENTRYPOINT|RUN)|^\s*-?)\s*\[[^\[\]{]*$""")
"""A pattern for a line that begins a list of words, and does not end it."""
_OPTION = re.compile(r"""(?:^|["'\s])--?[A-Za-z]""")
_MAX_LINES = 100
"""The number of lines in which a list ends, and in which the arguments stand beside their program."""


@dataclass(frozen=True, slots=True)
class _Entry:
    """The words of a key with a program or with arguments, and its lines, counted from 0."""

    key: str
    indent: int
    first: int
    last: int
    words: tuple[str, ...]


def is_prose(line: str) -> bool:
    """Return whether a line of a settings file, a script or a systemd unit runs nothing."""
    return _PROSE.match(line) is not None


def is_program(word: str) -> bool:
    """Return whether a word is the program of Celery, also with its folder, or the module of the program."""
    last = word.rpartition("/")[2]
    return (
        last == "celery"
        or last in OLD_PROGRAMS
        or re.fullmatch(_VARIABLE, word, re.IGNORECASE) is not None
        or _MODULE.fullmatch(word) is not None
    )


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a file, or the text of several lines that are one."""

    number: int
    text: str
    is_part: bool = False
    """True for a line that is also a part of a longer text, or gives a variable its text."""


def script_lines(text: str) -> list[str]:
    """Return the lines of a file, in which each variable with the program of Celery, or with options, has its text."""
    return _with_values(_plain_lines(text))


def _plain_lines(text: str) -> list[str]:
    """Return the lines of a file without the comments at their ends. The program's name stands for a substitution or a module
    that names it. A list in brackets stands on its first line, and its further lines are empty."""
    lines = [_MODULE.sub("celery", _SUBSTITUTED.sub(r"\1", line)) for line in text.splitlines()]
    lines = [_without_comment(line) for line in lines]
    for number, line in enumerate(lines):
        if _OPEN_BRACKET.search(line) is not None and not is_prose(line):
            last = _end_of_brackets(lines, number)
            if last is not None and any(_OPTION.search(part) for part in lines[number : last + 1]):
                parts = [part for part in lines[number : last + 1] if not is_prose(part)]
                lines[number : last + 1] = [" ".join(part.strip().rstrip("\\") for part in parts)]
                lines[number] = line[: len(line) - len(line.lstrip())] + lines[number]
                lines[number + 1 : number + 1] = [""] * (last - number)
    return lines


def _without_comment(line: str) -> str:
    """Return a line without a comment at its end. A sign in quotation marks begins none."""
    if "#" not in line and "//" not in line:
        return line
    match = _COMMENT_AT_END.match(line)
    return line if match is None or not match[1].strip() else match[1]


def _end_of_brackets(lines: list[str], first: int) -> int | None:
    """Return the number of the line that closes the brackets of a list of words; None for a list of anything else."""
    depth = 0
    for number, line in enumerate(lines[first : first + _MAX_LINES], first):
        if is_prose(line):
            continue
        if number > first and line.lstrip().startswith("{") and not line.lstrip().startswith("{{"):
            return None
        depth += line.count("[") - line.count("]")
        if depth <= 0:
            return number
    return None


def entry_points(text: str, scripts: Collection[str]) -> Iterator[list[str]]:
    """Yield the words of each `entrypoint` of a file that runs Celery, or one of the scripts that pass their arguments to it."""
    lines = script_lines(text)
    for entry in (_entry(lines, number) for number in range(len(lines))):
        words = entry.words if entry is not None and entry.key == "entrypoint" else ()
        for number, word in enumerate(words):
            if is_program(word) or word.rpartition("/")[2] in scripts:
                yield list(words[number:])
                break


def command_lines(
    text: str, scripts: Collection[str] = (), entry_point: Sequence[str] = ()
) -> Iterator[Line]:
    """Yield each line that is not a comment, and each command that several lines hold. `scripts` pass their arguments to
    Celery. `entry_point` are the words of an `entrypoint` in another file."""
    plain = _plain_lines(text)
    lines = _with_values(plain)
    paired: set[int] = set()
    for entry, words in _beside(lines, paired, scripts):
        yield Line(entry + 1, " ".join(words))
    for number, arguments in _without_program(lines, paired) if entry_point else ():
        yield Line(number + 1, " ".join([*entry_point, *arguments]))
    folded = list(_folded(lines))
    parts = {number for first, last, _ in folded for number in range(first, last)}
    for first, last in _continued(lines, _SECTION.search(text) is not None):
        if not paired & set(range(first, last + 1)):
            whole = " ".join(_without_end(line) for line in lines[first : last + 1])
            assigned = _GIVEN.fullmatch(plain[first])
            is_value = assigned is not None and assigned[1].lower() not in _KEYS_OF_COMMANDS
            yield Line(first + 1, whole, is_value or first in parts)
    for number, words_of_list in _items(lines, paired):
        yield Line(number, words_of_list)
    for first, _, block in folded:
        yield Line(first, block)


def _with_values(lines: list[str]) -> list[str]:
    """Return the lines with each variable that has the program of Celery, or options, replaced by its text."""
    matches = [_GIVEN.fullmatch(line) for line in lines]
    values = {match[1]: match[2].strip() for match in matches if match is not None}
    assigning = {number for number, match in enumerate(matches) if match is not None}
    for number, name, options in _options_given(lines):
        if name not in values or number not in assigning:
            values[name] = f"{values.get(name, '')} {options}".strip()
            assigning.add(number)
    if not values:
        return lines
    names = "|".join(map(re.escape, sorted(values, key=len, reverse=True)))
    pattern = re.compile(rf"\$\{{({names})(?:\[[@*]\])?\}}|\$\(({names})\)|\$({names})\b|%({names})%")
    return [
        line
        if number in assigning
        else pattern.sub(lambda part: values[next(filter(None, part.groups()))], line)
        for number, line in enumerate(lines)
    ]


def _options_given(lines: list[str]) -> Iterator[tuple[int, str, str]]:
    """Yield the line, the name and the text of each variable of a script to which it gives options, also as a list."""
    for number, line in enumerate(lines):
        match = _ASSIGNED.fullmatch(line)
        if match is None:
            continue
        name, text = match[1], match[2].strip()
        if text.startswith("("):
            last = number
            while ")" not in text and last + 1 < len(lines) and last - number < _MAX_LINES:
                last += 1
                text += " " + lines[last].strip()
            text = text[1:].partition(")")[0]
        words = re.sub(rf"""["']|\$\{{{name}(?:\[[@*]\])?\}}|\${name}\b""", " ", text).split()
        if words and words[0].startswith("-"):
            yield number, name, " ".join(words)


def _continued(lines: list[str], is_ini: bool) -> Iterator[tuple[int, int]]:
    """Yield the first and the last line of each text: a line that goes on is one text with the next. In a file with
    sections, an indented line belongs to the key above it."""
    number = 0
    while number < len(lines):
        first = number
        if is_prose(lines[number]):
            number += 1
            continue
        has_key = is_ini and _KEY_OF_INI.match(lines[number]) is not None
        while number + 1 < len(lines) and (
            lines[number].rstrip().endswith(("\\", " ^"))
            or (has_key and lines[number + 1][:1] in (" ", "\t") and lines[number + 1].strip())
            or (
                _OPTION_BELOW.match(lines[number + 1]) and COMMAND.search(" ".join(lines[first : number + 1]))
            )
        ):
            number += 1
        yield first, number
        number += 1


def _without_end(line: str) -> str:
    line = line.rstrip()
    return line[:-1].rstrip() if line.endswith(("\\", " ^")) else line


def _items(lines: list[str], paired: set[int]) -> Iterator[tuple[int, str]]:
    """Yield each list with an item on each line, from the program on."""
    start, items = 1, list[str]()
    for number, line in enumerate([*lines, "end of the file"], 1):
        if not line.strip() or is_prose(line):
            continue
        item = _ITEM.fullmatch(line)
        if item is not None and number - 1 not in paired and (items or is_program(item[2].strip("\"'"))):
            start = start if items else number
            items.append(item[2].strip("\"'"))
        if items and item is None:
            if is_command(items):
                yield start, " ".join(items)
            items = []


def _folded(lines: list[str]) -> Iterator[tuple[int, int, str]]:
    """Yield each text that YAML folds from several lines, with the numbers of the lines above it and at its end."""
    for number, (line, following) in enumerate(pairwise([*lines, ""]), 1):
        if _FOLDED.fullmatch(line):
            indent = len(following) - len(following.lstrip())
            block = []
            for part in lines[number:]:
                if part.strip() and len(part) - len(part.lstrip()) < indent:
                    break
                block.append(part.strip())
            folded = " ".join(block)
            if len(block) > 1 and not any(COMMAND.search(part) for part in block):
                yield number, number + len(block), folded


def _beside(lines: list[str], paired: set[int], scripts: Collection[str]) -> Iterator[tuple[int, list[str]]]:
    """Yield the first line and the words of each command that two keys of a mapping hold: `command` and `args`, `ENTRYPOINT`
    and `CMD`. Its lines are added to `paired`."""

    def is_run(word: str) -> bool:
        return is_program(word) or word.rpartition("/")[2] in scripts

    entries = [entry for number in range(len(lines)) if (entry := _entry(lines, number)) is not None]
    for program in entries:
        if program.key not in _ARGUMENTS or not any(map(is_run, program.words)):
            continue
        beside = [
            entry
            for entry in entries
            if entry.key in _ARGUMENTS[program.key] and _are_beside(lines, program, entry)
        ]
        if not beside:
            continue
        arguments = min(
            beside, key=lambda entry: (entry.first < program.first, abs(entry.first - program.first))
        )
        words = [*program.words, *arguments.words]
        words = words[next(number for number, word in enumerate(words) if is_run(word)) :]
        if _has_part(words):
            paired |= set(range(program.first, program.last + 1)) | set(
                range(arguments.first, arguments.last + 1)
            )
            yield min(program.first, arguments.first), words


def _without_program(lines: list[str], paired: set[int]) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Yield the first line and the words of each key with arguments that name a command, and with no program beside them.
    Its lines are added to `paired`."""
    entries = [entry for number in range(len(lines)) if (entry := _entry(lines, number)) is not None]
    for entry in entries:
        is_open = entry.words[0].startswith("-") or entry.words[0] in PARTS
        if not is_open or entry.key == "entrypoint" or entry.first in paired or not PARTS & set(entry.words):
            continue
        if not any(
            entry.key in _ARGUMENTS.get(other.key, ()) and _are_beside(lines, other, entry)
            for other in entries
        ):
            paired |= set(range(entry.first, entry.last + 1))
            yield entry.first, entry.words


def _are_beside(lines: list[str], program: _Entry, arguments: _Entry) -> bool:
    """Return whether two keys are of one mapping: no line between them is less indented."""
    first, last = sorted((program, arguments), key=lambda entry: entry.first)
    between = lines[first.last + 1 : last.first]
    if program.indent != arguments.indent or len(between) > _MAX_LINES:
        return False
    return all(len(line) - len(line.lstrip()) >= program.indent for line in between if line.strip())


def _entry(lines: list[str], number: int) -> _Entry | None:
    """Return the words of the key in a line; None for a line without such a key, or without a value that is read."""
    match = _KEY.fullmatch(lines[number])
    if match is None or is_prose(lines[number]):
        return None
    indent, value, last = len(match[1]), match[3].strip(), number
    if value.startswith("["):
        while "]" not in value and last + 1 < len(lines) and last - number < _MAX_LINES:
            last += 1
            value += " " + lines[last].strip()
        words = ["".join(parts) for parts in _WORD.findall(value.partition("]")[0])]
    elif value:
        try:
            words = shlex.split(value.rstrip(","), comments=True)
        except ValueError:
            words = value.split()
        if len(words) == 1:  # a text in quotation marks
            words = words[0].split()
    else:
        words = []
        for below, line in enumerate(lines[number + 1 :], number + 1):
            if not line.strip() or is_prose(line):
                continue
            item = re.match(r"(\s*)-\s+(.+)", line)
            if item is None or len(item[1]) < indent - 2:
                break
            words.append(item[2].strip().strip("\"'"))
            last = below
    key = match[2].lower().replace("_", "")
    return _Entry(key, indent, number, last, tuple(words)) if words else None


def is_old(words: Sequence[str]) -> bool:
    """Return whether words begin with a program of Celery 3, which is a command by itself."""
    return bool(words) and words[0].rpartition("/")[2] in OLD_PROGRAMS


def is_command(words: Sequence[str]) -> bool:
    """Return whether words that begin with a program of Celery are a command, with at least one option or a question."""
    has_question = (
        list(words[1:2]) == ["inspect"] and re.fullmatch(_QUESTIONS, " ".join(words[2:3])) is not None
    )
    return has_question or (_has_part(words) and any(word.startswith("-") for word in words))


def _has_part(words: Sequence[str]) -> bool:
    return bool((PARTS | OTHER_PARTS) & set(words)) or is_old(words)
