"""The generator of a Python module with a typed reference for every action and workflow of an installation, for
programs that start them.

Not here: reading the definitions, and writing the file (the command line).
"""
