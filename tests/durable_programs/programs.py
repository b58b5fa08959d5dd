"""The random programs that each run of the tests plays."""

from __future__ import annotations

from hypothesis import HealthCheck, Phase, given, settings

from tests.durable_programs.agreement import check_crashed
from tests.durable_programs.statements import Program
from tests.durable_programs.strategies import crash_points, programs

PROGRAMS = 500


@settings(
    max_examples=PROGRAMS,
    deadline=None,
    derandomize=True,
    database=None,
    report_multiple_bugs=False,
    phases=(Phase.generate,),  # tests/chaos/test_durable_programs.py makes what disagrees small
    suppress_health_check=list(HealthCheck),
)
@given(programs(depth=2), crash_points)
def check_programs(program: Program, points: list[int]) -> None:
    """Play random programs with crashes. Raises Disagreement."""
    check_crashed(program, points)
