"""The reports of ended attempts, and the work that follows from them.

Not here: the run of an attempt.
"""
