"""The pytest fixtures `simulation` and `installation` (docs/testing.md), available wherever Penstock is installed.

The plugin imports Penstock only when a test requests a fixture, since every pytest run of the environment loads it.
"""

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
        MODULES,
        "The definitions for tests of Penstock: Python files or modules, folders of packs",
        type="linelist",
    )


def _modules(config: pytest.Config) -> list[str]:
    """Return the configured modules, with files relative to the settings file."""
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
    """Return a `penstock.testing.Simulation` with the definitions of the setting `penstock_modules`. Actions and
    workflows run in this process, on a clock that the test moves."""
    from penstock.testing.simulation import Simulation

    return Simulation(penstock_definitions)


@pytest.fixture(scope="session")
def installation(
    pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[TestInstallation]:
    """Run a real installation with an embedded PostgreSQL and the definitions of the setting `penstock_modules`, and
    return a `penstock.SyncClient`. All tests of a pytest run share it, and it takes some seconds to start."""
    from penstock.testing.installation import running

    with running(tmp_path_factory.mktemp("penstock"), _modules(pytestconfig)) as client:
        yield client
