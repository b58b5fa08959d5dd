"""Ranges of PostgreSQL's whole numbers: an option that is kept in a column takes what the column can hold."""

from __future__ import annotations

SMALLINT = 2**15 - 1
"""The largest `smallint`; the smallest is one beyond its negative."""
INTEGER = 2**31 - 1
"""The largest `integer`."""
HIGHEST_PRIORITY = SMALLINT
"""Priorities go from minus this to this: a line is sorted by the negative, which has to fit its column as well."""
