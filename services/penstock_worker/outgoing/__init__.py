"""The events and executions that the code of actions asks its worker for.

Not here: the children of durable functions, which are recorded as steps.
"""
