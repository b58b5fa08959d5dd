"""The keys that the context of every scheduled run has."""

from __future__ import annotations

RESERVED = {
    "schedule": "the ref of the schedule",
    "scheduled_time": "when it was due: ISO 8601, with the offset of the schedule's zone",
    "timezone": "the schedule's zone",
    "expression": "when the schedule fires, as it was written",
    "is_recovery": "whether this run replaces one that was lost",
    "is_missed": "whether the fire came later than the schedule's grace",
    "is_backfill": "whether a backfill asked for this past fire",
}
"""The keys that a schedule's own context may not have, and what each holds."""
