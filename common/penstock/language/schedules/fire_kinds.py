"""The kinds of fires: the reasons for which they exist."""

from __future__ import annotations

DUE = "due"
"""A fire in time."""
MISSED = "missed"
"""A fire that came later than its schedule's grace."""
BACKFILL = "backfill"
"""Asked for, of a past instant."""
MANUAL = "manual"
"""Asked for, at that instant."""
