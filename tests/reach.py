"""The number of files to open for one story, and its limits, which only fall.

`make check` fails when a count is above `tests/reach_limits.toml`. `python -m tests.reach` prints the counts and what they count.
`python -m tests.reach lower` writes the counts of today there; it refuses to raise a limit.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

LIMITS = Path(__file__).with_name("reach_limits.toml")
FUNCTIONS = Path("migrations/functions")
WALKTHROUGH = Path("docs/walkthrough.md")
FIRST = "enforce_rules"

_NAMED = re.compile(r"`((?:common|services|migrations)/[\w/]+\.(?:py|sql))`")
_CALL = re.compile(r"\b([a-z_][a-z0-9_]*)\s*\(")
_COMMENT = re.compile(r"--.*")


def functions_of_enforce_rules(root: Path) -> list[str]:
    """Return the other functions of the database that `enforce_rules` calls, itself or through others."""
    calls = _calls(root)
    reached: set[str] = set()
    following = [FIRST]
    while following:
        name = following.pop()
        if name not in reached:
            reached.add(name)
            following += calls[name]
    return sorted(reached - {FIRST})


def files_of_walkthrough(root: Path) -> list[str]:
    """Return the product files that docs/walkthrough.md names."""
    return sorted(set(_NAMED.findall((root / WALKTHROUGH).read_text())))


COUNTED: Mapping[str, Callable[[Path], list[str]]] = {
    "functions_of_enforce_rules": functions_of_enforce_rules,
    "files_of_walkthrough": files_of_walkthrough,
}


def broken_reach(root: Path) -> Iterator[str]:
    """Yield a sentence for each count that is above its limit."""
    limits = _limits()
    for name, members in COUNTED.items():
        count = len(members(root))
        if count > limits[name]:
            yield (
                f"{LIMITS.name}: {name} is {count}, and at most {limits[name]} are allowed. `python -m tests.reach` lists "
                "them. Write a few lines with a single caller where they are called."
            )


def _calls(root: Path) -> dict[str, set[str]]:
    """Return, for each function of the database, the functions that its text calls."""
    texts = {path.stem: _COMMENT.sub("", path.read_text()) for path in (root / FUNCTIONS).rglob("*.sql")}
    return {name: (set(_CALL.findall(text)) & texts.keys()) - {name} for name, text in texts.items()}


def _limits() -> dict[str, int]:
    return {name: int(limit) for name, limit in tomllib.loads(LIMITS.read_text()).items()}


def _lower(root: Path) -> None:
    limits = _limits()
    head = "".join(line for line in LIMITS.read_text().splitlines(keepends=True) if line.startswith("#"))
    counts = {name: min(len(members(root)), limits[name]) for name, members in COUNTED.items()}
    LIMITS.write_text(head + "".join(f"{name} = {count}\n" for name, count in counts.items()))


def main(arguments: list[str]) -> int:
    root = Path(__file__).resolve().parents[1]
    match arguments:
        case []:
            for name, members in COUNTED.items():
                print(f"{name}: {len(members(root))}", *(f"  {member}" for member in members(root)), sep="\n")
        case ["lower"]:
            _lower(root)
        case _:
            print("usage: python -m tests.reach [lower]", file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
