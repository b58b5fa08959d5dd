"""The conditions and parameters of rules, and their evaluation.

Not here: workflow conditions.
"""
