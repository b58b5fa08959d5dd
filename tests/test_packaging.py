"""The installed package is whole, and the locked packages have hashes and no address."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from importlib.metadata import metadata, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.test_extras import link, needed

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]
INSTALLED: list[str] = PROJECT["dependencies"] + [
    requirement
    for extra in ("rabbitmq", "cli", "services", "embedded", "api")
    for requirement in EXTRAS[extra]
    if not requirement.startswith("penstock[")
]
"""By `make demo`, `make setup` and the image."""


PACKAGES = ("penstock-dask", "penstock-import", "penstock-ray")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The wheels made of this checkout, by distribution."""
    return _make_wheels(tmp_path_factory.mktemp("wheels"))


@pytest.fixture(scope="module")
def wheel(made: dict[str, Path]) -> set[str]:
    """The names of the files in Penstock's own wheel."""
    return set(zipfile.ZipFile(made["penstock"]).namelist())


def _make_wheels(target: Path) -> dict[str, Path]:
    # setuptools leaves its `build` folder beside the source, so it works on a copy.
    source = target / "source"
    for name in _tracked():
        file = source / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes((ROOT / name).read_bytes())
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run(
        [
            *pip,
            "--wheel-dir",
            str(target),
            str(source),
            *(str(source / "extras" / name) for name in PACKAGES),
        ],
        check=True,
        stdin=subprocess.DEVNULL,
        env={**os.environ, "SOURCE_DATE_EPOCH": "1893456000"},
    )
    return {path.name.partition("-")[0].replace("_", "-"): path for path in target.glob("*.whl")}


def test_the_same_files_make_the_same_wheels(made: dict[str, Path], tmp_path: Path) -> None:
    again = _make_wheels(tmp_path)
    assert made.keys() == {"penstock", *PACKAGES}
    assert {name: path.read_bytes() for name, path in again.items()} == {
        name: path.read_bytes() for name, path in made.items()
    }


@pytest.mark.parametrize("name", PACKAGES)
def test_wheel_of_a_package_is_whole_and_needs_this_version(made: dict[str, Path], name: str) -> None:
    files = zipfile.ZipFile(made[name])
    top = f"extras/{name}/"
    modules = {path.removeprefix(top) for path in _tracked() if path.startswith(top + name.replace("-", "_"))}
    about = f"{name.replace('-', '_')}-{PROJECT['version']}.dist-info"
    assert len(modules) > 2
    assert modules == {path for path in files.namelist() if not path.startswith(about)}
    text = files.read(f"{about}/METADATA").decode()
    assert re.search(rf"^Version: {re.escape(PROJECT['version'])}$", text, re.MULTILINE)
    assert re.search(
        rf"^Requires-Dist: penstock\[\w+\]=={re.escape(PROJECT['version'])}$", text, re.MULTILINE
    )
    assert f"{about}/licenses/LICENSE" in files.namelist()
    assert [name] == EXTRAS[name.removeprefix("penstock-")]


CELERY = """
from celery import Celery

app = Celery("shop")

@app.task(queue="heavy")
def pack(order: int) -> str:
    return f"packed {order}"
"""


def test_packages_join_penstock_in_a_bare_environment(made: dict[str, Path], tmp_path: Path) -> None:
    """The libraries are those that the wheel of `penstock-import` requires, and nothing else is there."""
    bare = tmp_path / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(bare)], check=True)
    libraries = link(tmp_path / "libraries", needed(requires("penstock-import") or []) - {"penstock"})
    [site] = bare.glob("lib/python*/site-packages")
    (site / "libraries.pth").write_text(f"{libraries}\n")
    (tmp_path / "tasks.py").write_text(CELERY)

    _install(bare, made["penstock"])
    imported = _run_in(bare, "import", "celery", "tasks.py", "--json")
    missing = (
        "error: this needs what is not installed: pip install '/path/to/penstock/extras/penstock-import' "
        "(/path/to/penstock is a clone of its repository)\n"
    )
    assert (imported.returncode, imported.stderr) == (2, missing)

    _install(bare, made["penstock-import"])
    imported = _run_in(bare, "import", "celery", "tasks.py", "--json")
    assert (imported.returncode, imported.stderr) == (0, "")
    document = json.loads(imported.stdout)
    assert document["applied"] == {"tasks": 1}
    assert _run_in(bare, "lint", document["folder"]).returncode == 0

    _install(bare, made["penstock-dask"], made["penstock-ray"])
    listed = subprocess.run(
        [bare / "bin/python", "-c", ENTRIES],
        capture_output=True,
        text=True,
        check=True,
        env=_bare_environment(),
    )
    assert json.loads(listed.stdout) == {
        "dask": "penstock_dask.executor:DaskExecutor",
        "ray": "penstock_ray.executor:RayExecutor",
    }


