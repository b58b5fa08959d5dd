"""The terms of every room above: ids, labels, names, durations, routes.

Not here: what users define.
"""
