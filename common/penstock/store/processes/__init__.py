"""Processes, their presence and their heartbeats.

Not here: the heartbeat itself.
"""
