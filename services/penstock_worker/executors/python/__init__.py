"""Task executors that call Python functions.

Not here: other programs.
"""
