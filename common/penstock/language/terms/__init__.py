"""The terms that every room above uses: ids, labels, names, durations, routes.

Not here: what users define.
"""
