"""Repairs, invariants, retention, timers and figures of the whole installation.

Not here: the loops that run them.
"""
