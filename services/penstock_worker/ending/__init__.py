"""The reports of ended attempts, and the work that they bring about.

Not here: the run of an attempt.
"""
