from __future__ import annotations

import pytest

from bench.__main__ import NAMES, chosen
from bench.errors import CannotMeasure
from bench.works import WORKS


def test_nothing_named_means_all() -> None:
    assert chosen("", NAMES, "system") == NAMES


def test_names_are_separated_by_commas() -> None:
    assert chosen("noop, latency-20", tuple(WORKS), "work") == ("noop", "latency-20")


def test_an_unknown_name_is_refused_with_those_that_exist() -> None:
    with pytest.raises(CannotMeasure) as refused:
        chosen("penstok", NAMES, "system")
    assert "penstok" in refused.value.message
    assert "penstock" in (refused.value.hint or "")
