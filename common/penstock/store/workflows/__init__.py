"""The statements on running workflows: their state, the facts that the engine needs, their children, commands and
waits. `workflow_runs` has the queries of runs for users.

Not here: the engine's decisions.
"""
