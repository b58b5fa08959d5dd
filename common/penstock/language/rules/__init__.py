"""The conditions of rules and parameters, and how they are evaluated.

Not here: workflow conditions.
"""
