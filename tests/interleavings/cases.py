"""All small races, by name."""

from __future__ import annotations

from tests.interleavings import (
    races_of_backlog,
    races_of_flows,
    races_of_functions,
    races_of_limits,
    races_of_lost_work,
    races_of_messages,
    races_of_permits,
    races_of_steps,
    races_of_work,
)

CASES = {
    case.name: case
    for part in (
        races_of_work,
        races_of_limits,
        races_of_lost_work,
        races_of_flows,
        races_of_steps,
        races_of_functions,
        races_of_permits,
        races_of_backlog,
    )
    for case in part.CASES
}
MESSAGES = {case.name: case for case in races_of_messages.CASES}
"""Whole flows over a broker that drops, repeats, delays, reorders and loses messages."""
