"""Repairs, invariants, retention, timers and figures of the whole installation.

Not here: when they run.
"""
