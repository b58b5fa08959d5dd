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
    assert source.report.found["tasks"] == 2 * number
    return calls


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
