"""What an action and a task executor see of a run, what a run may come to, and the kit that tests task executors.

Not here: claiming and reporting, which are the worker's.
"""
