"""The errors of a task's retries are the classes that Python finds for their names: each module here is run by Python, too."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from penstock_import.celery import CeleryProject

CASES = {
    "an alias of a built-in error": ("", "(IOError,)"),
    "another alias of it": ("", "EnvironmentError"),
    "an alias of a module": ("import zipfile", "(zipfile.BadZipfile, KeyError)"),
    "an error of sockets": ("import socket", "[socket.error, socket.timeout]"),
    "an import with another name": ("from json import JSONDecodeError as Broken", "(Broken,)"),
    "a module with another name": ("import json.decoder as d", "(d.JSONDecodeError,)"),
    "an assignment": ("class Mine(Exception): ...\nAlias = Mine", "(Alias,)"),
    "a tuple with a name": ("class Mine(Exception): ...\nERRORS = (Mine, IOError)", "ERRORS"),
    "a sum of tuples": ("class Mine(Exception): ...\nERRORS = (Mine,)", "ERRORS + (IOError,)"),
    "a subclass of an alias": ("class Mine(IOError): ...", "(Mine,)"),
    "a class in a class": ("class Depot:\n    class Full(Exception): ...", "(Depot.Full,)"),
    "a choice between two imports": (
        "try:\n    from json import JSONDecodeError\n"
        "except ImportError:\n    from json.decoder import JSONDecodeError",
        "(JSONDecodeError,)",
    ),
    "a class of another file": ("from failures import Jam as Stuck", "(Stuck,)"),
    "an alias of another file": ("import failures", "(failures.Blocked,)"),
    "all names of another file": ("from failures import *", "(Blocked, IOError)"),
}
FAILURES = "class Jam(Exception): ...\nBlocked = Jam\n"


def imported(folder: Path, head: str, option: str) -> tuple[dict[str, Any], list[str]]:
    """Return the action of one task with an option, and the subjects of the gaps that name the option."""
    source = folder / "depot"
    source.mkdir()
    task = f"@app.task({option}, max_retries=2)\ndef weigh(): ...\n"
    (source / "jobs.py").write_text(f"from celery import Celery\n{head}\napp = Celery('depot')\n{task}")
    (source / "failures.py").write_text(FAILURES)
    project = CeleryProject(source)
    actions = project.mapped().actions
    return actions["weigh"], [gap.what for gap in project.report.gaps if "autoretry_for" in gap.what]


def classes_of_python(monkeypatch: pytest.MonkeyPatch, folder: Path, head: str, errors: str) -> list[str]:
    """Return the names of the classes that Python makes of the same source."""
    monkeypatch.syspath_prepend(str(folder / "depot"))
    monkeypatch.delitem(sys.modules, "failures", raising=False)
    scope: dict[str, Any] = {}
    exec(f"{head}\nresult = {errors}", scope)
    monkeypatch.delitem(sys.modules, "failures", raising=False)
    result = scope["result"]
    return sorted({error.__name__ for error in (result if isinstance(result, tuple | list) else (result,))})


@pytest.mark.parametrize("option", ["autoretry_for", "dont_autoretry_for"])
@pytest.mark.parametrize(("head", "errors"), CASES.values(), ids=CASES)
def test_errors_are_the_classes_of_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, option: str, head: str, errors: str
) -> None:
    first = "autoretry_for=(Exception,), " if option.startswith("dont") else ""
    action, gaps = imported(tmp_path, head, f"{first}{option}={errors}")
    names = action["retry"]["never_on" if first else "retry_on"]
    assert (names, gaps) == (classes_of_python(monkeypatch, tmp_path, head, errors), [])


@pytest.mark.parametrize(
    ("head", "errors"),
    [
        ("Alias = type('Mine', (Exception,), {})", "(Alias,)"),
        ("from elsewhere import *", "(Jam,)"),
        ("from elsewhere import ERRORS", "ERRORS"),
        ("Jam = KeyError\nif app:\n    Jam = ValueError", "(Jam,)"),
        ("", "(Unknown,)"),
        ("ERRORS = [KeyError]\nERRORS.append(IOError)", "ERRORS"),
    ],
)
def test_errors_that_only_running_would_tell_are_named(tmp_path: Path, head: str, errors: str) -> None:
    action, gaps = imported(tmp_path, head, f"autoretry_for={errors}")
    assert action["retry"]["retry_on"] == ["Retry"]  # the errors are named, and what bounds a Retry is kept
    assert gaps == [f"autoretry_for is computed: {errors} of weigh"]


@pytest.mark.parametrize(
    ("head", "error", "name", "path"),
    [
        ("from requests import Timeout as Late", "Late", "Timeout", "requests.Timeout"),
        ("import requests", "requests.Timeout", "Timeout", "requests.Timeout"),
        ("class Depot(Model): ...", "Depot.DoesNotExist", "DoesNotExist", "Depot.DoesNotExist"),
        (
            "class TimeoutError(Exception): ...",
            "TimeoutError",
            "TimeoutError",
            "TimeoutError, the name of an error of Python",
        ),
    ],
)
def test_error_that_is_taken_by_its_name_is_named(
    tmp_path: Path, head: str, error: str, name: str, path: str
) -> None:
    action, gaps = imported(tmp_path, head, f"autoretry_for=({error},)")
    assert action["retry"]["retry_on"] == [name]
    assert gaps == [f"autoretry_for with {path}, an error that is matched by its name of weigh"]


@pytest.mark.parametrize(
    ("head", "error"),
    [
        ("from celery.exceptions import SoftTimeLimitExceeded", "SoftTimeLimitExceeded"),
        ("import celery.exceptions", "celery.exceptions.SoftTimeLimitExceeded"),
        ("from kombu.exceptions import OperationalError", "OperationalError"),
    ],
)
def test_error_of_celery_beside_a_module_of_that_name_is_read(tmp_path: Path, head: str, error: str) -> None:
    for name in ("depot/depot/celery.py", "depot/shop/kombu.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("from celery import Celery\napp = Celery('depot')\n")
    text = f"{head}\nfrom depot.celery import app\n@app.task(autoretry_for=({error}, KeyError))\ndef weigh(): ...\n"
    (tmp_path / "depot/shop/tasks.py").write_text(text)
    source = CeleryProject(tmp_path / "depot")
    policy = source.mapped().actions["weigh"]["retry"]
    assert policy["retry_on"] == sorted(["KeyError", error.rpartition(".")[2]])
    assert not any("is computed" in gap.what for gap in source.report.gaps)
