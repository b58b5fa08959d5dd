"""Policies for retries, recovery and timeouts, and what follows an attempt under them.

Not here: clocks.
"""
