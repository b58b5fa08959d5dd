"""The attempts that a process owns: their actions, their parameters, the masking of their secrets, and the calls of those
that are HTTP requests.

Workers use it, gateways for the workers that call them, and simulations. Not here: SQL statements, and how code runs.
"""
