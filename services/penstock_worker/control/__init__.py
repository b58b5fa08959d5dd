"""Heartbeats, broadcasts and metrics that steer a worker.

Not here: its work.
"""
