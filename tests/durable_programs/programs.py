"""The random programs that each run of the tests plays: the same ones each time, in parts that processes can share."""

from __future__ import annotations

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as seeded

from tests.durable_programs.agreement import check_crashed, check_ended
from tests.durable_programs.end_requests import EndPoint
from tests.durable_programs.statements import Program
from tests.durable_programs.strategies import (
    Kind,
    asked_programs,
    crash_points,
    ends,
    late_attempts,
    programs,
)

PROGRAMS_OF_PART = 200
PARTS: dict[Kind, range] = {"again": range(6, 10), "once": range(6)}
"""The seeds of the parts of each kind of program."""
PROGRAMS_OF_ENDS = 100
PARTS_OF_ENDS: dict[Kind, range] = {"again": range(100, 103), "once": range(100, 102)}
"""The same of programs that are asked to end, which takes longer."""


def check_programs(kind: Kind, part: int) -> None:
    """Play the programs of a part, with crashes. Raises Disagreement."""

    @seeded(part)
    @settings(
        max_examples=PROGRAMS_OF_PART,
        deadline=None,
        database=None,
        report_multiple_bugs=False,
        phases=(Phase.generate,),  # tests/chaos/test_durable_programs.py makes what disagrees small
        suppress_health_check=list(HealthCheck),
    )
    @given(programs(depth=2, only=kind), crash_points, late_attempts)
    def check(program: Program, points: list[int], late: dict[int, int]) -> None:
        check_crashed(program, points, late)

    check()


def check_requested_ends(kind: Kind, part: int) -> None:
    """Play the programs of a part, each asked to end at some points. Raises Disagreement."""

    @seeded(part)
    @settings(
        max_examples=PROGRAMS_OF_ENDS,
        deadline=None,
        database=None,
        report_multiple_bugs=False,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    @given(asked_programs(depth=2, only=kind), crash_points, late_attempts, ends)
    def check(program: Program, points: list[int], late: dict[int, int], requests: list[EndPoint]) -> None:
        check_ended(program, points, requests, late)

    check()


def check_all_requested_ends() -> None:
    """Play the programs of all parts that are asked to end. Raises Disagreement."""
    for kind, parts in PARTS_OF_ENDS.items():
        for part in parts:
            check_requested_ends(kind, part)


def check_all_programs() -> None:
    """Play the programs of all parts, the last of each kind first: these find most faults soonest. Raises Disagreement."""
    turns = [(number, kind, part) for kind, parts in PARTS.items() for number, part in enumerate(parts[::-1])]
    for _, kind, part in sorted(turns, key=lambda turn: turn[0]):
        check_programs(kind, part)
