"""`penstock types`: a module of what the installation has, and whether it is still true."""

from __future__ import annotations

import runpy
from pathlib import Path

from tests.flows import shop
from tests.flows.installation import Installation
from tests.penstock.cli.commands import penstock


async def test_the_written_module_starts_the_registered_actions(house: Installation, tmp_path: Path) -> None:
    await house.start(*shop.ALL)
    file = tmp_path / "installation.py"
    assert "is written" in (await penstock("types", file)).out
    made = runpy.run_path(str(file))
    assert await house.client.run(made["shop"].count.call(words="a b"), timeout=20) == 2
    assert (await penstock("types")).out == file.read_text()


async def test_in_ci_it_says_that_it_is_stale(house: Installation, tmp_path: Path) -> None:
    await house.apply(shop.charge)
    file = tmp_path / "installation.py"
    missing = await penstock("types", file, "--check")
    assert (missing.code, file.exists()) == (1, False)
    await penstock("types", file)
    file.write_text(file.read_text().replace("    ", "\t"))  # a formatter was at it
    before = file.read_text()
    assert (await penstock("types", file, "--check", "--json")).document["is"] == "current"
    await house.apply(shop.count)
    stale = await penstock("types", file, "--check")
    assert stale.code == 1
    assert f"penstock types {file}" in stale.out
    assert file.read_text() == before
    assert (await penstock("types", file, "--json")).document["is"] == "written"
    assert (await penstock("types", file, "--check")).code == 0


async def test_a_wrong_file_is_explained(house: Installation, tmp_path: Path) -> None:
    assert (await penstock("types", "--check")).code == 2
    nowhere = await penstock("types", tmp_path / "nowhere/installation.py")
    assert nowhere.code == 1
    assert "hint" in nowhere.err
    assert (await penstock("types", tmp_path)).code == 1
