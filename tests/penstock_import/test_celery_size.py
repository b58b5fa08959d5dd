"""The work of an import grows with the size of an application, and not with its square."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from types import FrameType

import pytest

from penstock_import.celery import CeleryProject
from penstock_import.module_paths import ModulePaths

MODULE = """\
from celery import shared_task, chain
from ..base{number} import constants, conf
from . import limits as m{number}
LIMIT = 3
if LIMIT:
    BEAT = {{'b{number}': {{'task': 'shop.a{number}.tasks.weigh{number}', 'schedule': LIMIT}}}}
@shared_task(time_limit=m{number}.LIMIT)
def weigh{number}(crate, *, size=m{number}.SIZE):
    weigh = crate or sort{number}
    return [each.name for each in (weigh, sort{number})]
@shared_task
def sort{number}(crate):
    chain(weigh{number}.si(1), sort{number}.si(2)).delay()
"""


def calls_of_import(folder: Path, number: int) -> int:
    """Return the number of calls of Python functions that an import of `number` packages makes."""
    for package in range(number):
        (folder / f"a{package}").mkdir(parents=True)
        (folder / f"a{package}" / "tasks.py").write_text(MODULE.format(number=package))
        (folder / f"a{package}" / "limits.py").write_text(f"LIMIT = {package + 1}\nSIZE = 4\n")
    source, calls = counted_import(folder)
    assert source.report.found["tasks"] == 2 * number
    return calls


def counted_import(folder: Path) -> tuple[CeleryProject, int]:
    """Return the import of a folder, and the number of its calls of Python functions."""
    calls = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    source = CeleryProject(folder)
    before = sys.getprofile()
    sys.setprofile(count)
    try:
        source.mapped()
    finally:
        sys.setprofile(before)
    return source, calls


COMMAND = """\
def start{number}(crates):
    words = ["celery", "-A", "shop", "worker", "-Q", "q{number}"]
    words.append("-B")
    weigh.delay({number})
    return run(words, crates)
"""


def test_work_of_an_import_grows_with_the_commands_of_a_module(tmp_path: Path) -> None:
    counts: list[int] = []
    for number in (40, 160):
        folder = tmp_path / str(number)
        folder.mkdir()
        head = "from celery import shared_task\nfrom subprocess import run\n@shared_task\ndef weigh(crate): ...\n"
        commands = "".join(COMMAND.format(number=command) for command in range(number))
        (folder / "tasks.py").write_text(head + commands)
        source, calls = counted_import(folder)
        lines = [
            gap for gap in source.report.gaps if gap.what.startswith("the command celery -A shop worker")
        ]
        assert len(lines) == number
        assert all(gap.what.endswith(" -B") for gap in lines)
        counts.append(calls)
    few, many = counts
    assert many < 4.5 * few, f"{few} calls for 40 commands, {many} for 160"


def test_work_of_an_import_grows_with_the_files(tmp_path: Path) -> None:
    few, many = (calls_of_import(tmp_path / str(number), number) for number in (20, 80))
    assert many < 4.5 * few, f"{few} calls for 20 packages, {many} for 80"


def fits(path: str, modules: Iterable[str]) -> bool:
    return any(
        path == module or path.endswith(f".{module}") or module.endswith(f".{path}") for module in modules
    )


@pytest.mark.parametrize("path", ["a", "b", "c", "a.b", "b.c", "a.b.c", "x.a.b.c", "x.b", "b.x", "x"])
def test_path_fits_as_a_search_of_all_modules_says(path: str) -> None:
    modules = ["a.b.c", "a.d", "e"]
    assert ModulePaths(modules).fits(path) is fits(path, modules)
    is_part = any(path.endswith(f".{module}") or f".{path}." in f".{module}." for module in modules)
    assert ModulePaths(modules).contains(path) is (is_part or path in modules)
