"""Mutants of the Python that decides: mutmut makes them, in a copy of the sources, and runs the tests that pass them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from fnmatch import fnmatch
from functools import partial
from pathlib import Path

from tests.chaos.mutations import LEFT_OUT
from tests.crash.processes import ROOT
from tests.mutation.postgres import migrated
from tests.mutation.verdicts import KILLED, SURVIVED, Verdict, read, write

COPY = ROOT / "build/mutation"
"""What mutmut measured is kept here, until a source changes."""
METAS = "mutants/src/penstock/**/*.meta"
CONFIGURATION = Path(__file__).with_name("mutmut.toml")
LANES = "2"
STATES = {0: SURVIVED, 33: SURVIVED, None: ""}
"""By mutmut's exit codes: 33 is a function that no test passes. Every other end is a test that failed, or a hang."""


def run(only: Sequence[str]) -> list[str]:
    """Judge the mutants of these modules (`engine`, `engine.joins`), or of all that `mutmut.toml` names; `survivors`: only those
    that lived, or were not judged yet; `lanes=1`: so many at a time; and write the verdicts. Returns the parts of which there
    are verdicts now."""
    lanes = next((argument.partition("=")[2] for argument in only if argument.startswith("lanes=")), LANES)
    names = [f"penstock.{name}*" for name in only if "=" not in name and name != "survivors"]
    stage()
    with migrated():
        if "survivors" in only:
            mutmut(lanes, "penstock.none_of_them")  # makes them, if a source has changed
            names = [name for name in survivors() if not names or any(map(partial(fnmatch, name), names))]
        mutmut(lanes, *names)
    return collect()


def mutmut(lanes: str, *names: str) -> None:
    subprocess.run(
        [str(Path(sys.executable).with_name("mutmut")), "run", "--max-children", lanes, *names],
        cwd=COPY,
        env={**os.environ, "PYTHONPATH": str(COPY / "services")},
        check=False,
    )


def survivors() -> list[str]:
    """Return the mutants without a verdict that a test found them, by mutmut's names."""
    names_left = []
    for meta in sorted(COPY.glob(METAS)):
        judged = read(_part(meta))
        names = list(json.loads(meta.read_text())["exit_code_by_key"])
        names_left += [
            name
            for name, change in _said(meta, names)
            if change not in judged or judged[change].verdict == SURVIVED
        ]
    return names_left


def _part(meta: Path) -> str:
    return (
        f"python.{meta.relative_to(COPY / 'mutants/src/penstock').with_suffix('').with_suffix('').parts[0]}"
    )


def stage() -> None:
    """Copy the sources to where mutmut looks for them: it knows packages below `src`."""
    for old in COPY.glob("*"):
        if old.name == "mutants":
            continue
        shutil.rmtree(old) if old.is_dir() else old.unlink()
    shutil.copytree(ROOT, COPY, ignore=LEFT_OUT, dirs_exist_ok=True)
    shutil.move(COPY / "common", COPY / "src")
    with (COPY / "pyproject.toml").open("a") as file:
        file.write("\n" + CONFIGURATION.read_text())


def collect() -> list[str]:
    """Write down what mutmut found so far, by the rooms of the modules. What was judged before, and is still made, stays."""
    by_part: dict[str, dict[str, Verdict]] = {}
    for meta in sorted(COPY.glob(METAS)):
        part, codes = _part(meta), json.loads(meta.read_text())["exit_code_by_key"]
        judged_before = read(part)
        for name, change in _said(meta, list(codes)):
            if judged := STATES.get(codes[name], KILLED):
                by_part.setdefault(part, {})[change] = Verdict(judged)
            elif change in judged_before:
                by_part.setdefault(part, {})[change] = judged_before[change]
    for part, verdicts in by_part.items():
        write(part, verdicts)
    return sorted(by_part)


def _said(meta: Path, names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Return the change of each mutant. It holds for as long as the line says the same, as mutmut numbers them."""
    source = meta.with_suffix("").read_text().splitlines()
    spans = json.loads(meta.with_suffix(".spans").read_text())["spans"]
    again: Counter[str] = Counter()
    for name in names:
        module, _, function = name.rpartition(".")
        first, last = spans[function]
        begin, end = spans[function.partition("__mutmut_")[0] + "__mutmut_orig"]
        old, new = source[begin - 1 : end], source[first - 1 : last]
        plain = function.partition("__mutmut_")[0].removeprefix("x_").removeprefix("xǁ").replace("ǁ", ".")
        change = f"{module.removeprefix('penstock.')}.{plain}: {_difference(old, new)}"
        again[change] += 1
        yield name, change if again[change] == 1 else f"{change} ({again[change]})"


def _difference(old: list[str], new: list[str]) -> str:
    """Return the old and new text without the lines that both begin and end with. The first line has the names."""
    old, new = [line.strip() for line in old], [line.strip() for line in new]
    while old and new and (old[0] == new[0] or "__mutmut_" in new[0]):
        old, new = old[1:], new[1:]
    while old and new and old[-1] == new[-1]:
        old, new = old[:-1], new[:-1]
    return f"`{' '.join(old)}` became `{' '.join(new)}`"
