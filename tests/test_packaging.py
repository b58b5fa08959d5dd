"""The installed package is whole, and the locked packages have hashes and no address."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
import zipfile
from importlib.metadata import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

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


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel made of this checkout."""
    return _make_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def wheel(made: Path) -> set[str]:
    """The names of the files in it."""
    return set(zipfile.ZipFile(made).namelist())


def _make_wheel(target: Path) -> Path:
    # setuptools leaves its `build` folder beside the source, so it works on a copy.
    source = target / "source"
    for name in _tracked():
        file = source / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes((ROOT / name).read_bytes())
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run(
        [*pip, "--wheel-dir", str(target), str(source)],
        check=True,
        stdin=subprocess.DEVNULL,
        env={**os.environ, "SOURCE_DATE_EPOCH": "1893456000"},
    )
    (made,) = target.glob("penstock-*.whl")
    return made


def test_the_same_files_make_the_same_wheel(made: Path, tmp_path: Path) -> None:
    assert _make_wheel(tmp_path).read_bytes() == made.read_bytes()


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
        ("requirements-compute.txt", INSTALLED + EXTRAS["dask"] + EXTRAS["ray"]),
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
