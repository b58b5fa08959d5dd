"""Schedules in the database: from a stored definition to fires and their executions.

Not here: the computation of due instants, which is `penstock.language.schedules`.
"""
