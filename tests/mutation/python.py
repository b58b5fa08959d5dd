"""Mutants of the Python that decides: mutmut makes them in a copy of the sources, `judge.py` runs the tests that call them."""

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
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

from tests.chaos.mutations import LEFT_OUT
from tests.crash.processes import ROOT
from tests.mutation.judge import JOB, UNCALLED
from tests.mutation.judge import SURVIVED as PASSED
from tests.mutation.postgres import migrated
from tests.mutation.verdicts import KILLED, SURVIVED, Verdict, read, write

METAS = "src/**/*.meta"
CONFIGURATION = Path(__file__).with_name("mutmut.toml")
LANES = "2"
PYTEST = (
    "--rootdir=.", "-q", "-s", "--tb=no", "-p", "tests.mutation.judge", "-p", "no:cacheprovider",
    "-p", "no:xdist", "--hypothesis-seed=0",
    # They measure processor time or calls, of which mutmut makes several times as many, or plant faults themselves.
    "--ignore", "tests/penstock/language/schemas/test_hostile_schemas.py",
    "--ignore", "tests/penstock/language/schemas/test_planted_faults.py",
    # Its 39 tests of random documents would take longer than all the others, which have a case for each way through a check.
    "--ignore", "tests/penstock/language/schemas/test_validator.py",
    "--deselect", "tests/penstock/language/schemas/test_budget.py::test_no_check_costs_more_than_its_bound",
    "--deselect", "tests/durable_programs/test_programs.py::test_fault_put_back_is_found",
    "--deselect", "tests/durable_programs/test_requested_ends.py::test_fault_of_requested_ends_is_found",
    # It reads the folders of the sources, which a copy has in another place.
    "--deselect", "tests/penstock/store/session/test_noted_clock.py::test_local_clock_is_read_only_where_it_must_be",
    "-W", "ignore::pytest.PytestAssertRewriteWarning",
)  # fmt: skip
_MAKE = """
import sys
from mutmut import __main__ as mutmut
from mutmut.mutation.trampoline import set_mutant_under_test
from mutmut.utils.file_utils import copy_also_copy_files, copy_src_dir
set_mutant_under_test("mutant_generation")
mutmut.config().only_mutate = [path for path in mutmut.config().only_mutate if path.startswith(sys.argv[2])]
mutmut.config().do_not_mutate = sys.argv[3:]
copy_src_dir()
copy_also_copy_files()
mutmut.create_mutants(int(sys.argv[1]))
"""


@dataclass(frozen=True, slots=True)
class Room:
    """Modules that are judged together, in a copy of the sources of their own. The copy stays, so that a later run makes mutants
    of changed sources alone."""

    name: str
    """The room's package, or "" for the modules that `mutmut.toml` names and that no other room has."""
    tests: tuple[str, ...]
    has_servers: bool = False
    """Whether its tests need a database."""

    @property
    def copy(self) -> Path:
        return ROOT / "build/mutation" / (self.name or "all")

    @property
    def sources(self) -> str:
        """The folder of its modules, in its copy."""
        folder = self.name.replace(".", "/")
        return (
            f"src/{folder}/"
            if folder.startswith("penstock_")
            else f"src/penstock/{folder}/".replace("//", "/")
        )

    @property
    def mutants(self) -> Path:
        return self.copy / "mutants"

    @property
    def verdicts(self) -> Path:
        """The verdicts of a run that has not ended yet, or was interrupted."""
        return self.copy.with_name(f"{self.copy.name}.tsv")

    def metas(self) -> list[Path]:
        return sorted(self.mutants.glob(METAS))

    def module(self, meta: Path) -> str:
        parts = meta.relative_to(self.mutants / "src").with_suffix("").with_suffix("").parts
        return ".".join(parts).removeprefix("penstock.")


REST = Room("", ("tests/penstock/engine", "tests/penstock/language"), has_servers=True)
OWN = (
    Room("language.schemas", ("tests/penstock/language/schemas",)),
    Room(
        "engine.durable",
        (
            "tests/penstock/engine/durable",
            "tests/penstock/testing/test_simulated_durable.py",
            "tests/durable_programs/test_programs.py",
            "tests/durable_programs/test_requested_ends.py",
            "tests/durable_programs/test_programs_of_one_attempt.py::test_crashes_change_nothing_in_programs[0]",
            "tests/durable_programs/test_programs_of_several_attempts.py::test_crashes_change_nothing_in_programs[6]",
        ),
    ),
    Room("run", ("tests/penstock/run/test_instants.py",)),
    Room("operate", ("tests/penstock/operate/test_awaited_steps.py",)),
    Room(
        "store.session",
        (
            "tests/penstock/store/session/test_pool_model.py",
            "tests/penstock/store/session/test_connection_pool.py",
            "tests/penstock/store/session/test_noted_clock.py",
        ),
        has_servers=True,
    ),
    Room(
        "penstock_api",
        ("tests/penstock_api/test_session_pool.py", "tests/penstock_api/test_refused_webhook_calls.py"),
        has_servers=True,
    ),
)
"""Rooms that are judged by their own tests alone: those call every line of the room."""


