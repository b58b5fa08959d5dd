"""The attempts that a process owns: their actions, their parameters and the masking of their secrets.

Workers use it, and gateways for the workers that call them. Not here: SQL statements, and how an attempt runs.
"""
