"""Schedules at work: from a stored definition to fires and their executions. When they are due is `penstock.schedules`.

A schedule is a row that knows when it is due next. Whoever fires it holds that row, records the fire, starts its
execution and moves the row on, in one transaction: nothing is lost between two of these, and nothing happens twice.
"""
