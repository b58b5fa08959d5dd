"""Schedules in the database: from a stored definition to fires and their executions.

When they are due is `penstock.language.schedules`, which is pure.
"""
