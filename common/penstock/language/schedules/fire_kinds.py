"""The kinds of fires, by the reason for which each was created."""

from __future__ import annotations

DUE = "due"
"""A fire in time."""
MISSED = "missed"
"""A fire that came later than its schedule's grace."""
EARLIER_TOO = ", as were fires before it"
"""The end of a skipped fire's error, if fires before it were skipped without a record."""
BACKFILL = "backfill"
"""A fire that was requested for a past instant."""
MANUAL = "manual"
"""A fire that was requested for the instant of the request."""