def run(only: Sequence[str]) -> list[str]:
    """Judge the mutants of these modules (`engine`, `engine.joins`), or of all that `mutmut.toml` names; and write the verdicts.
    Returns the parts of which there are verdicts now.

    `survivors`: only those that lived, or were not judged yet; `new`: only those that were not judged yet; `sample=800` and
    `seed=7`: so many of them, drawn at random; `lanes=1`: so many at a time."""
    options = dict(argument.split("=", 1) for argument in only if "=" in argument)
    modules = [name for name in only if "=" not in name and name not in ("survivors", "new")]
    parts = [_run_room(room, modules, only, options) for room in (*OWN, REST) if _is_asked(room, modules)]
    return sorted({part for of_room in parts for part in of_room})


def _run_room(
    room: Room, modules: Sequence[str], only: Sequence[str], options: Mapping[str, str]
) -> list[str]:
    lanes = options.get("lanes", LANES)
    collect(room)  # of a run that was interrupted
    make(room, lanes)
    wanted = [f"{module}*" for module in modules] or ["*"]
    left = {name: verdict for name, verdict in judged(room) if _is_left(verdict, only)}
    names = [
        name for name in left if any(fnmatch(name.removeprefix("penstock."), pattern) for pattern in wanted)
    ]
    if "sample" in options:
        drawn = random.Random(int(options.get("seed", "0")))
        names = drawn.sample(names, min(int(options["sample"]), len(names)))
    names.sort(key=lambda name: left[name] is None)  # what lived first
    with migrated() if room.has_servers else nullcontext():
        judge(room, names, lanes)
    return collect(room)


def _is_asked(room: Room, modules: Sequence[str]) -> bool:
    """Return whether the room has one of these modules, or modules of one of these packages."""
    if not modules:
        return True
    if room is REST:
        return any(not any(_is_in(module, own) for own in OWN) for module in modules)
    return any(_is_in(module, room) or f"{room.name}.".startswith(f"{module}.") for module in modules)


def _is_in(module: str, room: Room) -> bool:
    return f"{module}.".startswith(f"{room.name}.")


def _is_left(verdict: str | None, only: Sequence[str]) -> bool:
    if "new" in only:
        return verdict is None
    return "survivors" not in only or verdict != KILLED


def make(room: Room, lanes: str) -> None:
    """Copy the sources to where mutmut looks for them: it knows packages below `src`. Make the mutants of what has changed."""
    room.mutants.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(room.mutants / "tests", ignore_errors=True)
    for old in room.copy.glob("*"):
        if old != room.mutants:
            shutil.rmtree(old) if old.is_dir() else old.unlink()
    shutil.copytree(ROOT, room.copy, ignore=LEFT_OUT, dirs_exist_ok=True)
    shutil.move(room.copy / "common", room.copy / "src")
    for package in (room.copy / "services").iterdir():
        shutil.move(package, room.copy / "src")
    with (room.copy / "pyproject.toml").open("a") as file:
        file.write("\n" + CONFIGURATION.read_text())
    others = [f"{own.sources}*" for own in OWN if room is REST]
    subprocess.run(
        [sys.executable, "-c", _MAKE, lanes, room.sources, *others],
        cwd=room.copy,
        check=True,
        stdout=subprocess.DEVNULL,
    )


def judge(room: Room, names: Sequence[str], lanes: str) -> None:
    """Run the tests against these mutants. The verdicts are written one by one."""
    job = room.copy / "job.json"
    job.write_text(json.dumps({"mutants": list(names), "lanes": int(lanes), "verdicts": str(room.verdicts)}))
    path = [room.mutants / "src", room.mutants]
    subprocess.run(
        [sys.executable, "-m", "pytest", *PYTEST, *room.tests],
        cwd=room.mutants,
        env={**os.environ, JOB: str(job), "PYTHONPATH": os.pathsep.join(map(str, path))},
        check=False,
    )


def judged(room: Room) -> Iterator[tuple[str, str | None]]:
    """Yield each mutant, by mutmut's name, with the verdict of earlier runs."""
    for meta in room.metas():
        verdicts = read(_part(room.module(meta)))
        for name, change in _changes(meta):
            yield name, verdicts[change].verdict if change in verdicts else None


def _part(module: str) -> str:
    return f"python.{next((room.name for room in OWN if _is_in(module, room)), module.partition('.')[0])}"


def collect(room: Room) -> list[str]:
    """Write the verdicts, by rooms. A verdict of an earlier run stays for as long as its mutant is still made."""
    lines = room.verdicts.read_text().splitlines() if room.verdicts.exists() else []
    codes = {name: int(code) for name, _, code in (line.partition("\t") for line in lines)}
    by_part: dict[str, dict[str, Verdict]] = {}
    for meta in room.metas():
        part = _part(room.module(meta))
        judged_before = read(part)
        for name, change in _changes(meta):
            if name in codes:
                survived = codes[name] in (PASSED, UNCALLED)
                by_part.setdefault(part, {})[change] = Verdict(SURVIVED if survived else KILLED)
            elif change in judged_before:
                by_part.setdefault(part, {})[change] = judged_before[change]
    for part, verdicts in by_part.items():
        write(part, verdicts)
    room.verdicts.unlink(missing_ok=True)
    return sorted(by_part)


def _changes(meta: Path) -> Iterator[tuple[str, str]]:
    """Yield the name and the change of each mutant of a module. The change holds for as long as the line says the same."""
    source = meta.with_suffix("").read_text().splitlines()
    spans = json.loads(meta.with_suffix(".spans").read_text())["spans"]
    again: Counter[str] = Counter()
    for name in json.loads(meta.read_text())["exit_code_by_key"]:
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
