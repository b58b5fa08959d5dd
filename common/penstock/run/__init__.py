"""The run of an attempt as an action and a task executor see it, and its outcomes.

Not here: claiming and reporting, which the worker does.
"""
