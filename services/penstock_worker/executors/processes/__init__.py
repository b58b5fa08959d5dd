"""Processes that a worker starts, and their ends.

Not here: what they run in Python.
"""
