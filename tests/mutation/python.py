"""Mutants of the Python that decides: mutmut makes them, in a copy of the sources, and `judge.py` runs the tests that call them."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from fnmatch import fnmatch
from functools import partial
from pathlib import Path

from tests.chaos.mutations import LEFT_OUT
from tests.crash.processes import ROOT
from tests.mutation.judge import JOB, SURVIVED as PASSED, UNCALLED
from tests.mutation.postgres import migrated
from tests.mutation.verdicts import KILLED, SURVIVED, Verdict, read, write

COPY = ROOT / "build/mutation"
"""The mutants stay here, until a source changes."""
MUTANTS = COPY / "mutants"
METAS = "src/penstock/**/*.meta"
CONFIGURATION = Path(__file__).with_name("mutmut.toml")
LANES = "2"
OWN_TESTS: Mapping[str, str] = {"language.schemas": "tests/penstock/language/schemas"}
"""Rooms that are judged by their own tests alone: those call every line of the room, and need no server."""
ALL_TESTS = ("tests/penstock/engine", "tests/penstock/language")
_MAKE = """
import sys
from pathlib import Path
from mutmut import __main__ as mutmut
from mutmut.mutation.trampoline import set_mutant_under_test
from mutmut.utils.file_utils import copy_also_copy_files, copy_src_dir
set_mutant_under_test("mutant_generation")
copy_src_dir()
copy_also_copy_files()
mutmut.create_mutants(int(sys.argv[1]))
"""


def run(only: Sequence[str]) -> list[str]:
    """Judge the mutants of these modules (`engine`, `engine.joins`), or of all that `mutmut.toml` names; and write the verdicts.
    Returns the parts of which there are verdicts now.

    `survivors`: only those that lived, or were not judged yet; `new`: only those that were not judged yet; `sample=800` and
    `seed=7`: so many of them, drawn at random; `lanes=1`: so many at a time."""
    options = dict(argument.split("=", 1) for argument in only if "=" in argument)
    lanes = options.get("lanes", LANES)
    modules = [name for name in only if "=" not in name and name not in ("survivors", "new")]
    stage()
    make(lanes)
    names = [name for name, verdict in judged() if verdict is None or "new" not in only]
    if "survivors" in only:
        names = [name for name, verdict in judged() if verdict != KILLED]
    if modules:
        names = [name for name in names if any(fnmatch(name, f"penstock.{module}*") for module in modules)]
    if "sample" in options:
        drawn = random.Random(int(options.get("seed", "0")))
        names = drawn.sample(names, min(int(options["sample"]), len(names)))
    own = {OWN_TESTS.get(_room(module)) for module in modules}
    tests = sorted(test for test in own if test) if own and None not in own else ALL_TESTS
    with migrated() if tests is ALL_TESTS else nullcontext():
        codes = judge(names, tests, lanes)
    return collect(codes)


def _room(module: str) -> str:
    return next((room for room in OWN_TESTS if f"{module}.".startswith(f"{room}.")), "")


def make(lanes: str) -> None:
    """Make the mutants of each source that has changed."""
    MUTANTS.mkdir(exist_ok=True)
    shutil.rmtree(MUTANTS / "tests", ignore_errors=True)
    subprocess.run([sys.executable, "-c", _MAKE, lanes], cwd=COPY, check=True, stdout=subprocess.DEVNULL)


def judge(names: Sequence[str], tests: Sequence[str], lanes: str) -> dict[str, int]:
    """Run the tests, and return the exit code of those of each mutant."""
    job, verdicts = COPY / "job.json", COPY / "verdicts.tsv"
    job.write_text(json.dumps({"mutants": list(names), "lanes": int(lanes), "verdicts": str(verdicts)}))
    verdicts.unlink(missing_ok=True)
    path = [MUTANTS / "src", MUTANTS, COPY / "services"]
    arguments = json.loads(subprocess.run([sys.executable, "-c", _ARGUMENTS], cwd=COPY, check=True, capture_output=True).stdout)
    subprocess.run(
        [sys.executable, "-m", "pytest", "--rootdir=.", "-q", "-s", *arguments, *tests],
        cwd=MUTANTS,
        env={**os.environ, JOB: str(job), "PYTHONPATH": os.pathsep.join(map(str, path))},
        check=False,
    )
    lines = verdicts.read_text().splitlines() if verdicts.exists() else []
    return {name: int(code) for name, _, code in (line.partition("\t") for line in lines)}


def judged() -> Iterator[tuple[str, str | None]]:
    """Yield each mutant, by mutmut's name, with the verdict of earlier runs."""
    for meta in sorted(MUTANTS.glob(METAS)):
        verdicts = read(_part(meta))
        for name, change in _changes(meta):
            yield name, verdicts[change].verdict if change in verdicts else None


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
