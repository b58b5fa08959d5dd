"""The run of an attempt, with the secrets and results that it refers to.

Not here: task executors.
"""
