"""Records that all parts of a worker share: attempts, slots, versions.

Not here: a statement.
"""
