"""The split of the tests into `make test` and `make proof` loses none."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import proofs

ROOT = Path(__file__).parents[1]
SCENES = """
import pytest

@pytest.fixture(params=["postgres", "rabbitmq"])
def transport(request): return request.param

def test_plain(): pass
def test_many(): pass
def test_flow(transport): pass
@pytest.mark.parametrize("transport", ["rabbitmq"])
def test_pinned(transport): pass
"""
TABLE = """
import pytest

@pytest.mark.parametrize("number", range(10))
def test_rows(number): pass
"""
HOOKS = """
from tests import proofs

def pytest_collection_modifyitems(config, items): proofs.select(config, items)
def pytest_ignore_collect(collection_path, config): return proofs.is_left_out(collection_path, config.rootpath) or None
"""


@pytest.mark.parametrize("prefix", [*proofs.read()[0], *proofs.read()[1], *proofs.tables()])
def test_each_entry_names_a_file_or_folder(prefix: str) -> None:
    assert (ROOT / prefix.partition("::")[0]).exists()


def test_each_representative_is_one_of_a_proof() -> None:
    entries, representatives = proofs.read()
    assert [name for name in representatives if not proofs.begins(name, entries)] == []


def test_both_parts_together_are_all_tests_once(tmp_path: Path) -> None:
    for file in ("tests/crash/test_scenes.py", "tests/crash/test_kill.py", "tests/flows/test_scenes.py"):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(SCENES)
    table = tmp_path / "tests/penstock_import/test_table.py"
    table.parent.mkdir(parents=True)
    table.write_text(TABLE)
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --import-mode=importlib")
    (tmp_path / "conftest.py").write_text(HOOKS)
    every, test, proof = (_collected(tmp_path, part) for part in (None, "test", "proof"))
    assert sorted(test + proof) == sorted(every)
    assert not set(test) & set(proof)
    assert {name.partition("::")[0] for name in test} == {
        "tests/crash/test_kill.py",
        "tests/flows/test_scenes.py",
        table.relative_to(tmp_path).as_posix(),
    }
    flows = [name for name in test if name.startswith("tests/flows")]
    assert len(flows) == 4, "a flow is played on one transport, one that is pinned to a transport on that"
    assert sum("test_rows" in name for name in test) == proofs.ROWS
    shares = [_collected(tmp_path, "proof", f"{number}/3") for number in (1, 2, 3)]
    assert sorted(name for share in shares for name in share) == sorted(proof)


def _collected(folder: Path, part: str | None, share: str = "") -> list[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    environment.pop(proofs.VARIABLE, None)
    environment[proofs.SHARE] = share
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"],
        cwd=folder,
        env={**environment, "PYTHONPATH": str(ROOT), **({proofs.VARIABLE: part} if part else {})},
        capture_output=True,
        text=True,
    )
    assert ran.returncode in (0, 5), ran.stdout  # 5: no test is left
    return [line for line in ran.stdout.splitlines() if "::" in line]
