"""`make chaos ARGS="--minutes 20 --seed 7 --thresholds short"`"""

from __future__ import annotations

import random

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--minutes", type=float, default=3.0, help="How long things are broken (3).")
    parser.addoption("--seed", type=int, default=None, help="Of the faults: that of a run that failed.")
    parser.addoption("--thresholds", choices=["short", "default"], default="short")
    parser.addoption("--kills", type=int, default=200, help="Of workers, over 100 executions each (200).")


@pytest.fixture
def minutes(request: pytest.FixtureRequest) -> float:
    return float(request.config.getoption("--minutes"))


@pytest.fixture(scope="session")
def seed(request: pytest.FixtureRequest) -> int:
    given = request.config.getoption("--seed")
    return random.SystemRandom().randrange(10**6) if given is None else int(given)
