"""Executions and their attempts, results, logs and inquiries.

Not here: slots and lines.
"""
