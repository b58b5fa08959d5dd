"""The heartbeats, broadcasts and metrics that control a worker.

Not here: its work.
"""
