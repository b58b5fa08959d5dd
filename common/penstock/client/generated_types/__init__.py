"""The generators of modules with the types of every action and workflow of an installation, for programs that start them, in
Python and in TypeScript.

Not here: reading the definitions, and writing the file (the command line).
"""
