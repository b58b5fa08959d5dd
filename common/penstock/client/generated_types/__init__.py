"""A Python module that has every action and workflow of an installation, typed, for programs that start them.

Not here: where definitions come from, and where the module is written to (the command line).
"""
