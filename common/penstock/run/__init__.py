"""The view of a run that an action and a task executor have, and the outcomes of a run.

Not here: claiming and reporting, which are the worker's.
"""
