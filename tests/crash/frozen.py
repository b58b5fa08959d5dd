"""Imported last by a process that forks others: what it holds by then is for none of them to look through for garbage, and
so to copy."""

from __future__ import annotations

import gc

gc.collect()
gc.freeze()
