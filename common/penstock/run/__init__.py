"""What an action and a task executor see of a run, what a run may come to.

Not here: claiming and reporting, which are the worker's.
"""
