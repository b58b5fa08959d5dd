"""All small races, by name."""

from __future__ import annotations

from tests.interleavings import races_of_flows, races_of_limits, races_of_work

CASES = {case.name: case for part in (races_of_work, races_of_limits, races_of_flows) for case in part.CASES}
