"""The task executors of Python functions.

Not here: other programs.
"""
