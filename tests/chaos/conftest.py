"""The options of `make chaos ARGS="--minutes 20 --seed 7 --thresholds short"`. With `--only "SIGTERM,answer lost"` no other
fault occurs."""

from __future__ import annotations

import random
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.chaos.faults import OF_PROCESSES, OF_SERVERS
from tests.sdk.library import build_library


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--minutes", type=float, default=3.0, help="How long things are broken (3).")
    parser.addoption("--seed", type=int, default=None, help="Of the faults: that of a run that failed.")
    parser.addoption("--only", default="", help="Kinds of faults (tests/chaos/faults), with commas between.")
    parser.addoption("--thresholds", choices=["short", "default"], default="short")
    parser.addoption("--programs", type=int, default=100_000, help="Random durable programs (100,000).")
    parser.addoption("--programs-on-services", type=int, default=40, help="And on workers that die (40).")
    parser.addoption("--kills", type=int, default=200, help="Of workers, over 100 executions each (200).")


@pytest.fixture
def minutes(request: pytest.FixtureRequest) -> float:
    return float(request.config.getoption("--minutes"))


@pytest.fixture
def only(request: pytest.FixtureRequest) -> Sequence[str]:
    """Names of faults; none: all of them."""
    names = [name.strip() for name in str(request.config.getoption("--only")).split(",") if name.strip()]
    kinds = {fault.name for fault in (*OF_PROCESSES, *OF_SERVERS)}
    if wrong := [name for name in names if name not in kinds]:
        raise pytest.UsageError(
            f"--only: no such kind of fault: {', '.join(wrong)}; there are {', '.join(sorted(kinds))}"
        )
    return names


@pytest.fixture(scope="session")
def seed(request: pytest.FixtureRequest) -> int:
    option = request.config.getoption("--seed")
    return random.SystemRandom().randrange(10**6) if option is None else int(option)


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path | None:
    """Return the folder of the built library for Node; None on a machine without Node."""
    return None if shutil.which("npm") is None else build_library(tmp_path_factory.mktemp("library"))
