"""The child processes that a worker starts and ends.

Not here: the program that runs Python functions in them.
"""
