"""Fixtures for pytest, there wherever Penstock is installed: `simulation` and `installation` (docs/testing.md).

Imports nothing of Penstock before a test asks for it: every run of pytest in the environment loads this."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from penstock.language.loading import Definitions
    from penstock.testing.installation import TestInstallation
    from penstock.testing.simulation import Simulation

MODULES = "penstock_modules"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini(
        MODULES, "What tests of Penstock know: Python files or modules, folders of packs", type="linelist"
    )


def _modules(config: pytest.Config) -> list[str]:
    """Return the modules as they are written, with files relative to the settings file."""
    folder = config.rootpath
    names: list[str] = config.getini(MODULES)
    return [str(folder / name) if (folder / name).exists() else name for name in names]


@pytest.fixture(scope="session")
def penstock_definitions(pytestconfig: pytest.Config) -> Definitions:
    """Return the definitions of the setting `penstock_modules`, loaded once."""
    from penstock.language.loading import load_all

    return load_all(",".join(_modules(pytestconfig)))


@pytest.fixture
def simulation(penstock_definitions: Definitions) -> Simulation:
    """A `penstock.testing.Simulation` that knows what the setting `penstock_modules` names: actions and workflows run in this
    process, on a clock that the test moves."""
    from penstock.testing.simulation import Simulation

    return Simulation(penstock_definitions)


@pytest.fixture(scope="session")
def installation(
    pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[TestInstallation]:
    """A real installation with an embedded PostgreSQL that runs what the setting `penstock_modules` names: a
    `penstock.SyncClient` of it. One for all tests of a run; it takes some seconds to start."""
    from penstock.testing.installation import running

    with running(tmp_path_factory.mktemp("penstock"), _modules(pytestconfig)) as client:
        yield client
