"""Limits, the lines before them, and the work that waits.

Not here: the decision, which the database makes.
"""
