"""The fences of a page of the documentation: which of them are files, which are commands, which is code to run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_FENCE = re.compile(r"^```(?P<info>[^\n`]*)\n(?P<text>.*?)^```$", re.M | re.S)
_NAMED = re.compile(r"# (?P<path>[\w/.-]+\.(?:py|yaml))( \(.*\))?$")
_ELSEWHERE = re.compile(r'(?:python|typescript|yaml|toml|text) title="[^"]+"')
"""What has a title is another system's, or of another machine: it is shown, and not run. TypeScript is run in tests/sdk."""


@dataclass(frozen=True, slots=True)
class File:
    """A file of the reader's folder. The same name again goes on where the fence before it ended."""

    path: str
    text: str


@dataclass(frozen=True, slots=True)
class Command:
    """A line after `$`, and what is printed below it."""

    line: str
    printed: str


@dataclass(frozen=True, slots=True)
class Code:
    """Python without a file's name, and what its `print(...)  # this` say that they print."""

    text: str
    promised: list[str]


Part = File | Command | Code


def parts(page: Path) -> Iterator[Part]:
    """Return the parts of a page in their order. Raises ValueError for a fence that no part would run."""
    for match in _FENCE.finditer(page.read_text()):
        info, text = match["info"], match["text"]
        if _ELSEWHERE.fullmatch(info):
            continue
        named = _NAMED.match(text.split("\n", 1)[0])
        if info in ("python", "yaml") and named:
            yield File(named["path"], text)
        elif info == "console":
            yield from commands(text)
        elif info == "python":
            yield Code(text, re.findall(r"print\(.*\)  # (.*)$", text, re.M))
        else:
            raise ValueError(f"{page.name}: a fence that is not a file, a command or code:\n{text}")


def commands(text: str) -> Iterator[Command]:
    joined = text.replace("\\\n", " ")
    if not joined.startswith("$ "):
        raise ValueError(f"a console fence begins with `$ `:\n{text}")
    for part in re.split(r"^\$ ", joined, flags=re.M)[1:]:
        line, _, printed = part.partition("\n")
        yield Command(re.sub(r"\s+", " ", line), printed)


def fits(printed: str, promised: str) -> bool:
    """Return true if this was printed: `...` stands for anything, and one space for any number of them."""
    pattern = ".*".join(r"\s+".join(map(re.escape, part.split())) for part in promised.split("..."))
    loose = re.sub(r"(?<!\\)\.\*", r"\\s*.*?\\s*", pattern)
    return re.fullmatch(rf"\s*{loose}\s*", printed, re.S) is not None
