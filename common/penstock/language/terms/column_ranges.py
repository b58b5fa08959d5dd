"""The ranges of PostgreSQL's integers. An option that is stored in a column accepts only the column's range."""

from __future__ import annotations

SMALLINT = 2**15 - 1
"""The largest `smallint`. The smallest is one below its negative."""
INTEGER = 2**31 - 1
"""The largest `integer`."""
HIGHEST_PRIORITY = SMALLINT
"""The highest priority. Its negative is the lowest, as lanes are sorted by the negative, which must fit the column
too."""
MAX_AMOUNT = 10**15
"""The largest amount of a budget. It is exact as a float."""
