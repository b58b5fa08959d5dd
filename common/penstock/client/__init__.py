"""The client of an installation for programs: publish events, start executions, wait for results, answer and command.

Not here: queries of operators on an installation (`operate`), and SQL statements (`store`).
"""