ENTRIES = """
import importlib.metadata as m, importlib.util as u, json
entries = m.entry_points(group="penstock.executors")
assert all(u.find_spec(entry.module) for entry in entries)
print(json.dumps({entry.name: entry.value for entry in entries}))
"""


def _install(bare: Path, *wheels: Path) -> None:
    pip = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        str(bare / "bin/python"),
        "install",
        "--quiet",
        "--no-deps",
    ]
    subprocess.run([*pip, "--no-index", *map(str, wheels)], check=True, stdin=subprocess.DEVNULL)


def _run_in(bare: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [bare / "bin/penstock", *words],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        cwd=bare.parent,
        env=_bare_environment(),
    )


def _bare_environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(("PENSTOCK", "PYTHON"))}


ALLOWED = re.compile(
    r"MIT|BSD|Apache|ISC|PSF|Python Software Foundation|MPL-2.0|Mozilla Public License 2.0|Unlicense|0BSD"
)


def test_installed_packages_may_be_passed_on() -> None:
    for name in _locked("requirements.txt"):
        about = metadata(name)
        said = [about["License-Expression"] or "", *about.get_all("Classifier", []), about["License"] or ""]
        assert any(ALLOWED.search(text) for text in said if "Programming Language" not in text), name


def test_the_wheel_has_every_module_and_nothing_else_at_its_top(wheel: set[str]) -> None:
    for folder in ("common", "services"):
        modules = {name.removeprefix(f"{folder}/") for name in _tracked() if name.startswith(f"{folder}/")}
        assert modules <= wheel
    top = {name.partition("/")[0] for name in wheel}
    assert {name for name in top if not name.endswith((".dist-info", ".data"))} == {
        path.name
        for folder in ("common", "services")
        for path in (ROOT / folder).iterdir()
        if _has_code(path)
    }


@pytest.mark.parametrize("folder", ["migrations/", "examples/"])
def test_the_wheel_has_every_migration_and_the_files_of_the_demo(wheel: set[str], folder: str) -> None:
    wanted = {name for name in _tracked() if name.startswith(folder)}
    assert wanted
    data = {name.partition("/data/share/penstock/")[2] for name in wheel}
    assert wanted <= data


LOCKS = [f"requirements{of}.txt" for of in ("", "-dev", "-compute", "-release")]


@pytest.mark.parametrize("name", LOCKS)
def test_each_locked_requirement_has_a_version_and_hashes_and_no_address(name: str) -> None:
    text = (ROOT / name).read_text()
    assert "://" not in text
    assert not re.search(r"^-", text, re.MULTILINE)
    pinned = re.findall(r"^[\w.-]+==\S+ \\\n    --hash=sha256:[0-9a-f]{64}", text, re.MULTILINE)
    assert len(pinned) == len(re.findall(r"^\w", text, re.MULTILINE))


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("requirements.txt", INSTALLED),
        ("requirements-dev.txt", INSTALLED + EXTRAS["dev"]),
        ("requirements-compute.txt", [*(requires("penstock-dask") or ()), *(requires("penstock-ray") or ())]),
        ("requirements-release.txt", INSTALLED + EXTRAS["release"]),
    ],
)
def test_the_locks_satisfy_the_project(name: str, wanted: list[str]) -> None:
    locked = _locked(name)
    for requirement in map(Requirement, wanted):
        if requirement.name == "penstock":  # one extra includes another
            continue
        version = locked.get(canonicalize_name(requirement.name))
        assert version is not None, f"{requirement.name} is not in {name}: make lock"
        assert requirement.specifier.contains(version), f"{name} has {requirement.name} {version}: make lock"


def test_tests_run_on_the_versions_that_are_installed_elsewhere() -> None:
    dev, compute = _locked("requirements-dev.txt"), _locked("requirements-compute.txt")
    assert _locked("requirements.txt").items() <= dev.items()
    assert {name: compute[name] for name in dev.keys() & compute.keys()}.items() <= dev.items()


def test_packages_of_tests_and_services_bring_no_address_grammar() -> None:
    """`jsonschema` loads it where it is installed: more than a second, and a hundred thousand objects, for each process."""
    assert not {"rfc3987-syntax", "lark"} & (
        _locked("requirements.txt").keys() | _locked("requirements-dev.txt").keys()
    )


def _locked(name: str) -> dict[str, str]:
    pins = re.findall(r"^([\w.-]+)==(\S+)", (ROOT / name).read_text(), re.MULTILINE)
    return {canonicalize_name(package): version for package, version in pins}


def _tracked() -> list[str]:
    from tests.house_rules import tracked

    return [name for name in tracked(ROOT) if (ROOT / name).is_file()]


def _has_code(path: Path) -> bool:
    return path.is_dir() and any(path.rglob("*.py"))
